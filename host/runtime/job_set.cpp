#include "host/runtime/job_set.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace sluice::runtime {

JobSet::JobSet(MakeJob make_job, const Clock& clock) : make_job_(std::move(make_job)), clock_(clock) {}

JobSet::~JobSet() = default;

Result<void> JobSet::start(const std::vector<JobPlan>& plans) {
  std::vector<JobPointer> jobs;
  for (const JobPlan& plan : plans) {
    auto job = make_job_(plan);
    if (!job) {
      return job.error();
    }
    jobs.push_back(std::move(*job));
  }
  for (const JobPointer& job : jobs) {
    run(job->config().name, job);
  }
  return {};
}

Result<JobSet::Changes> JobSet::reload(const std::vector<JobPlan>& plans, Duration drain_timeout) {
  SLUICE_ASSERT(!exchanging());
  retirements_.clear();
  std::map<std::string, JobPointer> before;
  {
    const MutexLock lock(mutex_);
    before = running_;
  }
  Changes changes;
  std::map<std::string, JobPointer> made;
  for (const JobPlan& plan : plans) {
    const auto found = before.find(plan.config.name);
    if (found != before.end() && found->second->config().same_job(plan.config)) {
      ++changes.unchanged;
      before.erase(found);
      continue;
    }
    auto job = make_job_(plan);
    if (!job) {
      return job.error();
    }
    (found == before.end() ? changes.added : changes.changed).push_back(plan.config.name);
    made.emplace(plan.config.name, std::move(*job));
  }
  const Deadline deadline = Deadline::after(clock_, drain_timeout);
  for (const auto& [name, job] : before) {
    const auto successor = made.find(name);
    if (successor == made.end()) {
      changes.removed.push_back(name);
    }
    retire(name, job, successor == made.end() ? nullptr : successor->second, deadline);
    made.erase(name);
  }
  for (const auto& [name, job] : made) {
    run(name, job);
  }
  return changes;
}

void JobSet::run(const std::string& name, const JobPointer& job) {
  const MutexLock lock(mutex_);
  if (stopping_) {
    return;
  }
  running_[name] = job;
  // Under the lock, so that a drain never meets a job that is in the set but not started.
  job->start();
}

void JobSet::retire(const std::string& name, JobPointer job, JobPointer successor, Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    running_.erase(name);
    leaving_.push_back(job);
  }
  job->begin_drain(deadline);
  retirements_[name] = std::jthread([this, name, job = std::move(job), successor = std::move(successor), deadline] {
    finish_retirement(name, job, successor, deadline);
  });
}

void JobSet::finish_retirement(const std::string& name, const JobPointer& job, const JobPointer& successor,
                               Deadline deadline) {
  const work::DrainReport report = job->drain(deadline);
  if (successor) {
    run(name, successor);
  }
  const MutexLock lock(mutex_);
  past_[name] += report.ledger;
  clean_ = clean_ && report.clean();
  std::erase(leaving_, job);
  if (report.handlers_running > 0) {
    undead_.push_back(job);
  }
}

bool JobSet::exchanging() const {
  const MutexLock lock(mutex_);
  return !leaving_.empty();
}

JobSet::Drained JobSet::drain(Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (const JobPointer& job : all_jobs()) {
    job->begin_drain(deadline);
  }
  retirements_.clear();
  std::map<std::string, JobPointer> running;
  {
    const MutexLock lock(mutex_);
    running = running_;
  }
  for (const auto& [name, job] : running) {
    const work::DrainReport report = job->drain(deadline);
    const MutexLock lock(mutex_);
    past_[name] += report.ledger;
    clean_ = clean_ && report.clean();
    running_.erase(name);
    if (report.handlers_running > 0) {
      undead_.push_back(job);
    }
  }
  const MutexLock lock(mutex_);
  Drained drained{past_, clean_, 0};
  for (const JobPointer& job : undead_) {
    drained.handlers_running += job->handlers_running();
  }
  return drained;
}

void JobSet::hard_stop() {
  for (const JobPointer& job : all_jobs()) {
    job->hard_stop();
  }
}

std::vector<JobSet::JobPointer> JobSet::all_jobs() const {
  const MutexLock lock(mutex_);
  std::vector<JobPointer> jobs = leaving_;
  for (const auto& [name, job] : running_) {
    jobs.push_back(job);
  }
  return jobs;
}

bool JobSet::quiescent() const {
  if (exchanging()) {
    return false;
  }
  const std::vector<JobPointer> jobs = all_jobs();
  return std::all_of(jobs.begin(), jobs.end(), [](const JobPointer& job) { return job->quiescent(); });
}

std::vector<work::StuckHandler> JobSet::stuck() const {
  std::vector<JobPointer> jobs = all_jobs();
  {
    const MutexLock lock(mutex_);
    jobs.insert(jobs.end(), undead_.begin(), undead_.end());
  }
  std::vector<work::StuckHandler> all;
  for (const JobPointer& job : jobs) {
    const auto some = job->stuck();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

work::LedgerSnapshot JobSet::total() const {
  const std::vector<JobPointer> jobs = all_jobs();
  work::LedgerSnapshot sum;
  for (const JobPointer& job : jobs) {
    sum += job->ledger();
  }
  const MutexLock lock(mutex_);
  for (const auto& [name, ledger] : past_) {
    sum += ledger;
  }
  return sum;
}

std::vector<queue::QueueAddress> JobSet::addresses() const {
  std::vector<queue::QueueAddress> all;
  for (const JobPointer& job : all_jobs()) {
    all.push_back(job->address());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace sluice::runtime
