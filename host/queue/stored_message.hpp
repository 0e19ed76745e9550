#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/message.hpp"

/// Messages and queues as operators see them. Values.
namespace sluice::queue {

/// A message's state, computed from its record and the time.
enum class MessageState { ready, in_flight, delayed };
inline std::string_view to_string(MessageState state) {
  return state == MessageState::ready ? "ready" : state == MessageState::in_flight ? "in_flight" : "delayed";
}

/// A message as an operator sees it: the whole record.
struct StoredMessage {
  Message message;  ///< `attempt` is the receive count so far
  Half half = Half::standard;
  std::int64_t version = 0;
  WallTime created_at{};
  WallTime updated_at{};
  std::optional<WallTime> received_at;
  std::optional<WallTime> invisible_until;
  Failure failure;
  Marks marks = 0;
  /// What the record holds where it should name its half or a time, by attribute and as it stands there; empty text for
  /// an attribute that it lacks. The fields have their defaults then, which are nothing to show to anybody.
  std::map<std::string, std::string, std::less<>> odd{};
  /// The whole record as DynamoDB JSON, given by `list` when asked for and only where it holds what the fields above do
  /// not: sets, binary values inside documents, attributes nobody here knows. A store that is given one with `put`
  /// keeps it; the fields above win over what it says of them.
  std::string native;

  MessageState state(WallTime now) const {
    if (invisible_until && now <= *invisible_until) {
      return received_at ? MessageState::in_flight : MessageState::delayed;
    }
    return message.sent_at > now ? MessageState::delayed : MessageState::ready;
  }
};

/// As a message's, with the whole record.
inline std::size_t payload_bytes(const StoredMessage& record) {
  return payload_bytes(record.message) + record.native.size();
}

struct ListRequest {
  Half half = Half::standard;
  std::size_t limit = 10;
  std::string cursor;   ///< empty: from the start; otherwise `ListPage::next` of the page before
  bool content = true;  ///< false: body, content type, attributes and group may stay empty, and cost no transfer
  bool native = false;  ///< true: fill `StoredMessage::native` where it is needed
  /// True: what has been written before is seen, where that costs more or takes another way (an index lags behind).
  bool consistent = false;
  /// True: the youngest first. Its cursors lead on to older ones, and are of such a list alone. Not together with
  /// `consistent` where a store has no order.
  bool newest_first = false;
};

struct ListPage {
  std::vector<StoredMessage> messages;  ///< in the order asked for; a consistent look of a store without order: in any
  std::string next;                     ///< empty: this was the last page
};

/// How many messages a queue half holds at one moment.
struct QueueStats {
  std::uint64_t ready = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t delayed = 0;
  /// Of the delayed ones: nothing but their `sent_at` keeps them back, so that DynamoMQ's programs take them for ready.
  std::uint64_t delayed_by_sent_at = 0;
  std::optional<WallTime> oldest_ready;  ///< sent_at of the oldest ready one, where the store knows it cheaply
  /// The figures are what those who own the queue said so long ago; nothing: they were counted. A consistent look
  /// always counts.
  std::optional<Duration> age{};
  bool at_least = false;  ///< there may be more: not all of the half was looked at
  /// Beside those: messages that no job takes. Nothing: the store knows of none.
  std::optional<std::uint64_t> excluded{};

  std::uint64_t total() const { return ready + in_flight + delayed; }
  /// Hidden by their records: what DynamoMQ calls being processed.
  std::uint64_t hidden() const { return in_flight + delayed - delayed_by_sent_at; }
};

struct StatsRequest {
  Half half = Half::standard;
  bool consistent = false;  ///< as ListRequest's
  /// True: counted, where a store has numbers at hand that are cheaper and older. Others count either way.
  bool exact = false;
  /// True: what is asked again and again. Where whoever owns the queue tells how much lies there, nothing is ever read
  /// to count it; ErrorCode::unavailable as long as nobody tells.
  bool cheap = false;
};

/// Messages that failed for one cause: their errors differ in numbers, ids, addresses and paths alone.
struct ErrorGroup {
  std::string fingerprint;  ///< its short name, as `fingerprint_of` gives it
  std::string pattern;      ///< the error as `folded_error` gives it
  std::string error;        ///< as it stands in the record of the example
  std::uint64_t count = 0;
  std::string example;  ///< id of the one that failed last
  WallTime first_failed_at{};
  WallTime last_failed_at{};
  std::map<std::string, std::uint64_t> handlers;  ///< by the handler that failed
  std::map<std::string, std::uint64_t> hosts;
  std::array<std::uint64_t, 24> per_hour{};  ///< the last hour first; older failures are in none
};

/// A look at one half of a queue: DynamoMQ's queue stats, and why what lies there has failed.
struct QueueOverview {
  QueueStats counts;
  std::vector<std::string> first_ids;            ///< in claiming order, in whatever state
  std::vector<std::string> first_in_flight_ids;  ///< the same of those that are hidden (in flight or delayed)
  std::vector<ErrorGroup> errors;                ///< the most frequent first; of messages that carry a failure
  std::uint64_t unlisted_errors = 0;             ///< messages that carry a failure of none of these groups
};

struct OverviewRequest {
  Half half = Half::standard;
  std::size_t ids = 100;   ///< most of each list of ids
  std::size_t errors = 0;  ///< most groups of errors; 0: they are not looked at
  /// As StatsRequest's: false allows older numbers (`QueueStats::age`), and lists that are empty where to fill them the
  /// half would have to be read.
  bool exact = false;
};

// 2100 and 2255: what a move hides is seen again, by its record, between the two.
inline constexpr WallTime kFirstAway{std::chrono::seconds(4'102'444'800)};
inline constexpr WallTime kLastAway{std::chrono::seconds(8'993'635'200)};

/// Whether it is hidden as a move from queue to queue hides: taken in the source, or not yet shown in the target.
inline bool is_moving(const StoredMessage& record) {
  return record.invisible_until && *record.invisible_until >= kFirstAway && *record.invisible_until < kLastAway;
}

}  // namespace sluice::queue
