#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/cli/drop_in/dynamomq_json.hpp"
#include "host/queue/queues.hpp"

namespace sluice::cli {

class QueueSession;

/// DynamoMQ's operations on a queue; every error's message is DynamoMQ's text. One thread.
///
/// They behave as DynamoMQ's do, its defects mended: a redriven message has its receive count at zero, a reset one
/// keeps its content to the last digit and its version grows, and a purge removes everything.
class DynamoMqOperations {
 public:
  /// What it works with; all of it outlives the operations.
  struct Seams {
    queue::Queues& queues;
    queue::Operator& oper;  ///< of `queue`
    std::string queue;
    const Clock& clock;
    std::function<std::string(const Error&)> mend;  ///< the command that mends it, as QueuePlace::mend
  };
  /// Called between the batches of a purge with the count so far; false ends it.
  using Progress = std::function<bool(std::uint64_t removed)>;

  explicit DynamoMqOperations(Seams seams) : seams_(std::move(seams)) {}
  /// On a session's queue.
  explicit DynamoMqOperations(QueueSession& session);

  Result<queue::StoredMessage> get(const std::string& id);
  /// An absent message is a success.
  Result<void> remove(const std::string& id);
  Result<queue::StoredMessage> receive();
  /// Makes a message visible at once.
  Result<queue::StoredMessage> fail(const std::string& id);
  /// Moves a message to the DLQ; there already is a success.
  Result<void> invalid(const std::string& id);
  Result<queue::StoredMessage> redrive(const std::string& id);
  Result<queue::StoredMessage> reset(const std::string& id);
  Result<queue::QueueOverview> overview(queue::Half half);
  /// At most ten messages of both halves, by the time of their last update.
  Result<std::vector<queue::StoredMessage>> list();
  /// Puts DynamoMQ's four test messages in, in place of those with their ids.
  BulkOutcome enqueue_test();
  /// Removes every message of both halves.
  Result<BulkOutcome> purge(const Progress& progress);

 private:
  Result<queue::StoredMessage> change_and_get(const std::string& id, queue::ChangeAction action);
  Result<void> change(const std::string& id, queue::ChangeAction action);
  /// True when it was told to end.
  Result<bool> purge_half(queue::Half half, const Progress& progress, BulkOutcome& outcome);
  /// With DynamoMQ's text for its kind, and the mend behind its full stop: whoever pastes that pastes no dot.
  Error worded(const Error& error) const;
  template <typename T>
  Result<T> worded(Result<T> answer) const {
    return answer ? std::move(answer) : Result<T>(worded(answer.error()));
  }
  void note_failure(BulkOutcome& outcome, const std::string& id, const Error& error) const;

  Deadline deadline() const;

  const Seams seams_;
};

/// The error with DynamoMQ's text for its kind.
Error dynamomq_error(const Error& error);

}  // namespace sluice::cli
