#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/fleet/fleet.hpp"

namespace sluice::operate {

/// A job as the job files here have it.
struct FileJob {
  std::string name;
  std::string queue;
  bool dead_letters = false;
  std::string handler;
  std::uint32_t concurrency = 0;
};

/// A job as the whole fleet runs it, beside what the files say and what operators want. A value.
struct JobSummary {
  std::string name;
  std::string queue;
  bool dead_letters = false;
  std::string handler;
  std::vector<std::string> plugins;           ///< "exec.so 1.2.0", each once; several while a fleet is being renewed
  std::optional<std::uint32_t> file_workers;  ///< of one host, by the job file here; else as the hosts' files say
  bool in_files = false;                      ///< a job file here has it
  std::vector<std::string> hosts;             ///< labels of those that run it; silent ones are not among them
  std::uint32_t paused_hosts = 0;
  std::uint32_t held_hosts = 0;  ///< whose budget for the queue holds the job back
  std::uint32_t workers = 0;     ///< in force, of all hosts
  std::uint32_t running = 0;
  std::uint32_t stuck = 0;
  // Since the job began on each of them.
  std::uint64_t claimed = 0;
  std::uint64_t done = 0;
  std::uint64_t retried = 0;
  std::uint64_t rejected = 0;
  std::uint64_t timed_out = 0;
  fleet::JobPace pace;               ///< rates are sums, times the worst
  std::vector<fleet::Given> wishes;  ///< what stands about it or about its queue

  bool paused() const { return !hosts.empty() && paused_hosts == hosts.size(); }
};

/// All jobs that files or hosts know, by name and queue.
std::vector<JobSummary> summarize_jobs(const std::vector<FileJob>& files, const fleet::FleetView& view,
                                       const fleet::SteeringView& steering);

}  // namespace sluice::operate
