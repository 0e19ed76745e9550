#pragma once

#include <string>

#include "host/fleet/fleet.hpp"

namespace sluice::test {

/// 2026-11-20T12:00:00Z: when these records are looked at.
inline constexpr WallTime kNoon{std::chrono::seconds(1'795'176'000)};

inline fleet::JobRecord job_record(const std::string& name, const std::string& queue, std::uint32_t workers = 8) {
  fleet::JobRecord job;
  job.name = name;
  job.queue = queue;
  job.handler = name + "_handler";
  job.plugin = name + ".so";
  job.plugin_version = "1.2.0";
  job.concurrency = workers;
  job.file_concurrency = workers;
  return job;
}

inline fleet::KnownHost known_host(const std::string& name, std::int64_t pid, std::vector<fleet::JobRecord> jobs) {
  fleet::KnownHost host;
  host.record.instance = name + "-" + std::to_string(pid);
  host.record.name = name;
  host.record.pid = pid;
  host.record.version = "1.0.0";
  host.record.state = fleet::HostState::running;
  host.record.started_at = kNoon - std::chrono::hours(3);
  host.record.log_level = host.record.file_log_level = "info";
  host.record.jobs = std::move(jobs);
  host.age = std::chrono::seconds(1);
  host.place = "sluice.db";
  return host;
}

inline fleet::RunningRecord handler_at(const std::string& message, const fleet::JobRecord& job, Duration since) {
  fleet::RunningRecord handler;
  handler.message = message;
  handler.job = job.name;
  handler.queue = job.queue;
  handler.handler = job.handler;
  handler.worker = 1;
  handler.attempt = 1;
  handler.since = kNoon - since;
  handler.times_out_at = handler.since + std::chrono::seconds(60);
  return handler;
}

inline fleet::Given given(fleet::Wish wish, fleet::Target target, const std::string& name,
                          const std::string& value = {}) {
  fleet::Given made;
  made.directive.id = "d1";
  made.directive.wish = wish;
  made.directive.target = target;
  made.directive.name = name;
  made.directive.value = value;
  made.directive.by = "ann@ops-1";
  made.directive.at = kNoon - std::chrono::minutes(5);
  made.place = "sluice.db";
  made.version = 3;
  return made;
}

}  // namespace sluice::test
