#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {

/// Where the hosts of one file or table announce how they are woken, and the way from there to the sources of this
/// process.
///
/// Thread-safe. Each call blocks and has returned by its deadline, but for `ring_here`, which returns at once. Losing
/// what was announced loses no message.
class WakePlace {
 public:
  WakePlace() = default;
  WakePlace(const WakePlace&) = delete;
  WakePlace& operator=(const WakePlace&) = delete;
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
