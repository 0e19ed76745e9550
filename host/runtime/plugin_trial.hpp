#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::runtime {

/// How a trial process ended. A value.
struct TrialEnd {
  std::string step;   ///< the last that it began; empty: none
  std::string cause;  ///< what ended it there, with its last line on stderr; empty: it went through
};

/// Starts `program` with `words` and `--steps FD`, on which it writes a line before each step and "end" after the last,
/// and waits for its end. One whose step takes longer than `limit` is killed, with all that it started.
/// Fails when there is no process to be had. Blocks; one at a time for a thread, which the child does not outlive.
Result<TrialEnd> run_trial_child(const std::string& program, const std::vector<std::string>& words, Duration limit);

/// What is to be tried. A value.
struct TrialRequest {
  std::vector<std::string> files;  ///< plugins to load, in this order
  plugin::PluginPins pins;         ///< digests that files have to have, or they are not loaded there either
  std::string host_file;           ///< whose job files are read, when there are jobs
  std::vector<std::string> jobs;   ///< names of jobs whose handlers are to be made and destroyed
};

/// What must not be let into this process, and why: text that follows the name of the file or the handler. A value.
struct TrialVerdict {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> jobs;
};

/// Tries plugins in a process of their own before this one loads them: what their start-up code and constructors do to
/// a process (crash it, exit, never return) they do to that one. A refusal by the plugin's own words is not for the
/// trial; it comes again, harmlessly, when the handler is made here.
class PluginTrial {
 public:
  /// A step (loading one file, making or destroying one handler) may take so long.
  static constexpr Duration kStepLimit = std::chrono::seconds(10);

  /// `program` is started as `program --try-plugins ...` and calls `run_trial_process`.
  explicit PluginTrial(std::string program = "/proc/self/exe", Duration step_limit = kStepLimit)
      : program_(std::move(program)), step_limit_(step_limit) {}

  /// One process when all is well, and one more for each file or job that is refused. Fails when there is no process to
  /// be had, or it cannot even begin.
  Result<TrialVerdict> run(TrialRequest request) const;

 private:
  std::string program_;
  Duration step_limit_;
};

/// The first word of a trial process's command line.
inline constexpr const char* kTrialWord = "--try-plugins";
/// The trial process: does what the words behind the first say, and ends the process.
[[noreturn]] void run_trial_process(const std::vector<std::string>& words);

/// Decides which plugin files a process lets in: those that only it and root may write, and that do no harm to a
/// process that tries them first. Used by one thread at a time, which waits for the trial.
class PluginGate {
 public:
  /// `host` and `registry` outlive it.
  PluginGate(const config::HostConfig& host, plugin::PluginRegistry& registry, PluginTrial trial = PluginTrial())
      : host_(host), registry_(registry), trial_(std::move(trial)) {}

  /// What the registry has pinned holds here and in the trial.
  /// Loads what is new in the host's plugin folders and may come in; the rest is among the registry's rejected. Also
  /// tries to make the handlers of `jobs`: an error for each one that must not be made here, at the handler's place.
  /// Fails when no trial is to be had; nothing has been loaded then.
  Result<std::vector<config::ConfigError>> admit(const std::vector<config::JobConfig>& jobs);

 private:
  const config::HostConfig& host_;
  plugin::PluginRegistry& registry_;
  const PluginTrial trial_;
};

}  // namespace sluice::runtime
