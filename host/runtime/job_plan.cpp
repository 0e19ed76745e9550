#include "host/runtime/job_plan.hpp"

#include <iterator>
#include <utility>
#include <variant>

namespace sluice::runtime {

using config::ConfigError;
using config::JobConfig;
using config::Parsed;

Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<JobConfig>& jobs, const plugin::PluginRegistry& registry) {
  std::vector<JobPlan> plans;
  std::vector<ConfigError> errors;
  for (const JobConfig& job : jobs) {
    const auto handler = registry.handler(job.handler);
    if (!handler) {
      errors.push_back({job.handler_place, handler.error().message()});
      continue;
    }
    auto options = plugin::bind_options(**handler, job);
    if (auto* wrong = std::get_if<std::vector<ConfigError>>(&options)) {
      std::move(wrong->begin(), wrong->end(), std::back_inserter(errors));
      continue;
    }
    plans.push_back({job, *handler, std::get<plugin::OptionValues>(std::move(options))});
  }
  if (!errors.empty()) {
    return errors;
  }
  return plans;
}

Parsed<std::vector<JobPlan>> load_job_plans(const config::HostConfig& host, plugin::PluginRegistry& registry) {
  auto files = config::load_job_files(host, config::process_environment());
  registry.scan(host.plugin_dirs);
  // The good jobs are bound even when others are bad, so that everything wrong is reported at once.
  auto planned = plan_jobs(files.jobs, registry);
  if (auto* wrong = std::get_if<std::vector<ConfigError>>(&planned)) {
    std::move(wrong->begin(), wrong->end(), std::back_inserter(files.errors));
  }
  if (!files.errors.empty()) {
    return std::move(files.errors);
  }
  return planned;
}

}  // namespace sluice::runtime
