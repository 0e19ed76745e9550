#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/work/job_flow.hpp"
#include "host/work/notes.hpp"

namespace sluice::work {

/// A job's flow with its lock: what the job's threads share. Runs steps under the lock; wakes, counts and logs after
/// it.
class SharedFlow {
 public:
  /// Who can be called; each thread that waits remembers what it has seen.
  struct Caller {
    Condition condition;
    std::uint64_t calls = 0;
  };

  SharedFlow(std::string job, JobFlow& flow, const Clock& clock, observe::Log& log, observe::JobMetrics& metrics)
      : job_(std::move(job)), clock_(clock), log_(log), metrics_(metrics), flow_(flow) {}
  SharedFlow(const SharedFlow&) = delete;
  SharedFlow& operator=(const SharedFlow&) = delete;

  /// Runs `step(flow, now, notes)` under the lock and returns what it returns.
  template <typename Step>
  auto run(Step step) SLUICE_EXCLUDES(mutex_) {
    Notes notes;
    MutexLock lock(mutex_);
    if constexpr (std::is_void_v<decltype(step(flow_, SteadyTime{}, notes))>) {
      step(flow_, clock_.steady_now(), notes);
      count_calls(notes);
      lock.unlock();
      tell(notes);
    } else {
      auto result = step(flow_, clock_.steady_now(), notes);
      count_calls(notes);
      lock.unlock();
      tell(notes);
      return result;
    }
  }
  template <typename Look>
  auto look(Look look) const SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return look(std::as_const(flow_));
  }

  /// Each waits until it is called (again, since `seen`), `until`, or a stop request.
  void wait_poller(std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) {
    wait(poller_, seen, stop, until);
  }
  void wait_settler(std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) {
    wait(settler_, seen, stop, until);
  }
  void wait_keeper(std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) {
    wait(keeper_, seen, stop, until);
  }
  void wait_drained(std::uint64_t& seen, SteadyTime until) { wait(drained_, seen, {}, until); }
  /// Waits until messages are queued; false when the stop was requested.
  bool wait_work(const std::stop_token& stop);

  const Clock& clock() const { return clock_; }

 private:
  void wait(Caller& caller, std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) SLUICE_EXCLUDES(mutex_);
  void count_calls(const Notes& notes) SLUICE_REQUIRES(mutex_);
  void tell(const Notes& notes) SLUICE_EXCLUDES(mutex_);

  // Fixed after construction.
  const std::string job_;
  const Clock& clock_;
  observe::Log& log_;
  observe::JobMetrics& metrics_;

  mutable Mutex mutex_;
  JobFlow& flow_ SLUICE_GUARDED_BY(mutex_);
  // The conditions synchronise themselves, the counts are guarded by mutex_.
  Caller poller_;
  Caller settler_;
  Caller keeper_;
  Caller drained_;
  Condition work_;
};

}  // namespace sluice::work
