#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/change.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

/// What the store does about a handler's outcome.
enum class SettleAction {
  remove,       ///< done or discarded: delete it
  retry,        ///< visible again after `delay`; the attempt counts
  release,      ///< visible again after `delay`; the attempt is given back (receive count - 1)
  dead_letter,  ///< move it to the DLQ with its failure; in the DLQ itself it becomes visible there again
};

struct Settlement {
  Receipt receipt;
  SettleAction action = SettleAction::remove;
  Duration delay{};  ///< for retry and release; never negative
  Failure failure;   ///< for retry and dead_letter; empty: what the record says stays
};

/// The fate of one settlement or extension.
enum class SettleStatus {
  applied,
  lost,   ///< the receipt is no longer ours: somebody else claimed, changed or removed the message. Final
  failed, ///< see `error`; nothing is known to have been written unless its code is unknown_outcome
};

struct SettleResult {
  SettleStatus status = SettleStatus::applied;
  Error error;
};

struct ExtendResult {
  SettleStatus status = SettleStatus::applied;
  Receipt receipt;  ///< when applied: the one to use from now on
  WallTime invisible_until{};
  Error error;
};

enum class SendStatus { sent, duplicate_id, failed };

struct SendResult {
  SendStatus status = SendStatus::sent;
  std::string id;
  Error error;
};

/// A message's state, computed from its record and the time.
enum class MessageState { ready, in_flight, delayed };
std::string_view to_string(MessageState state);  // "ready", "in_flight", "delayed"

/// A message as an operator sees it: the whole record.
struct StoredMessage {
  Message message;                ///< `attempt` is the receive count so far
  QueueType queue_type = QueueType::standard;
  std::int64_t version = 0;
  WallTime created_at{};
  WallTime updated_at{};
  std::optional<WallTime> received_at;
  std::optional<WallTime> invisible_until;
  Failure failure;
  /// The whole record as DynamoDB JSON, given by `list` when asked for and only where it holds what the fields above do
  /// not: sets, binary values inside documents, attributes nobody here knows. A store that is given one with `put` keeps
  /// it; the fields above win over what it says of them.
  std::string native;

  MessageState state(WallTime now) const {
    if (invisible_until && now <= *invisible_until) {
      return received_at ? MessageState::in_flight : MessageState::delayed;
    }
    return message.sent_at > now ? MessageState::delayed : MessageState::ready;
  }
};

struct ListRequest {
  QueueAddress address;
  std::size_t limit = 10;
  std::string cursor;  ///< empty: from the start; otherwise `ListPage::next` of the page before
  bool content = true;  ///< false: body, content type, attributes and group may stay empty, and cost no transfer
  bool native = false;  ///< true: fill `StoredMessage::native` where it is needed
};

struct ListPage {
  std::vector<StoredMessage> messages;  ///< oldest first
  std::string next;                     ///< empty: this was the last page
};

/// How many messages a queue half holds at one moment.
struct QueueStats {
  std::uint64_t ready = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t delayed = 0;
  std::optional<WallTime> oldest_ready;  ///< sent_at of the oldest ready one, where the store knows it cheaply

  std::uint64_t total() const { return ready + in_flight + delayed; }
};

/// How many messages failed for the same reason.
struct ErrorGroup {
  std::string error;  ///< as it stands in the records
  std::uint64_t count = 0;
  std::string example;  ///< id of the one that failed last
  WallTime last_failed_at{};
};

/// A look at one half of a queue: DynamoMQ's queue stats, and why what lies there has failed.
struct QueueOverview {
  QueueStats counts;
  std::vector<std::string> first_ids;            ///< in claiming order, in whatever state
  std::vector<std::string> first_in_flight_ids;  ///< the same of those that are hidden (in flight or delayed)
  std::vector<ErrorGroup> errors;                ///< the most frequent first; of messages that carry a failure
};

struct OverviewRequest {
  QueueAddress address;
  std::size_t ids = 100;       ///< most of each list of ids
  std::size_t errors = 0;      ///< most groups of errors; 0: they are not looked at
};

/// What `purge` did.
struct BulkResult {
  std::uint64_t done = 0;
  std::uint64_t skipped = 0;  ///< in flight, or changed by somebody else in between
};

/// Called between batches of a bulk operation with the count so far; false stops it there.
using BulkProgress = std::function<bool(std::uint64_t done)>;

/// Queues of messages, kept somewhere. One of the four seams.
///
/// Every method is thread-safe, blocks, and has returned by its deadline, at the latest one request's time-out after it.
/// Results come in the order of the request. Batches of any size are accepted; the store cuts them as it must.
/// A queue that nobody has sent to is empty, not an error, where the store can make queues (SQLite); where it cannot
/// (DynamoDB), its absence is ErrorCode::queue_missing with the command that mends it.
class Store {
 public:
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  /// Claims at most `max` due messages, oldest first, for `visibility`. Empty when none is due. A message that somebody
  /// else takes first, or whose record nobody can read, is passed over and never stops the queue.
  virtual Result<std::vector<Claim>> claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                           Deadline deadline) = 0;

  /// Settles claims. A settlement whose first try had an unknown outcome is safe to repeat.
  virtual std::vector<SettleResult> settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                           Deadline deadline) = 0;

  /// Prolongs claims to now + `visibility`. The old receipts are void afterwards.
  virtual std::vector<ExtendResult> extend(const QueueAddress& address, std::span<const Receipt> receipts,
                                           Duration visibility, Deadline deadline) = 0;

  /// Stores messages. Once `sent` is returned the message is durable.
  virtual std::vector<SendResult> send(const std::string& queue, std::span<const NewMessage> messages,
                                       Deadline deadline) = 0;

  // What operators use. None of these is on the path of a message.

  /// One message wherever it lies in the queue, DLQ included; ErrorCode::not_found when absent.
  virtual Result<StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) = 0;
  virtual Result<ListPage> list(const ListRequest& request, Deadline deadline) = 0;
  virtual Result<QueueStats> stats(const QueueAddress& address, Deadline deadline) = 0;

  /// Reads the whole half once, without bodies where the store can do so.
  virtual Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) = 0;

  /// Applies changes, each by itself; one result each, in their order. At most one change an id in one call.
  virtual std::vector<ChangeResult> change(const std::string& queue, std::span<const Change> changes,
                                           Deadline deadline) = 0;
  /// Edits the content of a message if the record still has `version`, all edits or none, and returns the record
  /// afterwards. ErrorCode::conflict for another version, not_found when absent, invalid for a path that leads nowhere
  /// or content that the store cannot hold. What the edits do not name stays exactly as it is.
  virtual Result<StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                     std::span<const ContentEdit> edits, Deadline deadline) = 0;
  /// Writes whole records as they stand: times, counts, state, failure and version included. The queue is made where
  /// the store can make queues.
  virtual std::vector<PutResult> put(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                                     Deadline deadline) = 0;

  // Short forms of the above for one message, and for a whole half.

  /// Removes a message in whatever state; ErrorCode::not_found when absent.
  Result<void> remove(const std::string& queue, const std::string& id, Deadline deadline);
  /// Moves a message to the DLQ, in whatever state it is; ErrorCode::not_found when absent. There already: success.
  Result<void> dead_letter(const std::string& queue, const std::string& id, const Failure& failure, Deadline deadline);
  /// Moves one message from the DLQ back, with its receive count at zero; ErrorCode::conflict when it is in flight or
  /// not in the DLQ.
  Result<void> redrive(const std::string& queue, const std::string& id, Deadline deadline);
  /// Removes every message of one half that was there when it began.
  Result<BulkResult> purge(const QueueAddress& address, const BulkProgress& progress, Deadline deadline);
};

}  // namespace sluice::queue
