#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <sluice/client/error.hpp>
#include <sluice/client/export.hpp>
#include <sluice/client/message.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace sluice::client {

/// A queue in DynamoDB. Credentials come from AWS's usual places: environment, profile, SSO, web identity, container,
/// instance, in the order of the AWS SDKs.
struct DynamoDbQueue {
  std::string table = "dynamo-mq-table";
  std::string index = "dynamo-mq-index-queue_type-sent_at";
  std::string region{};    ///< empty: from the environment or the profile; not needed with an endpoint
  std::string endpoint{};  ///< empty: the same, else AWS's own
};

/// A queue among others in a table of the leased layout (docs/run/tables.md). Whether `shards` is right matters only until
/// the table says how many there are.
struct LeasedQueue {
  std::string queue;
  std::string table = "sluice-queues";
  std::uint32_t shards = 8;
  std::string region{};    ///< as DynamoDbQueue's
  std::string endpoint{};  ///< as DynamoDbQueue's
};

/// A queue in a file of the embedded store, shared with every process of this machine that has it open.
struct SqliteQueue {
  std::string path;  ///< made when absent
  std::string queue;
  bool durable = true;  ///< false: a power cut may take the last moments with it
};

struct ClientOptions {
  /// As in DynamoMQ: while the queue's first message is hidden, nothing else is received by this client. One message in
  /// flight for the whole queue; other clients are not held back.
  bool use_fifo = false;
  /// The longest that one call may take, at the latest a request's time-out (10 s) beyond it. Within it, what throttles
  /// or fails in passing is tried again, a few times.
  Duration timeout = std::chrono::seconds(30);
  /// Told, from any thread and once for each trouble, in one line, what people should mend although everything goes on:
  /// a role without PartiQL, so that each message takes a request of its own, or a machine whose clock is wrong. It
  /// must not throw. Empty: nobody is told.
  std::function<void(const std::string& warning)> on_warning{};
  /// Messages of the same data count as duplicates, as if each were sent with a deduplication id made of it.
  bool dedup_by_content = false;
  Duration dedup_window = std::chrono::minutes(5);  ///< where a message names none of its own
  /// Of the whole queue half, everybody's: `receive` takes no more, and is OverLimitError at it. Zero: no limit. On
  /// SQLite.
  std::uint64_t max_in_flight = 0;
  /// `change_visibility` with a receipt keeps nothing hidden longer than this since it was received.
  Duration max_lease = std::chrono::hours(12);
  /// Hosts that say in the table how they are woken are told by a datagram what was put into the queue, so that they
  /// need not find it by looking: half a read unit each 10 s at most while something is sent, in a thread of its own.
  /// False: they look, and nothing is read. On DynamoDB; on SQLite the kernel tells them.
  bool ring_hosts = true;
  /// The hosts' `[wake] secret`, where they have one: what is not signed with it wakes nobody there.
  std::string wake_secret{};
};

struct ReceiveOptions {
  QueueType queue_type = QueueType::standard;
  Duration visibility_timeout = std::chrono::seconds(30);  ///< zero and negative: 30 s; a century at most
  /// How long to wait for a message to come where none is due, at most 20 s. What is sent to a SQLite queue of this
  /// machine ends the wait at once; a queue in DynamoDB is looked at again each second at the latest.
  Duration wait_time{};
  std::stop_token stop{};  ///< ends the wait; what has been received by then is returned
};

namespace detail {
class Core;
}

/// One queue, with the operations of DynamoMQ's client.
///
/// Thread-safe; every call blocks. A queue in DynamoDB has one thread of its own, and another once something was sent;
/// they take no signals. No call
/// throws but for want of memory. Where an operation differs from DynamoMQ's it mends a defect of it;
/// docs/start/conformance.md of the project lists each. An empty id is IDNotProvidedError everywhere, and every operation may
/// fail with DynamoDBAPIError; the comments name what else to expect.
class SLUICE_CLIENT_API QueueClient {
 public:
  /// Makes no request yet. Fails when neither a region nor an endpoint is named anywhere, or AWS's files cannot be
  /// read.
  static Result<QueueClient> open(const DynamoDbQueue& queue, const ClientOptions& options = {});
  static Result<QueueClient> open(const LeasedQueue& queue, const ClientOptions& options = {});
  /// Opens or makes the file.
  static Result<QueueClient> open(const SqliteQueue& queue, const ClientOptions& options = {});

  QueueClient(QueueClient&&) noexcept;
  QueueClient& operator=(QueueClient&&) noexcept;
  ~QueueClient();

  /// Stores a message; once it has returned without an error the message is durable. IDDuplicatedError when a message
  /// of that id is in the queue or its DLQ, MarshalingAttributeError for content that the store cannot hold. The id; of
  /// a duplicate by its deduplication id or unique key, the id of the message that was sent first.
  Result<std::string> send(const NewMessage& message);
  /// The same for many, each by itself, 25 to a request. One result each, in their order.
  std::vector<Result<std::string>> send(std::span<const NewMessage> messages);

  /// Takes the oldest message that is due and hides it for the visibility timeout. EmptyQueueError when none is due,
  /// and none came within the wait time; OverLimitError when as many are in flight as may be. A message that somebody
  /// else takes first, or whose record nobody can read, is passed over.
  Result<ReceivedMessage> receive(const ReceiveOptions& options = {});
  /// Takes at most `max`, oldest first; none is an empty list, no error. With `use_fifo` at most one.
  Result<std::vector<ReceivedMessage>> receive(std::size_t max, const ReceiveOptions& options = {});

  /// Makes the message visible after `timeout` from now, at once when it is zero or negative, whatever its state.
  /// IDNotFoundError when absent. The message as it is afterwards.
  Result<Message> change_visibility(const std::string& id, Duration timeout);
  /// The same while it is ours, ConditionalCheckFailedError afterwards; InvalidParameterValueError, and nothing is
  /// changed, where it would be hidden longer than `max_lease` since it was received. The receipt to use from now on;
  /// void when `timeout` gave the message up.
  Result<Receipt> change_visibility(const Receipt& receipt, Duration timeout);

  /// Removes the message whoever has it. Absent already: success.
  Result<void> delete_message(const std::string& id);
  /// The same if it still has this version: ConditionalCheckFailedError otherwise, IDNotFoundError when absent.
  Result<void> delete_message(const std::string& id, std::int64_t version);
  /// Removes a message that is done: ConditionalCheckFailedError when it is no longer ours.
  Result<void> delete_message(const Receipt& receipt);
  /// The same for many, 25 to a request. One result each, in their order.
  std::vector<Result<void>> delete_messages(std::span<const Receipt> receipts);

  /// Moves the message to the DLQ, in whatever state it is, with `reason` in its record unless that is empty. There
  /// already: success, nothing is written. IDNotFoundError when absent. The message as it is afterwards.
  Result<Message> move_to_dlq(const std::string& id, const std::string& reason = {});
  /// The same while it is ours, ConditionalCheckFailedError afterwards.
  Result<void> move_to_dlq(const Receipt& receipt, const std::string& reason = {});
  /// Moves the message back from the DLQ, as newly sent, its receive count zero. IDNotFoundError when absent,
  /// InvalidStateTransitionError when it is not in the DLQ or in flight there. The message as it is afterwards.
  Result<Message> redrive(const std::string& id);

  /// The message, wherever it lies in the queue, as it is at this moment (a consistent read); nothing when absent.
  Result<std::optional<Message>> get(const std::string& id);
  /// Both read the whole half once.
  Result<QueueStats> queue_stats();
  Result<DlqStats> dlq_stats();
  /// One page, at most `size` messages; pages one after another show all that stays in its place, once.
  /// BuildingExpressionError for a cursor of another list.
  Result<MessageList> list(const ListOptions& options = {});
  /// Writes the message as it stands: its times, counts, half and version; whatever was there under its id is gone.
  /// Without `created_at` it was created now. What Message does not show (sets inside data, attributes that other
  /// programs have added) is gone too. MarshalingAttributeError for content that the store cannot hold.
  Result<void> replace(const Message& message);

 private:
  friend class detail::Core;
  friend class Producer;
  SLUICE_CLIENT_LOCAL explicit QueueClient(std::shared_ptr<detail::Core> core);
  std::shared_ptr<detail::Core> core_;
};

}  // namespace sluice::client
