#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/work/job.hpp"

namespace sluice::runtime {

/// The jobs that a host runs, by name: started together, exchanged one by one at a reload, drained together.
///
/// `start`, `reload` and `drain` are called by the host's main thread; the rest by any.
class JobSet {
 public:
  /// Makes a job from its plan, not yet started.
  using MakeJob = std::function<Result<std::unique_ptr<work::Job>>(const JobPlan&)>;

  /// What a reload did, by job name.
  struct Changes {
    std::vector<std::string> added;
    std::vector<std::string> changed;
    std::vector<std::string> removed;
    std::size_t unchanged = 0;
  };

  struct Drained {
    std::map<std::string, work::LedgerSnapshot> jobs;
    bool clean = true;
    std::uint32_t handlers_running = 0;  ///< when not 0 the set must not be destroyed: leave the process instead
  };

  JobSet(MakeJob make_job, const Clock& clock);
  ~JobSet();
  JobSet(const JobSet&) = delete;
  JobSet& operator=(const JobSet&) = delete;

  /// Makes all jobs, then starts them; starts none when one cannot be made.
  Result<void> start(const std::vector<JobPlan>& plans);

  /// True while jobs of the last reload are still on their way out; `reload` must wait for that to end.
  bool exchanging() const;
  /// Brings the running jobs to `plans`. Jobs that are the same run on undisturbed; changed and removed ones drain in
  /// the background within `drain_timeout`, and the changed ones' successors start when they have. When one of the new
  /// jobs cannot be made nothing changes.
  Result<Changes> reload(const std::vector<JobPlan>& plans, Duration drain_timeout);

  /// Ends every job, retiring ones too. Returns by the deadline or shortly after a hard stop.
  Drained drain(Deadline deadline);
  /// Makes a `drain` under way return soon. From any thread, also before or without one.
  void hard_stop();

  /// True when every job is quiescent and none is being exchanged.
  bool quiescent() const;
  std::vector<work::StuckHandler> stuck() const;
  work::LedgerSnapshot total() const;
  /// The queues that jobs work on now.
  std::vector<queue::QueueAddress> addresses() const;

 private:
  using JobPointer = std::shared_ptr<work::Job>;

  void retire(const std::string& name, JobPointer job, JobPointer successor, Deadline deadline);
  void finish_retirement(const std::string& name, const JobPointer& job, const JobPointer& successor,
                         Deadline deadline);
  void run(const std::string& name, const JobPointer& job);
  std::vector<JobPointer> all_jobs() const;

  // Fixed after construction.
  const MakeJob make_job_;
  const Clock& clock_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<std::string, JobPointer> running_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, work::LedgerSnapshot> past_ SLUICE_GUARDED_BY(mutex_);  ///< of jobs that have ended, by name
  std::vector<JobPointer> undead_ SLUICE_GUARDED_BY(mutex_);  ///< ended, but a handler has not returned
  std::vector<JobPointer> leaving_ SLUICE_GUARDED_BY(mutex_);
  bool stopping_ SLUICE_GUARDED_BY(mutex_) = false;
  bool clean_ SLUICE_GUARDED_BY(mutex_) = true;

  // Touched only by the main thread. Last, so that the threads end before what they use.
  std::map<std::string, std::jthread> retirements_;
};

}  // namespace sluice::runtime
