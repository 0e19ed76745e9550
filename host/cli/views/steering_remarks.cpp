#include "host/cli/views/steering_remarks.hpp"

#include <filesystem>
#include <set>

#include "base/random.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/fleet_report.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kLookTime = std::chrono::seconds(2);

/// Queues whose store can hold something about them. To look for a file would make it.
std::vector<std::string> queues_with_store(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs) {
  std::set<std::string> names;
  for (const config::JobConfig& job : jobs) {
    for (const config::WeightedQueue& queue : work::queues_of(job)) {
      const config::StoreConfig& store = host.store_of(queue.name);
      std::error_code ignored;
      if (store.kind != config::StoreKind::sqlite || std::filesystem::exists(store.path, ignored)) {
        names.insert(queue.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

SteeringRemarks steering_remarks(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs) {
  SteeringRemarks remarks;
  const std::vector<std::string> queues = queues_with_store(host, jobs);
  if (queues.empty()) {
    return remarks;
  }
  const SystemClock clock;
  SeededRandom random;
  runtime::HostQueues stores(host, clock, random, nullptr);
  const auto fleet = fleet::Fleet::open(stores, queues, random);
  const auto steering = fleet ? (*fleet)->steering(Deadline::after(clock, kLookTime)) : fleet.error();
  if (!steering) {
    remarks.trouble = steering.error();
    return remarks;
  }
  std::vector<operate::FileJob> files;
  files.reserve(jobs.size());
  for (const config::JobConfig& job : jobs) {
    files.push_back({job.name, work::queue_text(job), job.source == config::Source::dlq, job.handler, job.concurrency});
  }
  for (const operate::JobSummary& job : operate::summarize_jobs(files, {}, *steering)) {
    for (const std::string& text : operate::wish_texts(job.wishes, clock.wall_now())) {
      std::string& all = remarks.jobs[job.name];
      all += (all.empty() ? "" : ", ") + text;
    }
  }
  if (!steering->troubles.empty()) {
    remarks.trouble = steering->troubles.front().error;
  }
  return remarks;
}

}  // namespace sluice::cli
