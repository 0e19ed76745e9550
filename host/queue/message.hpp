#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue {

inline constexpr std::string_view kTextPlain = "text/plain";
inline constexpr std::string_view kOctetStream = "application/octet-stream";
inline constexpr std::string_view kJson = "application/json";

using Attributes = std::map<std::string, std::string, std::less<>>;

/// The two halves of a queue, by DynamoMQ's names: what is to be worked on, and what was given up.
enum class Half { standard, dlq };

std::string_view to_string(Half half);  // "STANDARD", "DLQ"

/// How soon a message is handed out beside others of its queue, where the store knows priorities.
enum class Priority : std::uint8_t { critical, high, normal, low };
inline constexpr std::size_t kPriorities = 4;

std::string_view to_string(Priority priority);  // "critical", "high", "normal", "low"
/// By these names; nothing for another one.
std::optional<Priority> priority_named(std::string_view name);

/// Where a job takes its messages from. A value.
struct QueueAddress {
  std::string queue;
  Half half = Half::standard;

  friend bool operator==(const QueueAddress&, const QueueAddress&) = default;
  friend auto operator<=>(const QueueAddress&, const QueueAddress&) = default;
};

/// What a handler is given. A value.
struct Message {
  std::string id;
  std::string body;
  std::string content_type{kTextPlain};  ///< one of the three above, or what the sender named
  Attributes attributes;
  std::string group;  ///< empty: none
  Priority priority = Priority::normal;
  std::uint32_t attempt = 0;  ///< the receive count, this delivery included; 1 at the first
  WallTime sent_at{};
  std::string checkpoint{};  ///< progress that its handler has stored with it; empty: none
};

/// The longest checkpoint, in bytes.
inline constexpr std::size_t kMostCheckpointBytes = std::size_t{64} * 1024;

/// How long a deduplication id keeps others away, unless it is said otherwise: as SQS does.
inline constexpr Duration kDedupWindow = std::chrono::minutes(5);

/// When another message with the same unique key may be sent again.
enum class UniqueUntil : std::uint8_t {
  claimed,  ///< "while-queued": once the first one has been handed out
  done,     ///< "until-done": once the first one has been removed, or lies in the DLQ
};

/// What a record says of its message with yes or no, a bit each (host/stores/core/outcomes.hpp).
using Marks = std::uint32_t;

/// A message to be sent. An empty id asks the store to make one.
struct NewMessage {
  std::string id;
  std::string body;
  std::string content_type{kTextPlain};
  Attributes attributes;
  std::string group;
  Duration delay{};  ///< not claimable before now + delay
  Priority priority = Priority::normal;
  /// Not empty: of the messages sent with it within the window, the first one alone is kept (SendStatus::deduplicated).
  std::string dedup_id{};
  Duration dedup_window = kDedupWindow;
  /// Not empty: while a message with this key lies in the queue, no other is put beside it (SendStatus::deduplicated).
  std::string unique_key{};
  UniqueUntil unique_until = UniqueUntil::done;
};

/// Bytes that the sender of a message decides on, its id apart.
template <typename Content>
std::size_t content_bytes(const Content& message) {
  std::size_t bytes = message.body.size() + message.content_type.size() + message.group.size();
  for (const auto& [name, value] : message.attributes) {
    bytes += name.size() + value.size();
  }
  return bytes;
}

/// Bytes of what may be long of a message in memory: its body, and the progress stored with it.
inline std::size_t payload_bytes(const Message& message) { return message.body.size() + message.checkpoint.size(); }

/// An attempt that failed before the last one. A value.
struct FailedAttempt {
  std::string error;
  std::string host;
  std::uint32_t attempt = 0;  ///< the receive count
  Duration wait{};            ///< after which it was to be tried again
  Duration took{};            ///< how long the handler ran
  WallTime failed_at{};

  friend bool operator==(const FailedAttempt&, const FailedAttempt&) = default;
};

/// Failed attempts that are kept beside the last one.
inline constexpr std::size_t kEarlierFailures = 4;

/// Why an attempt failed, kept with a message that waits for its next attempt or lies in the DLQ. A value.
struct Failure {
  std::string error;           ///< the handler's reason, cut to a limit
  std::string handler;         ///< handler that gave it
  std::string host;            ///< host that ran it
  std::uint32_t attempts = 0;  ///< attempts used when it was written
  WallTime failed_at{};
  Duration wait{};  ///< after which it is to be tried again; zero: at once, or not at all
  Duration took{};  ///< how long the handler ran; zero: not known
  /// What the record kept of attempts before, the last one first, kEarlierFailures at most. A source that settles
  /// fills it in itself.
  std::vector<FailedAttempt> earlier{};

  bool empty() const { return error.empty() && handler.empty(); }
};

/// The attempts that are kept beside a failure which follows that one.
std::vector<FailedAttempt> earlier_than_next(const Failure& failure);

/// `time` + `span`, or kEndOfTime where that is later; a negative span counts as zero.
constexpr WallTime later(WallTime time, Duration span) {
  if (span <= Duration::zero()) {
    return time;
  }
  return span > kEndOfTime - time ? kEndOfTime : time + span;
}

/// Until when a message is hidden that is to be seen at once, and no earlier than 1970: `now` + `span`, which is not
/// positive. At the very instant that is stored a message is hidden still, so that zero means the instant before.
inline WallTime seen_already(WallTime now, Duration span) {
  const Duration back = std::min(span, Duration(-1));
  return back < WallTime{} - now ? WallTime{} : now + back;
}

// What a sender says of a message that is not to be there twice: its deduplication id and its unique key.

/// The longest deduplication id or unique key, in bytes: every store has room for it beside its own.
inline constexpr std::size_t kMostSendKeyBytes = 1024;
inline constexpr Duration kLeastDedupWindow = std::chrono::seconds(1);
inline constexpr Duration kLongestDedupWindow = std::chrono::hours(24) * 366;

/// Whether the message has either.
inline bool has_send_keys(const NewMessage& message) {
  return !message.dedup_id.empty() || !message.unique_key.empty();
}

/// Why they cannot be kept: too long, not UTF-8, or a window out of bounds. ErrorCode::invalid.
std::optional<Error> refused_send_keys(const NewMessage& message);

// What a store says of a message that is not as a caller believes; the same words whichever store it is.

/// ErrorCode::not_found.
Error no_message(const std::string& queue, const std::string& id);

// ErrorCode::conflict.

Error changed_since(const std::string& queue, const std::string& id);
/// A change was tried often and came too late each time.
Error changed_all_the_time(const std::string& queue, const std::string& id);
Error not_in_dlq(const std::string& queue, const std::string& id);
Error in_flight_in_dlq(const std::string& queue, const std::string& id);

/// Makes as many results of a call as it was asked for: what a store has given none for, as none should, has failed.
template <typename Outcome>
void fill_up(std::vector<Outcome>& results, std::size_t asked) {
  if (results.size() != asked) {
    Outcome none;
    none.status = decltype(none.status)::failed;
    none.error = Error(ErrorCode::internal, "the store gave no result for this message");
    results.resize(asked, none);
  }
}

/// More than kMostCheckpointBytes. ErrorCode::invalid.
Error too_long_checkpoint(std::size_t bytes);

/// As many messages are in flight as the queue may have.
Error in_flight_limit(const std::string& queue, std::uint64_t limit);

}  // namespace sluice::queue
