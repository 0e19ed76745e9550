#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/reconnect.hpp"
#include "host/stores/outbox/row_scheduler.hpp"

namespace sluice::queue::outbox {

/// A source's rows in memory, between its threads: who claims, who settles, who holds the locks, and a thread of its
/// own that reads ahead of who claims what the RowScheduler asks for, and otherwise waits for news of the database. It
/// connects again when its session has ended. Thread-safe.
class RowReader {
 public:
  /// Called without any lock: `ready` by whoever made rows ready after a claim had brought less than it asked for, the
  /// others on the reader's thread.
  struct Events {
    std::function<void()> ready;
    std::function<void(const SourceId& source)> named;            ///< the rows to come are of the table of that id
    std::function<void(const std::vector<Row>& rows)> put_aside;  ///< these cannot be handed out
    std::function<void()> crowded;                                ///< more groups begin to wait than are remembered
  };
  /// The references outlive it.
  RowReader(RowScheduler::Settings settings, Database& database, const Clock& clock, Random& random, Events events);
  ~RowReader() { stop(); }

  /// Makes the thread. Called at most once.
  void start();
  /// Returns when the thread has ended.
  void stop();

  /// Does something with the rows; afterwards whoever waits for what came of it is woken.
  template <typename Action>
  auto run(Action action) {
    bool tell = false;
    auto result = [&] {
      const MutexLock lock(mutex_);
      auto made = action(scheduler_);
      tell = changed();
      return made;
    }();
    if (tell) {
      events_.ready();
    }
    return result;
  }
  std::vector<Row> take(std::size_t max, std::size_t bytes);
  /// Waits until rows are ready, the table has been read once, something is in the way, or the time.
  void wait_for_first(SteadyTime until);

  /// What keeps those that hold the locks from working; nothing: they work.
  void locks_trouble(std::optional<Error> error) { note_trouble(&RowReader::locks_trouble_, std::move(error)); }
  /// What keeps those or the reader from working.
  std::optional<Error> trouble() const;

 private:
  void run_until(const std::stop_token& stop);
  bool connect();
  ReadOrder next_read();
  bool read(const ReadOrder& order);
  void wait(const ReadOrder& order);
  void failed(const Error& error);
  void pause(const std::stop_token& stop);
  /// True: whoever claims is to be told.
  bool changed() SLUICE_REQUIRES(mutex_);
  void wake_reader();
  void note_trouble(std::optional<Error> RowReader::*place, std::optional<Error> error);

  // Fixed after construction.
  Database& database_;
  const Clock& clock_;
  Random& random_;
  const Events events_;
  const Descriptor wake_;  ///< readable when the reader should not wait any longer

  // Touched only by the reader's thread.
  std::unique_ptr<ReadSession> session_;
  RetryPause retry_;
  bool crowded_ = false;

  mutable Mutex mutex_;
  Condition changed_;
  RowScheduler scheduler_ SLUICE_GUARDED_BY(mutex_);
  bool claimer_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  bool reader_waits_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Error> locks_trouble_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Error> reader_trouble_ SLUICE_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace sluice::queue::outbox
