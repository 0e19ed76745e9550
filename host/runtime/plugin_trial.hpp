#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::runtime {

/// Decides which plugin files a process lets in: those that only it and root may write, and that do no harm to a
/// process that tries them first. Loads what is new in the host's plugin folders and may come in; the rest is among the
/// registry's rejected. What the registry has pinned holds here and in the trial.
///
/// Also tries to make the handlers of `jobs`: an error for each one that must not be made here, at the handler's place.
/// A refusal by the plugin's own words is not for the trial; it comes again, harmlessly, when the handler is made here.
/// Waits for the trial. Fails when none is to be had; nothing has been loaded then.
Result<std::vector<config::ConfigError>> admit_plugins(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                                       const std::vector<config::JobConfig>& jobs);

/// The first word of a trial process's command line.
inline constexpr const char* kTrialWord = "--try-plugins";
/// The trial process: does what the words behind the first say, and ends the process.
[[noreturn]] void run_trial_process(const std::vector<std::string>& words);

}  // namespace sluice::runtime
