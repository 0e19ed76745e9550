#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "dynamo/client.hpp"
#include "host/queue/moment.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::table {

using queue::Moment;
using queue::until;

/// How wrong the times may be that senders and operators write.
inline constexpr Duration kTimeTolerance = std::chrono::seconds(5);

/// Sleeps so long, or until the deadline; false when stopped first.
bool pause(const Clock& clock, Duration span, Deadline deadline, const std::stop_token& stop = {});

/// The time by which all hosts on a table judge what its records say. The records hold times of a wall clock; those of
/// hosts differ, and one that is ahead would take what its neighbours hold. So each host corrects its own by
/// DynamoDB's, which the answers tell. Thread-safe.
class TableClock final : public Clock {
 public:
  /// A clock that is further off is worth a word.
  static constexpr Duration kNoticeable = std::chrono::seconds(1);

  /// `warn` is told once, in a line, when the machine's clock is wrong; may be empty. The references must outlive it.
  TableClock(dynamo::Client& client, const Clock& machine, std::function<void(const std::string&)> warn)
      : client_(client), machine_(machine), warn_(std::move(warn)) {}

  /// The machine's wall clock, put right as far as answers have shown how wrong it is.
  WallTime wall_now() const override;
  SteadyTime steady_now() const override { return machine_.steady_now(); }

  /// To be called before anything is written that holds a time. Asks DynamoDB for its time where no answer has told it
  /// yet, which costs one request. ErrorCode::unavailable when the time is not known to within `tolerance`, with both
  /// clocks.
  Result<void> be_sure(const QueueTable& place, Duration tolerance, Deadline deadline);
  /// Says so if answers have shown that the machine's clock is wrong. No request.
  void warn_if_wrong();

 private:
  void ask(const QueueTable& place, Deadline deadline);
  void warn_once(const dynamo::ClockReading& reading);

  // Fixed after construction.
  dynamo::Client& client_;
  const Clock& machine_;
  const std::function<void(const std::string&)> warn_;

  Mutex mutex_;
  // Guarded by mutex_.
  bool warned_ SLUICE_GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::queue::table
