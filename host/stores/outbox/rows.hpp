#pragma once

#include <boost/core/noncopyable.hpp>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"

/// Rows of an outbox table, what is asked and told of them, and how they and messages stand for each other. Values.
namespace sluice::queue::outbox {

/// What is neither copied nor moved, and known by what it can do.
class Resource : boost::noncopyable {
 public:
  virtual ~Resource() = default;
};

/// What a row is known by: its id, and where ids are unique only within a part of the table (a bucket of DynamoDB's),
/// that too. Where ids are texts, such as UUIDs, by that alone, and `id` is the row's place: 0 in a key that was made
/// from a text. Ordered by id, and those of one place by their texts. A value.
struct RowKey {
  static constexpr std::uint32_t kWhole = std::numeric_limits<std::uint32_t>::max();  ///< the table has no parts

  std::int64_t id = 0;
  std::uint32_t part = kWhole;
  std::string text{};  ///< empty: ids are numbers

  friend bool operator==(const RowKey& a, const RowKey& b) {
    return a.text == b.text && (!a.text.empty() || (a.id == b.id && a.part == b.part));
  }
  friend auto operator<=>(const RowKey&, const RowKey&) = default;
};
struct RowKeyHash {
  std::size_t operator()(const RowKey& key) const {
    return key.text.empty()
               ? std::hash<std::uint64_t>()(static_cast<std::uint64_t>(key.id) * 0x9E3779B97F4A7C15U + key.part)
               : std::hash<std::string>()(key.text);
  }
};
/// As messages, commands and logs name it: "17"; of a table with parts "3/17"; a text as it is.
std::string to_string(const RowKey& key);
/// `texts`: of a table whose ids are texts. Nothing for any other text.
std::optional<RowKey> row_key_of(std::string_view text, bool texts = false);
/// A key with its place, as a listing goes on behind it.
std::string cursor_of(const RowKey& key);
std::optional<RowKey> key_of_cursor(std::string_view cursor, bool texts);

/// Within which rows go out one after the other, by id. An empty `id`: the row has no group.
struct Group {
  std::string type;
  std::string id;

  friend bool operator==(const Group&, const Group&) = default;
  friend auto operator<=>(const Group&, const Group&) = default;
};

/// One row as it is handed out. Times are spans on the database's own clock, so that no two clocks are compared.
struct Row {
  std::int64_t id = 0;
  std::uint32_t part = RowKey::kWhole;
  std::string text{};  ///< see RowKey
  Group group;         ///< `type` is always there
  std::string event;
  std::string payload;
  bool tombstone = false;        ///< the payload is NULL
  std::uint32_t retries = 0;     ///< retry_count; NULL is 0
  std::optional<Duration> wait;  ///< until retry_at, when that lies ahead
  bool dead = false;             ///< retries are at the limit
  std::uint32_t bucket = 0;
  std::optional<WallTime> created_at;
  Attributes attributes;  ///< of the further columns
  /// Not empty: the row cannot be handed out, and why ("event is NULL"). What is NULL is empty above.
  std::string unreadable;

  RowKey key() const { return {id, part, text}; }
};

/// What is to be read.
struct FetchRequest {
  std::optional<RowKey> beyond{};          ///< rows after that one; nothing: from the first one of the table on
  std::span<const std::uint32_t> buckets;  ///< these alone; never empty
  std::span<const Group> without;          ///< sorted: rows of these are passed over in the database
  /// Never null. An entry of a list of types stands for a whole aggregate_type, or for the resource that an ARN or RN
  /// ends with (after its fifth colon). Where it holds dead letters' groups, they are read too.
  const Selection* filter = nullptr;
  std::size_t limit = 1000;  ///< rows of a page, or of each group
  /// Of payloads, about: a page ends with the row that goes beyond, and is not held in memory further.
  std::size_t bytes = 16U << 20U;
};

/// Rows of a table or of one group, in the order of their ids.
struct Page {
  std::vector<Row> rows;
  bool more = false;  ///< there may be more after the last one
};

enum class MarkStatus : std::uint8_t {
  written,
  gone,  ///< no such row, or it was sent or changed meanwhile: there is nothing to write
  // Worth another try.
  locked,     ///< a transaction of the application has the row
  throttled,  ///< the database takes no more at the moment
};
/// Why a mark is worth another try; nothing: it is written, or there is nothing to write.
std::optional<Error> reason_to_wait(MarkStatus status);

/// How the members of a lock space share it.
struct Members {
  std::uint32_t count = 1;  ///< live ones, this one included
  /// Others that share the table into another number of buckets: with them nobody knows who has what. 0: none.
  std::uint32_t other_buckets = 0;
};

/// What an operator sees of a row.
struct StoredRow {
  Row row;
  std::optional<WallTime> retry_at;
  std::optional<WallTime> sent_at;
  std::string last_error;
  std::optional<WallTime> failed_at;
};

struct ListRows {
  Half half = Half::standard;    ///< of rows that were not sent: with tries left, or without
  std::optional<RowKey> beyond;  ///< those after it (before it, when the newest come first)
  bool newest_first = false;
  std::size_t limit = 10;
  bool payload = true;  ///< false: payloads may stay empty
};

/// How much lies there, by what an operator asks first.
struct TableCounts {
  std::uint64_t ready = 0;    ///< pending, due now
  std::uint64_t waiting = 0;  ///< pending, retry_at ahead
  std::uint64_t dead = 0;
  std::uint64_t excluded = 0;         ///< would be pending, but no job's lists take them
  std::optional<std::uint64_t> sent;  ///< where it was asked for
  std::optional<Duration> oldest;     ///< age of the oldest pending row, where there is a created_at column
  std::optional<std::int64_t> oldest_id;
  std::map<std::string, std::uint64_t> by_type;   ///< pending
  std::map<std::string, std::uint64_t> by_error;  ///< pending and dead, where there is a last_error column
};

struct CountRequest {
  bool sent = false;              ///< counts what was sent too: reads the whole table
  bool details = false;           ///< by type and by error too
  std::vector<Selection> jobs{};  ///< which rows are taken; none: all
};

struct PruneRequest {
  Duration sent_before{};    ///< rows that were sent longer ago
  std::size_t limit = 1000;  ///< of one call
  bool dry_run = false;      ///< counts all of them, `limit` apart, and deletes none
};

/// What a table is called among all tables of all databases, whoever asks and from wherever.
struct SourceId {
  std::string id;     ///< printable ASCII without spaces
  std::string doubt;  ///< empty: it stays after a fail-over. Otherwise one line: why it may not, and the mend
};

/// Something about the table that a person should know, or must mend.
struct Finding {
  bool fatal = false;  ///< nothing can be published until it is mended
  ErrorCode code = ErrorCode::invalid;
  std::string text;  ///< one line: what is wrong, where, and the mend
};

/// What shall be true of a row after a mark or an operator's change, and where it takes effect. Each database spells it
/// in its own words, for rows that were not sent. A value.
struct RowEdit {
  enum class Value : std::uint8_t { keep, clear, set };

  RowKey key{};
  bool dead_only = false;                  ///< of a dead letter only
  std::optional<std::uint32_t> only_if{};  ///< only where retry_count (NULL is 0) is still this
  bool sent = false;      ///< sent_at = now; where rows that were sent are not kept, the row is deleted
  bool gives_up = false;  ///< it is a dead letter afterwards
  Value tries = Value::keep;
  std::uint32_t retries = 0;  ///< retry_count
  bool at_least = false;      ///< a retry_count that is higher stays
  Value due = Value::keep;
  Duration after{};  ///< retry_at: so long from now
  Value reason = Value::keep;
  std::string error{};  ///< last_error, where there is such a column

  /// failed_at, where there is such a column: now with each failure, and gone with its reason.
  Value failed() const { return tries == Value::set ? Value::set : reason; }
};

/// The marks of a source: the row was sent; it failed, and is tried again after `wait`; it is a dead letter.
RowEdit sent_mark(const RowKey& key);
RowEdit retry_mark(const RowKey& key, std::uint32_t retries, Duration wait, std::string error = {});
RowEdit dead_mark(const RowKey& key, std::uint32_t retries, std::string error = {});
/// What a completion writes about the row that its receipt names; nothing where nothing is written: a release.
std::optional<RowEdit> mark_of(const Completion& completion, const RowKey& key, std::uint32_t retry_limit);
/// What an operator's change makes of the row of that key; not of `move_to_front`, which no outbox can do. To remove a
/// row is to mark it as sent without having published it: the table is the application's.
RowEdit edit_of(const RowKey& key, const Change& change, std::uint32_t retry_limit);

/// Whether it takes effect on a row that was not sent.
bool takes_effect(const RowEdit& edit, std::uint32_t retries, bool dead);
/// retry_count after it; nothing: NULL.
std::optional<std::uint32_t> retries_after(const RowEdit& edit, std::uint32_t retries);

/// Where a row comes from, as it goes out with it.
struct Origin {
  std::string producer;
  std::string source_id;  ///< of its table, by which brokers know a row again; empty: not known for certain
};
/// `producer` as it is configured, or empty.
Origin origin_of(const std::string& producer, const SourceId& source);
/// The row as a handler is given it. `now` is its `sent_at` where the table does not say.
Message message_of(Row&& row, const Origin& origin, WallTime now);

/// Why a row failed, as every database can keep it: UTF-8 without NUL, and no longer than this many bytes.
inline constexpr std::size_t kLongestReason = 4096;
std::string reason_of(std::string_view error);

}  // namespace sluice::queue::outbox
