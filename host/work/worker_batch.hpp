#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/outcome.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// Whether a handler that has come back with `outcome` leaves nothing to commit but the end of its message.
bool only_removal_is_left(const Task& task, const plugin::Outcome& outcome);

/// The messages that one worker has taken: those it will start, the one it runs, those it has finished. While the
/// worker is deep in a long attempt the flow takes back the first and the last kind.
///
/// Thread-safe; its lock is taken last and held for moments. A resource: the worker's, for the job's life.
class WorkerBatch {
 public:
  struct Finished {
    Task* task = nullptr;
    plugin::Outcome outcome;
    Duration took{};
    bool expired = false;    ///< never started: its lease had run out in the hand
    bool timed_out = false;  ///< it ended after its time-out
  };
  struct View {
    Task* running = nullptr;
    SteadyTime started_at{};
    SteadyTime times_out_at{};  ///< SteadyTime::max(): never
    std::size_t unstarted = 0;
  };

  /// `timeout` of an attempt; zero: none.
  WorkerBatch(const Clock& clock, Duration timeout);
  WorkerBatch(const WorkerBatch&) = delete;
  WorkerBatch& operator=(const WorkerBatch&) = delete;

  // The worker's side.

  /// Starts the next message and arms the attempt; null when the hand is empty. What may no longer be started by its
  /// `start_before` is passed over and finishes as expired.
  Task* next(SteadyTime now);
  void finish(plugin::Outcome outcome, SteadyTime now);
  /// In place of `finish`: what `next` gave was not started, and finishes as expired.
  void pass_over();
  plugin::Attempt& attempt() { return attempt_; }
  Duration timeout() const { return timeout_; }

  // The flow's side.

  void deal(Task& task, SteadyTime start_before);
  /// Moves what has finished to the end of `finished`.
  void collect(std::vector<Finished>& finished);
  /// Takes back what has not started, in order.
  void recall(std::vector<Task*>& unstarted);
  /// Takes back one message; false when it has started.
  bool recall(const Task& task);
  /// Sets the stop token of the running attempt, if any; it is waited for until `end`.
  void request_stop(SteadyTime end);
  /// Sets that of the message with this id, if it is the one that runs; false: it is not.
  bool request_stop_of(std::string_view message_id);
  /// Sets it, and fails its extensions, if that message is the one that runs.
  void lose_lease(const Task& task);
  View view() const;
  bool stop_requested() const { return attempt_.stop_requested(); }

 private:
  struct Dealt {
    Task* task = nullptr;
    SteadyTime start_before{};
  };

  // Fixed after construction.
  const Duration timeout_;
  // Synchronises itself.
  plugin::Attempt attempt_;
  mutable Mutex mutex_;
  std::deque<Dealt> unstarted_ SLUICE_GUARDED_BY(mutex_);
  Task* running_ SLUICE_GUARDED_BY(mutex_) = nullptr;
  SteadyTime started_at_ SLUICE_GUARDED_BY(mutex_){};
  std::vector<Finished> finished_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::work
