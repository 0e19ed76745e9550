#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/change.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::queue {

/// Looks at one queue and changes what lies in it, for commands and consoles; none of it is on a message's path.
/// Thread-safe. Each method blocks and has returned by its deadline; results come in the order of the request.
class Operator {
 public:
  Operator() = default;
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  virtual ~Operator() = default;

  /// One message wherever it lies in the queue, DLQ included; ErrorCode::not_found when absent.
  virtual Result<StoredMessage> get(const std::string& id, Deadline deadline) = 0;
  virtual Result<ListPage> list(const ListRequest& request, Deadline deadline) = 0;
  virtual Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) = 0;
  /// Reads the whole half once, without bodies where the store can do so.
  virtual Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) = 0;

  /// Applies changes, each by itself; one result each. At most one change an id in one call.
  virtual std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) = 0;
  /// Edits the content of a message if the record still has `version`, all edits or none, and returns the record
  /// afterwards. ErrorCode::conflict for another version, not_found when absent, invalid for a path that leads nowhere
  /// or content that the store cannot hold. What the edits do not name stays exactly as it is.
  virtual Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                                     Deadline deadline) = 0;
  /// Writes whole records as they stand: times, counts, state, failure and version included. The queue is made where
  /// the store can make queues.
  virtual std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) = 0;
};

}  // namespace sluice::queue
