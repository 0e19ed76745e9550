#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::runtime {

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

}  // namespace sluice::runtime
