#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/timestamp.hpp"
#include "host/queue/moment.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Times are stored as nanoseconds since 1970.
inline std::int64_t stored(WallTime time) { return time.time_since_epoch().count(); }
inline WallTime loaded(std::int64_t time) { return WallTime(Duration(time)); }
inline std::optional<std::int64_t> stored(std::optional<WallTime> time) {
  return time ? std::optional(stored(*time)) : std::nullopt;
}
inline std::optional<WallTime> loaded(std::optional<std::int64_t> time) {
  return time ? std::optional(loaded(*time)) : std::nullopt;
}

/// How the two halves of a queue are numbered.
inline std::int64_t half_of(std::int64_t queue, Half half) { return queue * 2 + (half == Half::dlq ? 1 : 0); }

/// How a priority is stored in `messages`: the normal one as NULL.
inline std::optional<std::int64_t> stored(Priority priority) {
  return priority == Priority::normal ? std::nullopt : std::optional(static_cast<std::int64_t>(priority));
}
inline Priority stored_priority(std::optional<std::int64_t> value) {
  return value && *value >= 0 && *value < static_cast<std::int64_t>(kPriorities) ? static_cast<Priority>(*value)
                                                                                 : Priority::normal;
}

/// Attributes as stored: netstrings, name and value in turn ("5:trace,3:abc,"), which keep any bytes and can be read by
/// eye. Empty attributes are no bytes at all.
std::string encode_attributes(const Attributes& attributes);
/// Nothing for bytes that `encode_attributes` does not make.
std::optional<Attributes> decode_attributes(std::string_view bytes);

/// The error text of a failure is cut to this many bytes, at the border of a UTF-8 character.
inline constexpr std::size_t kErrorLimit = 4096;
/// The same of an attempt before the last one.
inline constexpr std::size_t kEarlierErrorLimit = 120;
/// A failure as stored: seven netstrings, and six for each attempt before.
/// Unreadable bytes are shown as an error text instead of being an error.
std::string encode_failure(const Failure& failure);
Failure decode_failure(std::string_view bytes);

/// A count that has outgrown its type stays at the end: beginning anew, it would hide a message tried too often.
inline std::uint32_t loaded_count(std::int64_t count) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::uint32_t>::max()));
}

/// What most messages have is stored as NULL.
inline std::optional<std::string_view> unless(std::string_view usual, const std::string& text) {
  return text == usual ? std::nullopt : std::optional<std::string_view>(text);
}

inline std::optional<Blob> unless_empty(const std::string& bytes) {
  return bytes.empty() ? std::nullopt : std::optional<Blob>(Blob{bytes});
}

/// Why a queue cannot have this name.
std::optional<Error> refused_name(const std::string& queue);
/// Why a message cannot be kept. `bytes` counts body, content type, group, attributes and what else is kept with it.
std::optional<Error> refused_message(const std::string& id, std::size_t bytes, std::size_t most_bytes);

/// From when and until when messages are somebody's. Made before the write that grants it.
struct Lease {
  Lease(const Clock& clock, Duration visibility)
      : from(clock.steady_now()),
        held_until(queue::until(from, visibility)),
        now(clock.wall_now()),
        until(later(now, visibility)) {}

  SteadyTime from;
  SteadyTime held_until;  ///< on this process's monotonic clock; never later than the record says
  WallTime now;
  WallTime until;
};

/// Under what the order of a half's group is kept; of no name: that of the whole half. Never 0. It must never change.
std::int64_t group_id(std::int64_t half, std::string_view group);

/// A place in the order of a half: sent_at, seq.
using Place = std::pair<std::int64_t, std::int64_t>;

/// Where a message stands, without its content. It lies in `ready` where it is not hidden.
struct MessageRecord {
  std::int64_t seq = 0;
  std::int64_t queue = 0;
  std::string id;
  core::MessageState state;

  std::int64_t half() const { return half_of(queue, state.half); }
  Place place() const { return {stored(state.sent_at), seq}; }
};

/// What `read_record` reads, of a message `m` with its row in `deliveries`, `d`, and the number of the column behind
/// it.
inline constexpr std::string_view kRecordColumns =
    "m.half, m.sent_at, m.id, m.message_group, m.priority, d.version, d.receives, d.until, d.received_at, d.failure, "
    "d.marks, d.checkpoint";
inline constexpr int kAfterRecord = 12;
MessageRecord read_record(const Statement& row, std::int64_t seq);

/// Behind the columns of `m` and `d`: those of one message, ?1.
inline constexpr std::string_view kOfOneMessage =
    " FROM sluice_messages AS m LEFT JOIN sluice_deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1";
/// The seq of a queue's message by its id: both halves have one index of ids.
inline constexpr const char* kFindById = "SELECT seq FROM sluice_messages WHERE id = ?1 AND half / 2 = ?2";

/// The version of a message that nobody has touched is 1, and that of its first lease one more.
inline constexpr std::int64_t kFirstLease = 2;

/// Reads content type, attributes and body from this column on; false: the attributes cannot be read, and stay empty.
bool read_content(const Statement& row, int column, Message& message);

/// What `read_delivery` reads, of a message `m` with its row in `deliveries`, `d`, and the numbers of columns.
inline constexpr std::string_view kDeliveryColumns =
    "m.seq, m.sent_at, m.id, m.message_group, m.priority, m.content_type, m.attributes, m.body, d.version, d.receives, "
    "d.checkpoint";
inline constexpr int kDeliveryVersion = 8;
inline constexpr int kAfterDelivery = 11;
/// How it is handed out next. Nothing when its attributes cannot be read.
std::optional<Delivery> read_delivery(const Statement& row, const Lease& lease);

}  // namespace sluice::queue::sqlite
