#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/outbox/row_scheduler.hpp"

namespace sluice::queue::outbox {

/// The RowScheduler between the threads of a source: who claims, who settles, who reads and who holds the locks. Wakes
/// the reader when there may be something to read, and tells who claims when rows are ready. Thread-safe.
class SharedScheduler {
 public:
  /// `told` is called without any lock when rows have become ready after a claim brought less than it asked for.
  explicit SharedScheduler(RowScheduler::Settings settings);

  void on_ready(std::function<void()> told);

  /// Does something with the line; afterwards whoever waits for what came of it is woken.
  template <typename Action>
  auto run(Action action) {
    MutexLock lock(mutex_);
    auto result = action(scheduler_);
    finish(lock);
    return result;
  }
  /// What to read next. With nothing, the reader waits, and `wake_descriptor` becomes readable when it should not.
  ReadOrder next_read(SteadyTime now);
  std::vector<Row> take(std::size_t max, std::size_t bytes);
  /// Waits until rows are ready, the table has been read once, something is in the way, or the time.
  void wait_for_first(SteadyTime until);

  int wake_descriptor() const { return wake_.get(); }
  void wake_reader();
  /// The reader goes on.
  void clear_wake();

  /// What keeps each of the sessions from working; nothing: it works.
  enum class Part : std::uint8_t { locks, reader };
  void trouble(Part part, std::optional<Error> error);
  std::optional<Error> trouble() const;
  /// From now on nothing is told.
  void stop_telling();

 private:
  void finish(MutexLock& lock) SLUICE_NO_TSA;

  // Fixed after construction.
  Descriptor wake_;

  mutable Mutex mutex_;
  Condition changed_;
  RowScheduler scheduler_ SLUICE_GUARDED_BY(mutex_);
  std::function<void()> told_ SLUICE_GUARDED_BY(mutex_);
  int telling_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< calls of `told_` that are under way
  bool claimer_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  bool reader_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Error> locks_trouble_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> reader_trouble_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::outbox
