#include "host/runtime/plugin_trial.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <variant>

#include "config/config.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/trial_child.hpp"

namespace sluice::runtime {
namespace {

// The steps, each followed by the name of a file or a job.
constexpr std::string_view kLoad = "load ";
constexpr std::string_view kCreate = "create ";
constexpr std::string_view kDestroy = "destroy ";

std::vector<std::string> command_line(const TrialRequest& request) {
  std::vector<std::string> words{kTrialWord};
  const auto add = [&words](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  for (const auto& [name, sha256] : request.pins) {
    add("--pin", sha256 + name);
  }
  for (const std::string& file : request.files) {
    add("--file", file);
  }
  for (const std::string& job : request.jobs) {
    add("--job", job);
  }
  if (!request.jobs.empty()) {
    add("--config", request.host_file);
  }
  return words;
}

/// Of the words that follow "--pin".
plugin::PluginPins read_pins(const std::vector<std::string>& words) {
  constexpr std::size_t kDigits = 64;
  plugin::PluginPins pins;
  for (const std::string& word : words) {
    if (word.size() > kDigits) {
      pins.emplace(word.substr(kDigits), word.substr(0, kDigits));
    }
  }
  return pins;
}

/// Moves what the step was about from the request to the verdict; false when the trial ended in no such step.
bool blame(const TrialEnd& end, TrialRequest& request, TrialVerdict& verdict) {
  const auto move = [&end](std::string_view step, const char* when, std::vector<std::string>& from,
                           std::map<std::string, std::string>& to) {
    if (!end.step.starts_with(step)) {
      return false;
    }
    const std::string name = end.step.substr(step.size());
    to[name] = end.cause + " when it was " + when;
    return std::erase(from, name) > 0;
  };
  return move(kLoad, "loaded", request.files, verdict.files) || move(kCreate, "created", request.jobs, verdict.jobs) ||
         move(kDestroy, "destroyed", request.jobs, verdict.jobs);
}

/// Says what comes next, to whoever finds this process dead.
class Steps {
 public:
  explicit Steps(int descriptor) : descriptor_(descriptor) {}
  void next(std::string_view step, std::string_view name) const {
    std::string line(step);
    line += name;
    line += '\n';
    [[maybe_unused]] const auto written = ::write(descriptor_, line.data(), line.size());
  }

 private:
  int descriptor_;
};

void try_job(const config::JobConfig& job, const plugin::EffectRules& effects, const plugin::PluginRegistry& registry,
             const Steps& steps) {
  const auto planned = plan_jobs({job}, registry);
  if (!std::holds_alternative<std::vector<JobPlan>>(planned)) {
    return;
  }
  const JobPlan& plan = std::get<std::vector<JobPlan>>(planned).front();
  steps.next(kCreate, job.name);
  const auto instance =
      plugin::HandlerInstance::create_in({{}, {}, {}, effects}, *plan.handler, job.name, plan.options);
  steps.next(kDestroy, job.name);
}

void try_jobs(const std::string& host_file, const std::vector<std::string>& names,
              const plugin::PluginRegistry& registry, const Steps& steps) {
  const auto environment = config::process_environment();
  const auto host = config::load_host_config(host_file, environment);
  if (!std::holds_alternative<config::HostConfig>(host)) {
    return;
  }
  const auto& settings = std::get<config::HostConfig>(host);
  SeededRandom random;
  const SystemClock clock;
  for (const config::JobConfig& job : config::load_job_files(settings, environment).jobs) {
    if (std::find(names.begin(), names.end(), job.name) != names.end()) {
      try_job(job, plugin::effect_rules(job, settings.store_of(job.queue).kind, random, clock), registry, steps);
    }
  }
}

}  // namespace

Result<TrialVerdict> PluginTrial::run(TrialRequest request) const {
  TrialVerdict verdict;
  while (!request.files.empty() || !request.jobs.empty()) {
    SLUICE_TRY(end, run_trial_child(program_, command_line(request), step_limit_));
    if (end->cause.empty()) {
      break;
    }
    if (!blame(*end, request, verdict)) {
      return Error(ErrorCode::unavailable, "plugins cannot be tried: the process for it " + end->cause);
    }
  }
  return verdict;
}

void run_trial_process(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const struct rlimit no_core {};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    values[words[i]].push_back(words[i + 1]);
  }
  const Steps steps(values["--steps"].empty() ? STDERR_FILENO : std::atoi(values["--steps"].front().c_str()));
  plugin::PluginRegistry registry;
  registry.pin(read_pins(values["--pin"]));
  for (const std::string& file : values["--file"]) {
    steps.next(kLoad, file);
    registry.load(file);
  }
  steps.next("loaded", "");
  if (!values["--config"].empty()) {
    try_jobs(values["--config"].front(), values["--job"], registry, steps);
  }
  steps.next("end", "");
  std::_Exit(0);
}

}  // namespace sluice::runtime
