#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"

namespace sluice::cli {

/// What operators want of jobs, beside what their files say. A value.
struct SteeringRemarks {
  /// "paused by ann@ops-1 5m ago, scaled to 16 by ann@ops-1 2h ago", by the job's name; jobs as their files say are not
  /// among them.
  std::map<std::string, std::string> jobs;
  /// Why it could not be read; nothing where it could, or where no store is there yet.
  std::optional<Error> trouble;
};

/// Reads it from the stores of these jobs' queues, in two seconds at most. A file that is not there is not made.
SteeringRemarks steering_remarks(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs);

}  // namespace sluice::cli
