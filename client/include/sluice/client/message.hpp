#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <sluice/client/export.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::client {

using Duration = std::chrono::nanoseconds;
/// A point on the wall clock, UTC.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;
using Attributes = std::map<std::string, std::string, std::less<>>;

inline constexpr std::string_view kTextPlain = "text/plain";
inline constexpr std::string_view kOctetStream = "application/octet-stream";
inline constexpr std::string_view kJson = "application/json";

/// The two halves of a queue: what is to be worked on, and what was given up.
enum class QueueType { standard, dlq };
/// DynamoMQ's states. A message in flight and one that is still delayed are both processing: hidden from `receive`.
enum class Status { ready, processing };

SLUICE_CLIENT_API std::string_view to_string(QueueType type);  // "STANDARD", "DLQ"
SLUICE_CLIENT_API std::string_view to_string(Status status);   // "READY", "PROCESSING"

/// When another message with the same unique key may be sent again.
enum class UniqueUntil {
  claimed,  ///< once the first one has been received
  done,     ///< once the first one has been removed, or lies in the DLQ
};
/// How soon a message is handed out beside others of its queue. Kept on SQLite; in DynamoDB there are none, and another
/// one than normal is refused.
enum class Priority { critical, high, normal, low };

/// What a sender says of a message. A value.
struct NewMessage {
  std::string id{};    ///< must be given
  std::string data{};  ///< any bytes
  /// What `data` is. In DynamoDB application/json becomes the value that it stands for, as DynamoMQ's Go programs store
  /// and read it, text/plain a string and application/octet-stream binary; other types are kept beside the bytes.
  std::string content_type{kTextPlain};
  Attributes attributes{};
  std::string group{};
  Duration delay{};  ///< not received before now + delay; zero and negative: at once
  /// Not empty: of the messages sent with it within the window, the first one alone is stored; the others are answered
  /// with its id, even after it is done. At most 1,024 bytes of UTF-8, as is the unique key.
  std::string dedup_id{};
  Duration dedup_window = std::chrono::minutes(5);
  /// Not empty: while a message with this key is in the queue, no other is put beside it; the other is answered with
  /// the first one's id.
  std::string unique_key{};
  UniqueUntil unique_until = UniqueUntil::done;
  Priority priority = Priority::normal;
};

/// Why a message's last attempt failed, as far as somebody wrote it down. A value.
struct Failure {
  std::string error{};
  std::string handler{};
  std::string host{};
  std::uint32_t attempts = 0;
  Time failed_at{};
};

/// A message as it is stored. A value.
struct Message {
  std::string id{};
  std::string data{};
  std::string content_type{kTextPlain};
  Attributes attributes{};
  std::string group{};
  std::uint32_t receive_count = 0;
  QueueType queue_type = QueueType::standard;
  std::int64_t version = 1;
  std::optional<Time> created_at{};  ///< absent from what `receive` returns, which does not read it; ask `get`
  Time updated_at{};
  Time sent_at{};  ///< what the queue is ordered by
  std::optional<Time> received_at{};
  std::optional<Time> invisible_until_at{};
  std::optional<Failure> failure{};

  /// At the very instant of `invisible_until_at` it is still processing.
  Status status(Time now) const {
    return invisible_until_at && now <= *invisible_until_at ? Status::processing : Status::ready;
  }
  Priority priority = Priority::normal;
};

/// The proof of a receive: what is done with it holds only while nobody else has received or changed the message since.
struct Receipt {
  std::string id{};
  QueueType queue_type = QueueType::standard;
  std::int64_t version = 0;
  std::int64_t locator = 0;  ///< the store's own; pass it on as it is
  /// When it was received, from which the longest lease is counted; the epoch: not known.
  Time received_at{};
};

struct ReceivedMessage {
  Message message;
  Receipt receipt;
};

/// DynamoMQ's queue stats: "processing" are all that their records hide, and "ready" the others. `delayed` are those
/// whose time has not come, hidden or not: DynamoMQ's own producers do not hide what they delay.
struct QueueStats {
  std::vector<std::string> first_100_ids_in_queue;
  std::vector<std::string> first_100_ids_in_queue_processing;
  std::uint64_t total_messages_in_queue = 0;
  std::uint64_t total_messages_in_queue_processing = 0;
  std::uint64_t total_messages_in_queue_ready = 0;
  std::uint64_t total_messages_in_queue_delayed = 0;
};

/// How many dead letters failed for the same reason.
struct ErrorGroup {
  std::string error;
  std::uint64_t count = 0;
  std::string example_id;
};

struct DlqStats {
  std::vector<std::string> first_100_ids_in_queue;
  std::uint64_t total_messages_in_dlq = 0;
  std::vector<ErrorGroup> errors;  ///< the most frequent first, at most ten
};

/// What `list` looks at.
struct ListOptions {
  int size = 10;                          ///< zero and negative: 10
  std::optional<QueueType> queue_type{};  ///< nothing: both halves, the standard one first
  std::string cursor{};                   ///< empty: from the start; otherwise `MessageList::next` of the page before
};

struct MessageList {
  std::vector<Message> messages;  ///< of this page, by updated_at
  std::string next;               ///< empty: this was the last page
};

}  // namespace sluice::client
