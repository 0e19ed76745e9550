#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {

/// Decides whom a producer rings and when he reads who is to be rung. Nothing is read before something was put into a
/// queue, and not more often than each kReadEvery; one datagram goes to a host and queue within kGap, however often
/// something is put there. Step function: takes the time, makes no call. Not thread-safe.
class RingPlan {
 public:
  static constexpr Duration kReadEvery = std::chrono::seconds(10);
  static constexpr Duration kGap = std::chrono::milliseconds(3);
  /// When announcements cannot be read, the next try; where they may not be, the last one at once.
  static constexpr Duration kFirstRetry = kReadEvery;
  static constexpr Duration kLastRetry = std::chrono::minutes(10);
  /// Of more hosts that work on a queue, so many are rung, drawn anew each time: each one that is woken looks, and
  /// looks cost money.
  static constexpr std::size_t kMostHosts = 16;

  struct Call {
    std::string address;
    std::string queue;

    friend auto operator<=>(const Call&, const Call&) = default;
  };
  struct Order {
    std::vector<Call> calls;
    bool read = false;  ///< followed by `read` or `failed`
    SteadyTime wake = SteadyTime::max();
  };

  /// `random` outlives it.
  explicit RingPlan(Random& random) : random_(random) {}

  /// This process is that host, which needs no datagram from itself.
  void leave_out(const std::string& host) { own_.insert(host); }
  /// Something was put there. False: there is nothing to do for it, as nobody is to be rung.
  bool rang(std::string_view queue, SteadyTime now, WallTime wall);
  /// What to do now. The calls are made, whatever becomes of them.
  Order next(SteadyTime now, WallTime wall);
  void read(std::vector<Announcement> announcements, SteadyTime now);
  void failed(ErrorCode why, SteadyTime now);
  /// Whatever waits for its turn has it now: this is the end.
  void hurry() { hurried_ = true; }

 private:
  bool read_due(SteadyTime now) const { return now >= read_at_; }
  bool listens(const Announcement& announcement, std::string_view queue, WallTime wall) const;
  /// Those of `called_` apart.
  void add_calls(const std::string& queue, WallTime wall, std::vector<Call>& all);

  Random& random_;
  std::set<std::string> own_;
  std::vector<Announcement> known_;
  SteadyTime read_at_ = SteadyTime::min();  ///< not before
  Duration retry_ = kFirstRetry;
  bool asked_ = false;  ///< something was put somewhere since the last reading
  bool hurried_ = false;
  std::set<std::string> wanted_;               ///< queues to ring for
  std::map<std::string, SteadyTime> rung_at_;  ///< each queue, the last time
  std::set<std::string> late_;                 ///< queues rung for just before the reading under way
  std::set<Call> called_;                      ///< those calls
};

}  // namespace sluice::queue::wake
