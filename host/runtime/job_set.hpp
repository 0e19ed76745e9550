#pragma once

#include "host/runtime/job_plan.hpp"
#include "host/work/job.hpp"

namespace sluice::runtime {

/// The jobs that a host runs, by name: started together, exchanged one by one at a reload, drained together. `start`,
/// `exchange` and `drain` are the main thread's, `prepare` of who may wait, the rest anybody's. No lock is held while a
/// job starts, drains or is destroyed, so that counting is possible whatever hangs.
class JobSet : boost::noncopyable {
 public:
  using JobPointer = std::shared_ptr<work::Job>;

  /// Makes a job from its plan, not yet started. Called by several threads.
  using MakeJob = std::function<Result<std::unique_ptr<work::Job>>(const JobPlan&)>;
  /// How a job is to run beside what its file says.
  using Steer = std::function<work::JobSteering(const config::JobConfig&)>;
  /// Told why a job could not begin. Called without a lock held, by any thread.
  using Failed = std::function<void(const Error&)>;

  /// What a reload did, by job name.
  struct Changes {
    std::vector<std::string> added;
    std::vector<std::string>
        changed;  ///< where its plugin is another one with the versions: "mailer (mail.so 1.0.0, now 1.1.0)"
    std::vector<std::string> removed;
    std::size_t unchanged = 0;
  };

  /// A job and what it was made from.
  struct Member {
    JobPlan plan;
    JobPointer job;

    bool is(const config::JobConfig& other, const Handlers& handlers) const {
      return handlers_of(plan) == handlers && job->config().same_job(other);
    }
  };

  /// What a list of plans asks for, with its new jobs made and not started. A value.
  struct Exchange {
    Changes changes;
    std::map<std::string, Member> made;
    std::vector<std::string> leaving;  ///< changed or removed
  };

  /// What has become of all that was claimed. A value.
  struct Drained {
    std::map<std::string, work::LedgerSnapshot> jobs;
    bool clean = true;
    std::vector<std::string> left_behind{};  ///< why it is not: "job mailer: ..."
    /// Handlers or threads of exchanged jobs have not returned: the process is to be left, not the set destroyed.
    bool threads_left = false;
  };

  JobSet(MakeJob make_job, Failed failed, const Clock& clock)
      : make_job_(std::move(make_job)), failed_(std::move(failed)), clock_(clock) {}

  /// Makes the jobs of `plans` that do not run as they are yet, in the constructors of plugins for as long as those
  /// take. Fails when one cannot be made, or the system has no room for their threads; nothing has changed then.
  Result<Exchange> prepare(const std::vector<JobPlan>& plans) const;
  /// Starts the first jobs. When one cannot start, those that did stop hard, and a drain has to follow.
  Result<void> start(const Exchange& first);

  /// True when a job runs that this one, with these handlers, would not differ from.
  bool runs(const config::JobConfig& job, const Handlers& handlers) const {
    const MutexLock lock(mutex_);
    const auto found = running_.find(job.name);
    return found != running_.end() && found->second.is(job, handlers);
  }
  /// True while jobs of the last reload are still on their way out; `exchange` must wait for that to end.
  bool exchanging() const {
    const MutexLock lock(mutex_);
    return !leaving_.empty();
  }
  /// Brings the running jobs to what was prepared. Jobs that are the same run on undisturbed; changed and removed ones
  /// drain in the background within `drain_timeout`, and the changed ones' successors start when they have. A successor
  /// that cannot start gives its predecessor's place back.
  void exchange(Exchange next, Duration drain_timeout);

  /// How each job is to run beside what its file says, from now on and whatever jobs come later. No handler starts any
  /// more that this forbids when it has returned. From any thread.
  void steer(Steer steer) {
    {
      const MutexLock lock(mutex_);
      steer_ = std::move(steer);
      ++said_;
    }
    apply_steering(all_jobs());
  }
  /// Sets the stop token of the handler that works on this message in a job of that queue, or with an empty one of any;
  /// false: none does.
  bool cancel(std::string_view message_id, const std::string& queue) const {
    bool found = false;
    for (const JobPointer& job : all_jobs()) {
      found = job->cancel(message_id, queue) || found;
    }
    return found;
  }

  /// Begins the drain and returns at once; nothing starts any more. From any thread.
  void begin_drain(Deadline deadline);
  /// Ends every job, retiring ones too. Returns by the deadline or shortly after a hard stop.
  Drained drain(Deadline deadline);
  /// As things stand, for whoever cannot wait for the drain: what has not ended counts as stranded.
  Drained account() const;
  /// Makes a `drain` under way return soon. From any thread, also before or without one.
  void hard_stop() {
    for (const JobPointer& job : all_jobs()) {
      job->hard_stop();
    }
  }

  /// True when every job is quiescent and none is being exchanged.
  bool quiescent() const {
    if (exchanging()) {
      return false;
    }
    const std::vector<JobPointer> jobs = all_jobs();
    return std::all_of(jobs.begin(), jobs.end(), [](const JobPointer& job) { return job->activity().quiescent; });
  }
  /// A job that can do nothing because the store refuses the role, by name, and why; nothing: none.
  std::optional<std::pair<std::string, Error>> denial() const;
  /// Handlers at work, each after its job; those of jobs that have ended included.
  std::vector<std::pair<JobPointer, work::RunningHandler>> running() const;
  /// Brings the gauges of all jobs' workers up to date.
  void publish_workers() const {
    for (const JobPointer& job : all_jobs()) {
      job->publish_workers();
    }
  }
  /// A job has lost so many workers to handlers that do not return that no more take their place.
  bool out_of_workers() const {
    const std::vector<JobPointer> jobs = all_jobs();
    return std::any_of(jobs.begin(), jobs.end(), [](const JobPointer& job) { return job->activity().out_of_workers; });
  }
  work::LedgerSnapshot total() const;
  /// The jobs that run, by name.
  std::vector<Member> members() const {
    std::vector<Member> all;
    const MutexLock lock(mutex_);
    for (const auto& [name, member] : running_) {
      all.push_back(member);
    }
    return all;
  }
  /// The queues that jobs work on now.
  std::vector<queue::QueueAddress> addresses() const;

 private:
  Result<void> run(const std::string& name, const Member& member);
  /// Tells these jobs how to run, and again when something else is said meanwhile.
  void apply_steering(const std::vector<JobPointer>& jobs) const;
  void retire(Member member, Member successor, Deadline deadline);
  void finish_retirement(Member member, Member next, Deadline deadline);
  /// Starts the successor, or the predecessor's like when that fails.
  void hand_over(const JobPlan& predecessor, const Member& successor);
  void close_books(const JobPointer& job, const work::JobActivity& end);
  /// A job that has drained may still be in the destructor of its handler.
  bool any_retires() const SLUICE_REQUIRES(mutex_) {
    return !std::all_of(retirements_.begin(), retirements_.end(), [](const auto& thread) { return thread.ended(); });
  }
  std::vector<JobPointer> all_jobs() const {
    const MutexLock lock(mutex_);
    return jobs_now();
  }
  std::vector<JobPointer> jobs_now() const SLUICE_REQUIRES(mutex_) {
    std::vector<JobPointer> jobs = leaving_;
    for (const auto& [name, member] : running_) {
      jobs.push_back(member.job);
    }
    return jobs;
  }

  // Fixed after construction.
  const MakeJob make_job_;
  const Failed failed_;
  const Clock& clock_;
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, Member> running_ SLUICE_GUARDED_BY(mutex_);
  Drained past_ SLUICE_GUARDED_BY(mutex_);                    ///< of jobs that have ended
  std::vector<JobPointer> undead_ SLUICE_GUARDED_BY(mutex_);  ///< ended, but a handler has not returned
  std::vector<JobPointer> leaving_ SLUICE_GUARDED_BY(mutex_);
  Steer steer_ SLUICE_GUARDED_BY(mutex_);             ///< as was said last
  std::uint64_t said_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< how often
  bool stopping_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that the threads end before what they use.
  std::list<ServiceThread> retirements_
      SLUICE_GUARDED_BY(mutex_);  ///< of jobs on their way out, until they are destroyed
};

}  // namespace sluice::runtime
