#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/text/json_writer.hpp"
#include "host/operate/audited_operator.hpp"
#include "host/operate/json_value.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::cli {

/// Ids that an operation on many messages succeeded with, and why it failed with the others.
struct BulkOutcome {
  struct Failed {
    std::string id;
    Error error;
  };
  std::vector<std::string> successes;
  std::vector<Failed> failures;
};

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
    operate::AuditedOperator& oper;  ///< of `queue`
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
  /// Ends in the audit what was one deed of many changes.
  void finish_deed(const BulkOutcome& outcome, const std::string& stopped_by);
  /// True when it was told to end.
  Result<bool> purge_half(queue::Half half, const Progress& progress, BulkOutcome& outcome);
  /// With DynamoMQ's text for its kind, and the mend behind its full stop: whoever pastes that pastes no dot.
  Error worded(const Error& error) const;
  template <typename T>
  Result<T> worded(Result<T> answer) const {
    return answer ? std::move(answer) : Result<T>(worded(answer.error()));
  }

  Deadline deadline() const;

  const Seams seams_;
};

/// The error with DynamoMQ's text for its kind.
Error dynamomq_error(const Error& error);

// What DynamoMQ's program prints, with its keys and as Go's encoder writes them: indented, and its times without
// trailing zeros. Each of these texts is a whole document with its line break.

std::string dynamomq_message(const queue::StoredMessage& message);
/// The same under "RedroveMessage".
std::string dynamomq_redriven(const queue::StoredMessage& message);
/// Its "system info": all but the body, and the status after the id.
std::string dynamomq_system_info(const queue::StoredMessage& message, WallTime now);
/// The body alone.
std::string dynamomq_data(const queue::Message& message);
std::string dynamomq_statuses(const std::vector<queue::StoredMessage>& messages, WallTime now);
/// The counts of that half.
std::string dynamomq_stats(queue::Half half, const queue::QueueOverview& overview);
std::string dynamomq_outcome(const BulkOutcome& outcome, bool always_failures);

/// `{"successes": [...], "failures": [{"ID": ..., "Error": ...}]}`. `nulls`: empty lists are null, as Go prints them;
/// without `always_failures` an empty list of failures is left out.
void write_outcome(JsonWriter& json, const BulkOutcome& outcome, bool nulls, bool always_failures);

/// "READY" or "PROCESSING"; a message that waits for its time is the latter.
std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now);

/// The members of every object in the order of their keys' bytes, as Go writes maps; of a key given twice the last.
operate::JsonValue with_sorted_keys(operate::JsonValue value);

/// JSON text with what Go's encoder escapes beside the necessary: < > & and the line separators U+2028 and U+2029.
std::string escaped_as_go_does(std::string_view json);

}  // namespace sluice::cli
