#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// How many messages a queue holds, as far as they have been counted. A value.
struct QueueCount {
  std::uint64_t ready = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t delayed = 0;
  std::uint64_t dead = 0;
  bool whole = true;       ///< false: at least so many, as the count is under way
  bool dead_whole = true;  ///< the same of the dead letters
  std::optional<WallTime> oldest_ready;
  WallTime counted_at{};  ///< when the standard half was counted

  std::uint64_t total() const { return ready + in_flight + delayed; }
};

/// Counts a queue a piece at a time, so that each look costs a bounded number of reads however long the queue is: the
/// first tells what the head holds, later ones more of it, and once all is counted the count begins anew and the last
/// whole one is told meanwhile. Of one thread.
class QueueCounter {
 public:
  enum class Method {
    at_once,   ///< where the store keeps count
    by_pages,  ///< where every count reads what is counted
  };
  /// Records of a page: one request, up to a megabyte.
  static constexpr std::size_t kPage = 1'000;

  QueueCounter(std::unique_ptr<queue::Operator> oper, Method method, const Clock& clock);

  /// One look: two requests at most of the by_pages kind, one for each half.
  Result<QueueCount> step(Deadline deadline);

 private:
  /// One half's count.
  struct Sweep {
    queue::QueueStats under_way;
    std::string cursor;
    std::optional<queue::QueueStats> last_whole;
    WallTime whole_at{};

    const queue::QueueStats& told() const { return last_whole ? *last_whole : under_way; }
  };

  Result<void> page(queue::Half half, Sweep& sweep, Deadline deadline);
  Result<void> count(queue::Half half, Sweep& sweep, Deadline deadline);

  const std::unique_ptr<queue::Operator> operator_;
  const Method method_;
  const Clock& clock_;
  Sweep standard_;
  Sweep dead_;
};

}  // namespace sluice::operate
