#include "host/runtime/job_plan.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "config/file_trust.hpp"
#include "host/runtime/plugin_gate.hpp"
#include "host/runtime/thread_room.hpp"

namespace sluice::runtime {

using config::ConfigError;
using config::JobConfig;
using config::Parsed;

namespace {

void name_plugin(JobPlan& plan, const plugin::PluginRegistry& registry) {
  for (const plugin::LoadedPlugin& loaded : registry.plugins()) {
    const sluice_handler* const* begin = loaded.plugin->handlers;
    if (std::find(begin, begin + loaded.plugin->handler_count, plan.handler) != begin + loaded.plugin->handler_count) {
      plan.plugin_file = loaded.file;
      plan.plugin_version = loaded.plugin->version == nullptr ? "" : loaded.plugin->version;
    }
  }
}

}  // namespace

Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<JobConfig>& jobs, const plugin::PluginRegistry& registry) {
  std::vector<JobPlan> plans;
  std::vector<ConfigError> errors;
  for (const JobConfig& job : jobs) {
    const auto handler = job.plugin ? registry.handler(job.handler, *job.plugin) : registry.handler(job.handler);
    if (!handler) {
      errors.push_back({job.plugin ? job.plugin->place : job.handler_place, handler.error().message()});
      continue;
    }
    auto options = plugin::bind_options(**handler, job);
    if (auto* wrong = std::get_if<std::vector<ConfigError>>(&options)) {
      std::move(wrong->begin(), wrong->end(), std::back_inserter(errors));
      continue;
    }
    JobPlan& plan = plans.emplace_back();
    plan.config = job;
    plan.handler = *handler;
    plan.options = std::get<plugin::OptionValues>(std::move(options));
    name_plugin(plan, registry);
  }
  if (!errors.empty()) {
    return errors;
  }
  return plans;
}

std::vector<ConfigError> distrusted(const config::HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::vector<ConfigError> errors;
  if (host.allow_insecure_files) {
    return errors;
  }
  std::vector<std::string> files{host.file, host.state_dir};
  for (const JobConfig& job : jobs) {
    files.push_back(job.file);
  }
  for (const std::string& file : files) {
    if (const auto why = config::distrust(file)) {
      errors.push_back({{file}, *why});
    }
  }
  return errors;
}

Parsed<std::vector<JobPlan>> load_job_plans(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                            const RunsAlready& runs_already) {
  auto files = config::load_job_files(host, config::process_environment());
  auto& errors = files.errors;
  const auto add = [&errors](std::vector<ConfigError> more) {
    std::move(more.begin(), more.end(), std::back_inserter(errors));
  };
  add(distrusted(host, files.jobs));
  add(refused_rules(host, files.jobs));
  std::vector<JobConfig> fresh;
  if (errors.empty()) {
    std::copy_if(files.jobs.begin(), files.jobs.end(), std::back_inserter(fresh),
                 [&runs_already](const JobConfig& job) { return !runs_already(job); });
  }
  registry.pin(plugin::pins_of(files.jobs));
  auto admitted = PluginGate(host, registry).admit(fresh);
  if (!admitted) {
    add({{{host.file}, admitted.error().message()}});
    return std::move(errors);
  }
  add(std::move(*admitted));
  // The good jobs are bound even when others are bad, so that everything wrong is reported at once.
  auto planned = plan_jobs(files.jobs, registry);
  if (auto* wrong = std::get_if<std::vector<ConfigError>>(&planned)) {
    add(std::move(*wrong));
  }
  if (!errors.empty()) {
    return std::move(errors);
  }
  return planned;
}

Error cannot_start(const JobPlan& plan, const Error& error) {
  std::string text = plan.config.file + ": job '" + plan.config.name + "' cannot start: " + error.message();
  if (error.code() == ErrorCode::unavailable) {
    text += " (limits: " + thread_limits() + ")";
  }
  return {error.code(), std::move(text)};
}

}  // namespace sluice::runtime
