#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/reconnect.hpp"
#include "host/stores/owned/membership.hpp"
#include "host/stores/owned/ownership.hpp"

namespace sluice::queue::outbox {

/// Keeps the session that holds a source's buckets: joins, lets it be known that this member lives, takes and gives
/// back buckets as their number asks for, connects again when the session has ended, and lends the session for marks.
/// Thread-safe.
class LockHolder {
 public:
  struct Settings {
    LockSpace space;
    Duration lease = std::chrono::seconds(15);
  };
  /// All of them are called without any lock, from the holder's thread; `lost` from one that marks, too.
  struct Events {
    std::function<void(std::span<const std::uint32_t>)> took;
    std::function<void(std::span<const std::uint32_t>)> leaving;
    std::function<bool(std::uint32_t)> nothing_out;
    std::function<void()> lost;
    std::function<void(std::optional<Error>)> trouble;  ///< nothing: it works again
  };
  /// The references outlive it.
  LockHolder(Settings settings, Database& database, const Clock& clock, Random& random, Events events);
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
  /// What follows from a call's answer: false when the session is over.
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
  const Events events_;

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
