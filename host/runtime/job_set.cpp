#include "host/runtime/job_set.hpp"

#include <filesystem>

#include "base/ranges.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

namespace {

/// For a thread whose job has drained to destroy it, before it counts as one that does not end.
constexpr Duration kDestructionTime = std::chrono::milliseconds(200);

/// "mailer", or "mailer (mail.so 1.0.0, now 1.1.0)" where its plugin is not the same.
std::string change_text(const JobPlan& before, const JobPlan& now) {
  if (before.handler == now.handler) {
    return now.config.name;
  }
  const auto plugin = [](const JobPlan& plan) {
    return std::filesystem::path(plan.plugin_file).filename().string() + " " + plan.plugin_version;
  };
  const std::string was = plugin(before);
  const std::string is = before.plugin_file == now.plugin_file ? now.plugin_version : plugin(now);
  return now.config.name + " (" + was + (was == plugin(now) ? ", built anew)" : ", now " + is + ")");
}

void add_of_job(const std::string& job, const std::vector<std::string>& lines, std::vector<std::string>& all) {
  for (const std::string& line : lines) {
    all.push_back("job " + job + ": " + line);
  }
}

}  // namespace

Result<JobSet::Exchange> JobSet::prepare(const std::vector<JobPlan>& plans) const {
  std::map<std::string, Member> before;
  {
    const MutexLock lock(mutex_);
    before = running_;
  }
  Exchange next;
  std::size_t threads = 0;
  for (const JobPlan& plan : plans) {
    const auto found = before.find(plan.config.name);
    if (found != before.end() && found->second.is(plan.config, handlers_of(plan))) {
      ++next.changes.unchanged;
      before.erase(found);
      continue;
    }
    SLUICE_TRY(job, make_job_(plan));
    if (found == before.end()) {
      next.changes.added.push_back(plan.config.name);
    } else {
      next.changes.changed.push_back(change_text(found->second.plan, plan));
    }
    next.made.emplace(plan.config.name, Member{plan, JobPointer(std::move(*job))});
    threads += threads_of(work::workers_of(plan.config, *plan.handler));
  }
  std::size_t freed = 0;
  for (const auto& [name, member] : before) {
    next.leaving.push_back(name);
    freed += threads_of(work::workers_of(member.plan.config, *member.plan.handler));
    if (next.made.count(name) == 0) {
      next.changes.removed.push_back(name);
    }
  }
  SLUICE_PASS_ON(room_for_threads(threads - std::min(threads, freed)));
  return next;
}

Result<void> JobSet::start(const Exchange& first) {
  for (const auto& [name, member] : first.made) {
    if (auto started = run(name, member); !started) {
      hard_stop();
      return started;
    }
  }
  return {};
}

void JobSet::exchange(Exchange next, Duration drain_timeout) {
  SLUICE_ASSERT(!exchanging());
  const Deadline deadline = Deadline::after(clock_, drain_timeout);
  for (const std::string& name : next.leaving) {
    Member member;
    {
      const MutexLock lock(mutex_);
      member = running_.at(name);
    }
    const auto successor = next.made.find(name);
    retire(std::move(member), successor == next.made.end() ? Member() : successor->second, deadline);
    next.made.erase(name);
  }
  for (const auto& [name, member] : next.made) {
    if (auto started = run(name, member); !started) {
      failed_(started.error());
    }
  }
}

Result<void> JobSet::run(const std::string& name, const Member& member) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) {
      return {};
    }
  }
  // Before it can begin anything.
  apply_steering({member.job});
  if (auto started = member.job->start(); !started) {
    return cannot_start(member.plan, started.error());
  }
  bool stopping = false;
  {
    const MutexLock lock(mutex_);
    stopping = stopping_;
    if (!stopping) {
      running_[name] = member;
    } else {
      leaving_.push_back(member.job);
    }
  }
  if (stopping) {  // Meanwhile the drain has begun, and has not met this job.
    member.job->hard_stop();
    close_books(member.job, member.job->drain(Deadline::after(clock_, Duration::zero())));
    return {};
  }
  // Whoever steered meanwhile has not met this job.
  apply_steering({member.job});
  return {};
}

void JobSet::apply_steering(const std::vector<JobPointer>& jobs) const {
  std::uint64_t applied = 0;
  while (true) {
    Steer steer;
    {
      const MutexLock lock(mutex_);
      // Another thread may say something else while this one is at it.
      if (applied == said_) {
        return;
      }
      applied = said_;
      steer = steer_;
    }
    for (const JobPointer& job : jobs) {
      job->steer(steer(job->config()));
    }
  }
}

void JobSet::retire(Member member, Member successor, Deadline deadline) {
  const JobPointer job = member.job;
  const std::string name = member.plan.config.name;
  Result<void> started;
  {
    const MutexLock lock(mutex_);
    retirements_.remove_if([](const ServiceThread& thread) { return thread.ended(); });
    started = retirements_.emplace_back("sluice-retire")
                  .start([this, leaving = std::move(member), next = std::move(successor),
                          deadline](const std::stop_token&) mutable {
                    finish_retirement(std::move(leaving), std::move(next), deadline);
                  });
    if (started) {
      running_.erase(name);
      leaving_.push_back(job);
    } else {
      retirements_.pop_back();
    }
  }
  if (!started) {
    failed_(Error(
        ErrorCode::unavailable,
        "job '" + name + "' runs on as it was, because there is no thread to end it: " + started.error().message()));
    return;
  }
  job->begin_drain(deadline);
}

void JobSet::finish_retirement(Member member, Member next, Deadline deadline) {
  // Let go of before the thread counts as ended.
  const Member successor = std::move(next);
  const work::JobActivity end = member.job->drain(deadline);
  if (successor.job) {
    hand_over(member.plan, successor);
  }
  close_books(member.job, end);
  // The last of it: from here on the thread is in the handler's destructor, for as long as that takes.
  member.job.reset();
}

void JobSet::hand_over(const JobPlan& predecessor, const Member& successor) {
  const std::string& name = predecessor.config.name;
  const auto started = run(name, successor);
  if (started || !SLUICE_GUARD(place_given_back)) {
    return;
  }
  failed_(Error(started.error().code(), started.error().message() + "; it goes on as it was"));
  // The one that has drained cannot start a second time.
  auto again = make_job_(predecessor);
  const auto back = again ? run(name, {predecessor, JobPointer(std::move(*again))}) : Result<void>(again.error());
  if (!back) {
    failed_(back.error());
  }
}

void JobSet::close_books(const JobPointer& job, const work::JobActivity& end) {
  {
    const MutexLock lock(mutex_);
    past_.jobs[job->config().name] += end.ledger;
    past_.clean = past_.clean && end.clean();
    add_of_job(job->config().name, work::left_behind(end, clock_.steady_now()), past_.left_behind);
    std::erase(leaving_, job);
    std::erase_if(running_, [&job](const auto& entry) { return entry.second.job == job; });
    if (!job->at_rest()) {
      undead_.push_back(job);
    }
  }
  changed_.notify_all();
}

void JobSet::begin_drain(Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  for (const JobPointer& job : all_jobs()) {
    job->begin_drain(deadline);
  }
}

JobSet::Drained JobSet::drain(Deadline deadline) {
  begin_drain(deadline);
  for (const Member& member : members()) {
    const work::JobActivity end = member.job->drain(deadline);
    close_books(member.job, end);
    if (end.denial) {
      const MutexLock lock(mutex_);
      past_.clean = false;  // what it was there for was left undone
    }
  }
  std::vector<ServiceThread*> retirements;
  {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, std::max(deadline.time(), clock_.steady_now()),
                        [this]() SLUICE_NO_TSA { return leaving_.empty(); });
    // Nobody but this thread adds or removes any.
    retirements = mapped(retirements_, [](ServiceThread& thread) { return &thread; });
  }
  const SteadyTime limit = clock_.machine_time(clock_.steady_now() + kDestructionTime);
  for (ServiceThread* retirement : retirements) {
    retirement->stop_until(limit);
  }
  return account();
}

JobSet::Drained JobSet::account() const {
  std::vector<JobPointer> open;
  std::vector<JobPointer> undead;
  Drained drained;
  {
    const MutexLock lock(mutex_);
    open = jobs_now();
    drained = past_;
    drained.threads_left = any_retires() || !open.empty();
    undead = undead_;
  }
  for (const JobPointer& job : open) {
    work::JobActivity activity = job->activity();
    activity.ledger.close();
    drained.jobs[job->config().name] += activity.ledger;
    drained.clean = drained.clean && activity.clean() && !activity.denial;
    add_of_job(job->config().name, work::left_behind(activity, clock_.steady_now()), drained.left_behind);
  }
  for (const JobPointer& job : undead) {
    drained.threads_left = drained.threads_left || !job->at_rest();
  }
  return drained;
}

std::optional<std::pair<std::string, Error>> JobSet::denial() const {
  for (const JobPointer& job : all_jobs()) {
    if (const auto denial = job->activity().denial) {
      return std::pair(job->config().name, *denial);
    }
  }
  return std::nullopt;
}

std::vector<std::pair<JobSet::JobPointer, work::RunningHandler>> JobSet::running() const {
  std::vector<JobPointer> jobs = all_jobs();
  {
    const MutexLock lock(mutex_);
    jobs.insert(jobs.end(), undead_.begin(), undead_.end());
  }
  std::vector<std::pair<JobPointer, work::RunningHandler>> all;
  for (const JobPointer& job : jobs) {
    for (work::RunningHandler& handler : job->activity().running) {
      all.emplace_back(job, std::move(handler));
    }
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
  for (const auto& [name, ledger] : past_.jobs) {
    sum += ledger;
  }
  return sum;
}

std::vector<queue::QueueAddress> JobSet::addresses() const {
  std::vector<queue::QueueAddress> all;
  for (const JobPointer& job : all_jobs()) {
    const auto some = work::addresses_of(job->config());
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace sluice::runtime
