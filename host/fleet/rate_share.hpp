#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// One host's part in a limit that all hosts of a job share. What each may claim stands in one notice, which is changed
/// only as it was read, so that the parts never add up to more than the limit: who wants more waits until others have
/// given back, or have ended. No clocks are compared: a host relies on its part for `rely` after it began to write it,
/// and is taken for dead by whoever has seen its entry stand still for `silent`, which is longer.
///
/// A step class: it is told what the notice says and the time, and says what the notice shall say. Not thread-safe.
class RateShare {
 public:
  struct Pace {
    Duration renew;
    Duration rely;
    Duration silent;
  };
  /// Where looks are free, and where they cost money.
  static constexpr Pace kFree{std::chrono::seconds(2), std::chrono::seconds(6), std::chrono::seconds(9)};
  static constexpr Pace kBilled{std::chrono::seconds(10), std::chrono::seconds(25), std::chrono::seconds(35)};

  /// What the job made of its part since it was asked last.
  struct Use {
    double rate = 0;        ///< messages claimed a second
    bool short_of = false;  ///< it would have claimed more
  };
  /// What the job may claim.
  struct Lease {
    double rate = 0;    ///< messages a second
    double credit = 0;  ///< and this at once: what nobody has claimed before
    SteadyTime until = SteadyTime::min();
  };

  /// `limit` messages a second; `host` is unique.
  RateShare(std::string host, double limit, const Pace& pace) : host_(std::move(host)), limit_(limit), pace_(pace) {}

  /// When to write again.
  SteadyTime due() const { return due_; }
  /// What the notice shall say for what it says. What this host gives back it has given back when this returns: the job
  /// is told of `lease` before the text is posted, and again after `posted`.
  std::string revise(const std::string& text, const Use& use, WallTime board_now, SteadyTime now);
  /// It is on the board; `asked`: when the post began.
  void posted(SteadyTime asked);
  /// What it shall say once this host has ended.
  std::string without_this_host(const std::string& text) const;
  const Lease& lease() const { return lease_; }
  /// No other host stood in the notice when it was revised last.
  bool alone() const { return seen_.empty(); }

 private:
  struct Sight {
    std::int64_t beat = 0;
    SteadyTime since{};
  };

  // Fixed after construction.
  const std::string host_;
  const double limit_;
  const Pace pace_;

  std::map<std::string, Sight> seen_;
  Lease lease_;
  Lease next_;  // once it is posted
  std::int64_t beat_ = 0;
  SteadyTime began_ = SteadyTime::min();
  SteadyTime due_ = SteadyTime::min();
};

}  // namespace sluice::fleet
