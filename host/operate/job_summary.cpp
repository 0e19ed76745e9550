#include "host/operate/job_summary.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sluice::operate {
namespace {

using fleet::Directive;
using fleet::Target;
using fleet::Wish;
using Key = std::pair<std::string, std::pair<std::string, bool>>;

void add(JobSummary& summary, const fleet::HostRecord& host, const fleet::JobRecord& job) {
  summary.handler = job.handler;
  const std::string plugin = job.plugin + (job.plugin_version.empty() ? "" : " " + job.plugin_version);
  if (!plugin.empty() && std::find(summary.plugins.begin(), summary.plugins.end(), plugin) == summary.plugins.end()) {
    summary.plugins.push_back(plugin);
  }
  if (!summary.in_files) {
    summary.file_workers = job.file_concurrency;
  }
  summary.hosts.push_back(host.label());
  summary.paused_hosts += job.paused ? 1 : 0;
  summary.held_hosts += job.held_by_budget ? 1 : 0;
  summary.workers += job.concurrency;
  summary.running += job.running;
  summary.stuck += job.stuck;
  summary.claimed += job.claimed;
  summary.done += job.done;
  summary.retried += job.retried;
  summary.rejected += job.rejected;
  summary.timed_out += job.timed_out;
  summary.pace.claimed += job.pace.claimed;
  summary.pace.done += job.pace.done;
  summary.pace.failed += job.pace.failed;
  summary.pace.mean = std::max(summary.pace.mean, job.pace.mean);
  summary.pace.p95 = std::max(summary.pace.p95, job.pace.p95);
  summary.pace.slowest = std::max(summary.pace.slowest, job.pace.slowest);
}

bool is_about(const Directive& directive, const JobSummary& job) {
  const bool steers_jobs = directive.wish == Wish::pause || directive.wish == Wish::scale;
  return steers_jobs && ((directive.target == Target::job && directive.name == job.name) ||
                         (directive.target == Target::queue && fleet::draws_from(job.queue, directive.name)));
}

}  // namespace

std::vector<JobSummary> summarize_jobs(const std::vector<FileJob>& files, const fleet::FleetView& view,
                                       const fleet::SteeringView& steering) {
  std::map<Key, JobSummary> found;
  const auto job_of = [&found](const std::string& name, const std::string& queue, bool dead_letters) -> JobSummary& {
    JobSummary& summary = found[{name, {queue, dead_letters}}];
    summary.name = name;
    summary.queue = queue;
    summary.dead_letters = dead_letters;
    return summary;
  };
  for (const FileJob& file : files) {
    JobSummary& summary = job_of(file.name, file.queue, file.dead_letters);
    summary.in_files = true;
    summary.file_workers = file.concurrency;
    summary.handler = file.handler;
  }
  for (const fleet::KnownHost& host : view.hosts) {
    for (const fleet::JobRecord& job : host.record.jobs) {
      if (host.pulse != fleet::Pulse::silent) {
        add(job_of(job.name, job.queue, job.dead_letters), host.record, job);
      }
    }
  }
  std::vector<JobSummary> jobs;
  for (auto& [key, summary] : found) {
    std::copy_if(steering.given.begin(), steering.given.end(), std::back_inserter(summary.wishes),
                 [job = &summary](const fleet::Given& given) { return is_about(given.directive, *job); });
    jobs.push_back(std::move(summary));
  }
  return jobs;
}

}  // namespace sluice::operate
