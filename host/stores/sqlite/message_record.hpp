#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/timestamp.hpp"
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
  Lease(const Clock& clock, Duration visibility) {
    from = clock.steady_now();
    const Duration span = std::clamp(visibility, Duration::zero(), Duration(SteadyTime::max() - from));
    held_until = from + span;
    now = clock.wall_now();
    until = later(now, span);
  }

  SteadyTime from;
  SteadyTime held_until;  ///< on this process's monotonic clock; never later than the record says
  WallTime now;
  WallTime until;
};

/// A group's name as it is stored; never 0 for one that is not empty. It must never change.
std::int64_t group_hash(std::string_view group);
/// Of a half and such a name: under what the order of the group is kept; never 0.
std::int64_t group_id(std::int64_t half, std::int64_t name);

/// Where a message stands: its place and the state of its deliveries, without its content.
struct MessageRecord {
  std::int64_t seq = 0;
  std::string id;
  std::int64_t half = 0;
  WallTime sent_at{};
  std::int64_t version = 1;
  std::uint32_t receives = 0;
  std::optional<WallTime> until;  ///< nothing: it can be claimed, and lies in `ready`
  std::optional<WallTime> received_at;
  std::optional<std::string> failure;  ///< encoded
  Marks marks = 0;
  std::int64_t group = 0;  ///< as `group_hash` gives it; 0: none
  Priority priority = Priority::normal;

  bool suspected() const { return state().is_suspect(); }
  core::MessageState state() const {
    return {(half & 1) != 0 ? Half::dlq : Half::standard, until, received_at.has_value(), receives, marks};
  }
  /// Makes the change, in memory; the version stays.
  void apply(const core::StateChange& change);
  /// Whether those behind it in its group wait for it though it cannot be claimed: it is in flight, or to be tried
  /// again. Not so one that was sent for later, which is hidden until the very time it was sent for, and one that was
  /// set aside for good. Which of the times is the later one says nothing: the clock may have been set back.
  bool blocks() const { return until && (received_at || (sent_at != *until && *until < kEndOfTime)); }
};

/// The seq of a queue's message by its id: both halves have one index of ids.
inline constexpr const char* kFindById = "SELECT seq FROM sluice_messages WHERE id = ?1 AND half / 2 = ?2";

/// The version of a message that nobody has touched is 1, and that of its first lease one more.
inline constexpr std::int64_t kFirstLease = 2;

/// What `read_delivery` reads, of a message `m` with its row in `deliveries`, `d`.
inline constexpr std::string_view kDeliveryColumns =
    "m.seq, m.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, d.receives, m.priority";
/// How it is handed out next. Nothing when its attributes cannot be read.
std::optional<Delivery> read_delivery(const Statement& row, const Lease& lease);

}  // namespace sluice::queue::sqlite
