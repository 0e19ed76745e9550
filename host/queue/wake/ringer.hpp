#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/wake/announcement.hpp"
#include "host/queue/wake/datagram.hpp"

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

/// Rings the hosts that work on a queue into which something has been put. It takes nobody's time who puts it there: a
/// thread of its own, made when something is first put anywhere, reads who is to be rung and rings. It fails in
/// silence, for hosts look by themselves, too. Thread-safe. A resource.
class Ringer : boost::noncopyable {
 public:
  /// Reads what hosts announce, by that deadline. Called by the thread, one at a time.
  using Read = std::function<Result<std::vector<Announcement>>(Deadline)>;

  /// What a reading may take, and so the longest that the end of a process waits for one.
  static constexpr Duration kReadTime = std::chrono::seconds(1);

  /// `secret`: by which datagrams are signed; empty: they are not. `clock` is the one by which announcements are judged
  /// and datagrams dated. The references outlive it.
  Ringer(Read read, std::string secret, const Clock& clock, Random& random);
  /// Rings for all that was put before: that may take kReadTime where nothing was read yet.
  ~Ringer();

  /// Something that is durable by now was put into the queue of that bell name. Returns at once.
  void rang(std::string_view queue);
  /// This process is that host: it needs no datagram from itself.
  void leave_out(const std::string& host);

 private:
  void start() SLUICE_REQUIRES(mutex_);
  void run(const std::stop_token& stop);
  /// Waits until there is something to do. False: this is the end, and nothing is left.
  bool take_order(const std::stop_token& stop, RingPlan::Order& order);
  void ring(const std::vector<RingPlan::Call>& calls);
  void read();

  // Fixed after construction.
  const Read read_;
  const std::string secret_;
  const Clock& clock_;
  Random& random_;

  // Touched only by the thread.
  DatagramSender sender_;

  Mutex mutex_;
  Condition changed_;
  RingPlan plan_ SLUICE_GUARDED_BY(mutex_);
  bool rung_ SLUICE_GUARDED_BY(mutex_) = false;  ///< since the plan was asked last
  bool ending_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that it ends before what it uses.
  std::jthread thread_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::wake
