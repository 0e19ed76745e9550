#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/cli/options.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/job_plan.hpp"

/// Which handler a command runs by itself, and by which job's options and policy.
namespace sluice::cli {

/// --plugin, --job, --option, --config and --allow-insecure-files.
std::vector<Flag> handler_flags();

/// What the command line says of it besides those. A value.
struct HandlerWish {
  std::string handler;  ///< empty: whichever the job or the plugin has
  std::string queue;    ///< that a message is from; empty: none is known
  queue::Half half = queue::Half::standard;
  bool without_host_file = false;  ///< whether or not there is one
  std::string copy{};              ///< of the file of --plugin, which is loaded in its place; empty: itself
};

/// A handler that is loaded, with its job. A resource.
struct HandlerChoice {
  config::HostConfig host;  ///< of the host file; the defaults where there is none
  plugin::PluginRegistry registry;
  runtime::JobPlan plan;
  bool has_job = false;  ///< false: a job with the usual policy was made for it

  /// What its handler may stage, by the store of the job's queue.
  plugin::EffectRules effects(Random& random, const Clock& clock) const {
    return plugin::effect_rules(plan.config, host.store_of(plan.config.queue).kind, random, clock);
  }
};

/// The handler out of --plugin or the host file's plugin folders; its options out of --job, else out of the one job
/// that uses it, else as it declares them; --option wins over all. Plugins are tried in a process of their own before
/// they are loaded. Exit 64 for what the command line asks for and nobody offers, 78 for files and plugins.
OrExit<std::unique_ptr<HandlerChoice>> choose_handler(const Arguments& arguments, const HandlerWish& wish,
                                                      Console& console);

/// Whether --job names a file, and no job of the host file.
bool is_job_file(const std::string& job);

/// The file of --plugin as an absolute path; exit 78 where there is none.
OrExit<std::string> plugin_file(const Arguments& arguments);

/// The TOML of "name = value" for one --option, whose value is written as a declaration writes defaults: a text without
/// quotes. Exit 64 for what has no '=' or no name.
OrExit<std::string> option_line(const std::string& option, const sluice_handler& handler);

}  // namespace sluice::cli
