#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/work/job_flow.hpp"
#include "host/work/step_effects.hpp"

namespace sluice::work {

/// A job's flow with its lock: what the job's threads share. Runs steps under the lock; wakes, counts, logs and has
/// threads made after it.
class SharedFlow {
 public:
  /// Who waits to be called, besides the workers.
  enum class Caller { poller, settler, keeper, drain, keys };

  /// `traced`: the job's messages are, and what is logged about one says where in its trace it belongs.
  SharedFlow(std::string job, JobFlow& flow, const Clock& clock, observe::Log& log, observe::JobMetrics& metrics,
             bool traced = false)
      : job_(std::move(job)), traced_(traced), clock_(clock), log_(log), metrics_(metrics), flow_(flow) {}
  SharedFlow(const SharedFlow&) = delete;
  SharedFlow& operator=(const SharedFlow&) = delete;

  /// Who makes the threads that the flow asks for; called without the lock, from any thread. Before any step.
  using Hire = std::function<void(SeatKind kind)>;
  void hire_with(Hire hire) { hire_ = std::move(hire); }

  /// Runs `step(flow, now, notes)` under the lock and returns what it returns.
  template <typename Step>
  auto run(Step step) SLUICE_EXCLUDES(mutex_) {
    StepEffects notes;
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

  /// Waits until it is called (again, since `seen`), `until`, or a stop request.
  void wait(Caller caller, std::uint64_t& seen, const std::stop_token& stop, SteadyTime until) SLUICE_EXCLUDES(mutex_);
  /// Waits until there is something for a worker of this kind; false: `until` has come, or the stop was requested.
  bool wait_work(SeatKind kind, const std::stop_token& stop, SteadyTime until) SLUICE_EXCLUDES(mutex_);

  const Clock& clock() const { return clock_; }
  /// For lines that no step notes.
  void log(observe::LogLevel level, std::string_view text, const std::string& reason) {
    log_.write(level, text, {{"job", job_}, {"reason", reason}});
  }

  observe::JobMetrics& metrics() const { return metrics_; }

 private:
  struct Waiting {
    Condition condition;
    std::uint64_t calls = 0;
  };

  Waiting& waiting(Caller caller) { return waiting_[static_cast<std::size_t>(caller)]; }
  Condition& work(SeatKind kind) { return kind == SeatKind::lane ? lane_work_ : work_; }
  void count_calls(const StepEffects& notes) SLUICE_REQUIRES(mutex_);
  void tell(const StepEffects& notes) SLUICE_EXCLUDES(mutex_);

  // Fixed after construction, `hire_` before the first step.
  const std::string job_;
  const bool traced_;
  const Clock& clock_;
  observe::Log& log_;
  observe::JobMetrics& metrics_;
  Hire hire_;

  mutable Mutex mutex_;
  JobFlow& flow_ SLUICE_GUARDED_BY(mutex_);
  // The conditions synchronise themselves, the counts are guarded by mutex_.
  std::array<Waiting, 5> waiting_;
  Condition work_;
  Condition lane_work_;
};

}  // namespace sluice::work
