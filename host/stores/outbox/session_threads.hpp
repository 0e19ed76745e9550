#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/row_scheduler.hpp"
#include "host/stores/owned/membership.hpp"
#include "host/stores/owned/ownership.hpp"

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

/// Keeps the session that holds a source's buckets: joins, lets it be known that this member lives, takes and gives
/// back buckets as their number asks for, connects again when the session has ended, and lends the session for marks.
/// Thread-safe.
class LockHolder {
 public:
  struct Settings {
    LockSpace space;
    Duration lease = std::chrono::seconds(15);
  };
  /// `rows` is told which buckets are ours, and what is in the way. `lost` is called without any lock, from the
  /// holder's thread or one that marks. The references outlive it.
  LockHolder(Settings settings, Database& database, const Clock& clock, Random& random, RowReader& rows,
             std::function<void()> lost);
  ~LockHolder();

  /// Makes the thread. Called at most once.
  void start();
  /// Returns when the thread has ended. What is held stays so, for marks, until `close`.
  void stop();
  /// Gives everything back.
  void close();

  /// The buckets are ours now, as far as anybody here can know.
  bool usable();
  /// Writes marks on the session; ErrorCode::unavailable where there is none. After an error the session may be over.
  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, Deadline deadline);

 private:
  /// The session is one caller's at a time; he has it without a lock.
  class Turn;

  void run(const std::stop_token& stop);
  bool connect(Turn& turn);
  bool beat(Turn& turn);
  bool share_out(Turn& turn, std::uint32_t members);
  bool give_back(Turn& turn, std::span<const std::uint32_t> buckets);
  /// Does what follows from a call's answer; false where it has failed.
  template <typename T>
  bool answered(Turn& turn, const Result<T>& result, SteadyTime asked_at);
  void alive(SteadyTime asked_at);
  void over(Turn& turn, const Error& error);
  Duration next_beat(SteadyTime now) const;
  SteadyTime lease_now();
  Deadline beat_deadline();

  // Fixed after construction.
  const Settings settings_;
  Database& database_;
  const Clock& clock_;
  Random& random_;
  RowReader& rows_;
  const std::function<void()> lost_;

  // Touched only by the holder's thread.
  owned::PartShare share_;
  std::uint32_t members_ = 0;
  SteadyTime unsettled_until_{};
  Duration beat_every_{};  ///< as the session wants it
  RetryPause retry_;

  mutable Mutex mutex_;
  Condition changed_;
  bool busy_ SLUICE_GUARDED_BY(mutex_) = false;  ///< somebody has the turn
  bool look_ SLUICE_GUARDED_BY(mutex_) = false;
  bool share_lost_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the share is to be forgotten
  owned::LeaseClock lease_clock_
      SLUICE_GUARDED_BY(mutex_);                     ///< the session's end comes closer while the machine sleeps
  owned::OwnLease lease_ SLUICE_GUARDED_BY(mutex_);  ///< from when the last call began that was answered

  // Touched only by whoever has the turn.
  std::unique_ptr<LockSession> session_;

  std::jthread thread_;
};

}  // namespace sluice::queue::outbox
