#pragma once

#include <set>

#include "base/ranges.hpp"
#include "host/plugin/around.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::runtime {

/// A job that is known to be startable as far as files can tell: its handler exists and takes its options. A value.
struct JobPlan {
  config::JobConfig config;
  const sluice_handler* handler = nullptr;  ///< lives as long as the process
  plugin::OptionValues options;
  std::string plugin_file;     ///< where the handler is from
  std::string plugin_version;  ///< what that says of itself; empty: nothing
  std::vector<plugin::AroundSpec> arounds{};
};

/// A job's handlers as the registry has them: its own, then those around it. A value.
using Handlers = std::vector<const sluice_handler*>;
inline Handlers handlers_of(const JobPlan& plan) {
  Handlers all = mapped(plan.arounds, &plugin::AroundSpec::handler);
  all.insert(all.begin(), plan.handler);
  return all;
}
/// Empty when one of them is not there.
Handlers handlers_of(const config::JobConfig& job, const plugin::PluginRegistry& registry);

/// The handler that a job names; errors as the registry's.
inline Result<const sluice_handler*> find_handler(const plugin::PluginRegistry& registry,
                                                  const config::JobConfig& job) {
  return job.plugin ? registry.handler(job.handler, *job.plugin) : registry.handler(job.handler);
}

/// Binds jobs to the handlers of the registry. Every error of every job at once: unknown or ambiguous handler, one that
/// goes around others in the place of one that does not, or the reverse, and options.
config::Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<config::JobConfig>& jobs,
                                               const plugin::PluginRegistry& registry);

/// What the jobs name, handlers that go around others too.
std::set<std::string> handler_names_of(const std::vector<config::JobConfig>& jobs);

/// True for a job that runs already as it is, with its plugin as that lies on disk, and so need not be tried.
using RunsAlready = std::function<bool(const config::JobConfig&)>;

/// All of it from the host file's patterns and folders: reads the job files, lets new plugins in, tries the handlers of
/// jobs that do not run yet in a process of their own, and binds. Waits for that process.
config::Parsed<std::vector<JobPlan>> load_job_plans(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                                    const RunsAlready& runs_already);

/// Why a job cannot start, with its name and file.
Error cannot_start(const JobPlan& plan, const Error& error);

/// An error for each of the host file, its state folder and these jobs' files that others may write.
std::vector<config::ConfigError> distrusted(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs);

/// An error for each order that a job wants and its store cannot keep, or two jobs on one queue want differently.
std::vector<config::ConfigError> refused_rules(const config::HostConfig& host,
                                               const std::vector<config::JobConfig>& jobs);

std::vector<std::string> queues_of(const std::vector<JobPlan>& plans);

/// Decides which plugin files a process lets in: those that only it and root may write, and that do no harm to a
/// process that tries them first. Loads what is new and may come in; the rest is among the registry's rejected. Also
/// tries to make the handlers of `jobs`: an error, at the handler's place, for each that must not be made here; a
/// refusal in the plugin's own words comes again when it is. Waits for the trial. Fails when none is to be had; nothing
/// has been loaded then.
Result<std::vector<config::ConfigError>> admit_plugins(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                                       const std::vector<config::JobConfig>& jobs);

/// The first word of a trial process's command line.
inline constexpr const char* kTrialWord = "--try-plugins";
/// The trial process: does what the words behind the first say, and ends the process.
[[noreturn]] void run_trial_process(const std::vector<std::string>& words);

}  // namespace sluice::runtime
