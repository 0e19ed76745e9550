#pragma once

#include <array>
#include <map>

#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// Decides when a host looks at what operators want on one board, tells of itself, and sweeps away what dead hosts
/// left. An idle host spends at most kIdleWriteUnits, unless one record on each board in kTellAtLeastEvery is more: it
/// is missed by that. A step function: takes the time, makes no call. Not thread-safe.
class BoardPollSchedule {
 public:
  /// Write units a second, over all boards of a host.
  static constexpr double kIdleWriteUnits = 0.08;
  static constexpr Duration kLookEvery = std::chrono::seconds(1);        ///< where the board does not tell
  static constexpr Duration kLookAllTheSame = std::chrono::seconds(10);  ///< where it does
  static constexpr Duration kTellEvery = std::chrono::seconds(15);
  static constexpr Duration kTellEveryBilled = std::chrono::seconds(30);
  static constexpr Duration kTellAtLeastEvery = std::chrono::minutes(1);
  static constexpr Duration kTellWatched = std::chrono::seconds(1);  ///< while somebody looks
  static constexpr Duration kTellWatchedBilled = std::chrono::seconds(3);
  static constexpr Duration kFirstSweep = std::chrono::minutes(1);
  static constexpr Duration kSweepEvery = std::chrono::hours(1);
  static constexpr Duration kFirstRetry = std::chrono::seconds(1);
  static constexpr Duration kLastRetry = std::chrono::minutes(1);

  enum class Duty { none, look, tell, sweep };
  struct Order {
    Duty duty = Duty::none;
    SteadyTime wake{};  ///< with none: when to ask again, unless something happens
  };

  BoardPollSchedule(const queue::BoardTraits& traits, SteadyTime now);

  /// What to do now. Each duty is followed by `done` or `failed`.
  Order next(SteadyTime now) const;
  void done(Duty duty, SteadyTime now);
  /// It is left alone for a while; the others go on, for a host may be allowed to read and not to write.
  void failed(Duty duty, SteadyTime now);
  bool failing() const;

  /// Something has been posted for hosts.
  void look_soon() { plan(Duty::look).due = SteadyTime::min(); }
  /// There is something to tell that nobody should wait for.
  void tell_soon() { plan(Duty::tell).due = SteadyTime::min(); }
  /// Somebody looks at the records until then.
  void watched_until(SteadyTime time) { watched_until_ = time; }
  bool watched(SteadyTime now) const { return now < watched_until_; }
  /// The records have so many bytes, on so many boards.
  void size(std::size_t bytes, std::size_t boards);

  /// How long after this record the next one comes at the latest.
  Duration interval(SteadyTime now) const;

 private:
  struct Plan {
    SteadyTime due = SteadyTime::min();
    SteadyTime not_before = SteadyTime::min();  ///< after a failure
    int failures = 0;
  };

  Plan& plan(Duty duty) { return plans_.at(static_cast<std::size_t>(duty)); }

  // Fixed after construction.
  const bool tells_;
  const bool billed_;

  Duration idle_interval_;
  SteadyTime told_at_{};
  SteadyTime watched_until_ = SteadyTime::min();
  std::array<Plan, 4> plans_{};  ///< by duty
};

/// Decides which records are of hosts that died without a word long ago: by their age and, as dates may be wrong,
/// by whether they changed while this host watched. Not thread-safe.
class Sweeper {
 public:
  /// `own` is the key of this host's record.
  explicit Sweeper(std::string own) : own_(std::move(own)) {}

  /// Of all that is on the board, what is to be taken down.
  std::vector<queue::Notice> due(const std::vector<queue::Notice>& hosts, WallTime board_now, SteadyTime now);

 private:
  struct Sight {
    std::int64_t version = 0;
    SteadyTime since{};
  };

  const std::string own_;
  std::map<std::string, Sight> seen_;
};

}  // namespace sluice::fleet
