#include <iterator>
#include <utility>

#include "config/files.hpp"
#include "config/sections.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

template <typename T>
std::vector<ConfigError>* errors_of(Parsed<T>& parsed) {
  return std::get_if<std::vector<ConfigError>>(&parsed);
}

void append(std::vector<ConfigError>& errors, std::vector<ConfigError> more) {
  errors.insert(errors.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

Parsed<JobConfig> load_job(const std::string& file, const Environment& environment) {
  Parsed<std::string> text = read_config_file(file);
  if (auto* errors = errors_of(text)) {
    return std::move(*errors);
  }
  return parse_job_config(std::get<std::string>(text), file, environment);
}

/// "jobs.d/a.toml:2", or only the file where the name is the file's.
std::string line_of(const Place& place) {
  return place.line == 0 ? place.file : place.file + ":" + std::to_string(place.line);
}

/// The name makes the deduplication id by which one message is sent, however many hosts and files there are.
void check_schedules(const JobConfig& job, std::map<std::string, Place>& names, std::vector<ConfigError>& errors) {
  for (const ScheduleConfig& schedule : job.schedules) {
    const auto [first, added] = names.emplace(schedule.name, schedule.place);
    if (!added) {
      errors.push_back({schedule.place, "the schedule name '" + schedule.name + "' is taken by " +
                                            line_of(first->second) + "; give one of them another name"});
    }
  }
}

/// What only shows when a job is seen beside the host and the other jobs.
std::vector<ConfigError> check_together(const std::vector<JobConfig>& jobs, const HostConfig& host) {
  std::vector<ConfigError> errors;
  std::map<std::string, Place> names;
  std::map<std::string, Place> schedules;
  for (const JobConfig& job : jobs) {
    check_schedules(job, schedules, errors);
    const auto [first, added] = names.emplace(job.name, job.name_place);
    if (!added) {
      errors.push_back({job.name_place, "the job name '" + job.name + "' is taken by " + line_of(first->second) +
                                            "; give one of them another 'name' in [job]"});
    }
    if (!outbox_named(job.queue) && host.store_of(job.queue).kind == StoreKind::dynamodb &&
        table_complaint(host.queue(job.queue).table) != nullptr) {
      errors.push_back({job.queue_place, "the queue's name '" + job.queue +
                                             "' cannot be a table's, which has 3 to 255 " +
                                             "characters; set 'table' in [queues." + job.queue + "] of " + host.file});
    }
  }
  return errors;
}

}  // namespace

Parsed<HostConfig> load_host_config(const std::string& file, const Environment& environment) {
  Parsed<std::string> text = read_config_file(file);
  if (auto* errors = errors_of(text)) {
    return std::move(*errors);
  }
  return parse_host_config(std::get<std::string>(text), file, environment);
}

JobFiles load_job_files(const HostConfig& host, const Environment& environment) {
  JobFiles result;
  MatchedFiles matched = match_files(host);
  result.errors = std::move(matched.errors);
  for (const std::string& file : matched.files) {
    Parsed<JobConfig> job = load_job(file, environment);
    if (auto* wrong = errors_of(job)) {
      append(result.errors, std::move(*wrong));
    } else {
      result.jobs.push_back(std::get<JobConfig>(std::move(job)));
    }
  }
  append(result.errors, check_together(result.jobs, host));
  append(result.errors, join_outboxes(result.jobs, host));
  return result;
}

Parsed<std::vector<JobConfig>> load_job_configs(const HostConfig& host, const Environment& environment) {
  JobFiles files = load_job_files(host, environment);
  if (!files.errors.empty()) {
    return std::move(files.errors);
  }
  return std::move(files.jobs);
}

}  // namespace sluice::config
