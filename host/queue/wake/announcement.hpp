#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"

/// Doorbells between machines: hosts announce where a datagram wakes them, and who has put something there rings. Knows
/// no store; nothing depends on it but how soon a message is seen.
namespace sluice::queue::wake {

/// What one host says about where it can be woken, and for which queues. A value.
struct Announcement {
  std::string host;     ///< whose it is; two hosts never have the same
  std::string address;  ///< "10.0.0.5:7011" or "[fd00::5]:7011": numbers, so that nobody who rings asks a name server
  std::vector<std::string> queues;  ///< by the names that `bell_name` gives them
  WallTime at{};                    ///< when it was written, by the store's clock
  Duration every{};                 ///< the next one comes so much later at the latest

  friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// So many of its intervals may pass before an announcement counts for nothing: its host is dead, or cannot write.
inline constexpr int kIntervalsToLive = 3;
/// The longest interval that is believed, and how far ahead of the reader's clock the writer's may be.
inline constexpr Duration kLongestInterval = std::chrono::hours(1);
inline constexpr Duration kFarthestAhead = std::chrono::minutes(5);
/// The longest text of an announcement, and the longest name of a queue in one.
inline constexpr std::size_t kMostAnnouncementBytes = 4'096;
inline constexpr std::size_t kMostNameBytes = 300;

/// How hosts and producers name a half of a queue to each other. `place` is what a store's own users agree upon, such
/// as the table: a producer may know the queue by another name than the host does.
std::string bell_name(std::string_view place, Half half);

/// One line: everything but the host, which is the key that a store keeps it under. `decode` gives nothing for what it
/// did not write: a text that is too long, another version, an address that is none, a time that cannot be.
std::string encode(const Announcement& announcement);
std::optional<Announcement> decode(std::string host, std::string_view text);

/// Whether its host may be taken for alive.
bool fresh(const Announcement& announcement, WallTime now);

/// Decides when a host announces itself at one place: at its start, when the queues change that it works on, and every
/// minute or so, which costs little: more seldom where many hosts make the item large. Step function: takes the time,
/// makes no call. Not thread-safe.
class Announcer {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(60);
  /// Write units a second and host.
  static constexpr double kWriteUnits = 0.03;
  static constexpr Duration kFirstRetry = std::chrono::seconds(5);
  static constexpr Duration kLastRetry = std::chrono::minutes(5);

  /// The bells that the host answers to here, in their order.
  void queues(std::vector<std::string> queues);
  const std::vector<std::string>& queues() const { return queues_; }

  bool due(SteadyTime now) const { return now >= next_; }
  SteadyTime next() const { return next_; }
  /// How long after an announcement now the next one comes at the latest.
  Duration interval() const { return interval_; }
  void announced(double write_units, SteadyTime now);
  void failed(SteadyTime now);
  /// It stands there, as far as is known.
  bool stands() const { return stands_; }

 private:
  std::vector<std::string> queues_;
  SteadyTime next_ = SteadyTime::min();
  Duration interval_ = kEvery;
  Duration retry_ = kFirstRetry;
  bool stands_ = false;
};

/// Where the hosts of one file or table announce how they are woken, and the way from there to the sources of this
/// process.
///
/// Thread-safe. Each call blocks and has returned by its deadline, but for `ring_here`, which returns at once. Losing
/// what was announced loses no message.
class WakePlace : boost::noncopyable {
 public:
  virtual ~WakePlace() = default;

  /// Names the file or table, for people; two of one Queues are the same place where it is the same.
  virtual const std::string& name() const = 0;
  /// How producers name that half of the queue it was opened for.
  virtual std::string bell(Half half) const = 0;
  /// The clock by which announcements are judged.
  virtual WallTime now() const = 0;

  /// Puts it in the place of what that host said before. The write units that it took.
  virtual Result<double> announce(const Announcement& announcement, Deadline deadline) = 0;
  /// The host cannot be woken any more. Not announced: success.
  virtual Result<void> withdraw(const std::string& host, Deadline deadline) = 0;
  /// What everybody announces, stale ones included.
  virtual Result<std::vector<Announcement>> read(Deadline deadline) = 0;

  /// Wakes the sources of this process, and nobody else. From any thread.
  virtual void ring_here(Half half) = 0;
};

}  // namespace sluice::queue::wake
