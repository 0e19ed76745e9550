#include "host/stores/sqlite/record_reader.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>

#include "host/queue/error_groups.hpp"
#include "host/stores/sqlite/group_order.hpp"
#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

// All messages of a half whose order is kept, in whatever state: ?2 and ?3 are the place to begin at, ?4 the limit.
std::string list_kept(const std::string& rest) {
  return "SELECT m.sent_at, p.seq FROM (SELECT seq FROM sluice_ready WHERE half = ?1 UNION SELECT seq FROM "
         "sluice_suspects "
         "WHERE half = ?1 UNION SELECT w.seq FROM sluice_groups AS g CROSS JOIN sluice_waiting AS w ON w.group_number "
         "= g.number WHERE g.half = ?1 UNION SELECT seq FROM sluice_deliveries "
         "INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until IS NOT NULL) AS p CROSS JOIN sluice_messages AS m "
         "ON m.seq = "
         "p.seq WHERE " +
         rest;
}

// Of this process. Versions of two connections say nothing of each other.
std::atomic<std::uint64_t> readers{0};

}  // namespace

RecordReader::RecordReader(Connection& connection)
    : number_(++readers),
      connection_(connection),
      names_(connection),
      version_(connection, "PRAGMA data_version"),
      queues_(connection, "SELECT name FROM sluice_queues ORDER BY name"),
      by_id_(connection, kFindById),
      record_(connection,
              "SELECT m.half, m.sent_at, m.created_at, m.id, m.content_type, m.message_group, m.attributes, m.body, "
              "d.version, d.receives, d.until, d.received_at, d.updated_at, d.failure, d.suspect, m.priority FROM "
              "sluice_messages AS m "
              "LEFT JOIN sluice_deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1"),
      head_(connection,
            "SELECT m.half, m.sent_at, m.created_at, m.id, NULL, NULL, NULL, NULL, "
            "d.version, d.receives, d.until, d.received_at, d.updated_at, d.failure, d.suspect, m.priority FROM "
            "sluice_messages AS m "
            "LEFT JOIN sluice_deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1"),
      native_(connection, "SELECT native FROM sluice_messages WHERE seq = ?1"),
      id_(connection, "SELECT id FROM sluice_messages WHERE seq = ?1"),
      list_ready_(connection,
                  "SELECT sent_at, seq FROM sluice_ready WHERE half = ?1 AND (sent_at, seq) > (?2, ?3) "
                  "ORDER BY sent_at, seq LIMIT ?4"),
      list_suspects_(connection,
                     "SELECT sent_at, seq FROM sluice_suspects WHERE half = ?1 AND (sent_at, seq) > (?2, ?3) "
                     "ORDER BY sent_at, seq LIMIT ?4"),
      list_newest_(
          connection,
          "SELECT * FROM (SELECT sent_at, seq FROM sluice_ready WHERE half = ?1 AND (sent_at, seq) < (?2, ?3) "
          "ORDER BY sent_at DESC, seq DESC LIMIT ?4) UNION ALL "
          "SELECT * FROM (SELECT sent_at, seq FROM sluice_suspects WHERE half = ?1 AND (sent_at, seq) < (?2, ?3) "
          "ORDER BY sent_at DESC, seq DESC LIMIT ?4) UNION ALL "
          "SELECT * FROM (SELECT sent_at, seq FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 "
          "AND until IS NOT NULL AND (sent_at, seq) < (?2, ?3) ORDER BY sent_at DESC, seq DESC LIMIT ?4)"),
      // They lie in another order: a look at all of them.
      list_waiting_(connection,
                    "SELECT sent_at, seq FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND "
                    "until IS NOT "
                    "NULL AND (sent_at, seq) > (?2, ?3) ORDER BY sent_at, seq LIMIT ?4"),
      total_(connection, "SELECT messages FROM sluice_halves WHERE half = ?1"),
      waiting_(connection,
               "SELECT count(*), total(leased) FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 "
               "AND until >= ?2 "
               "AND until IS NOT NULL"),
      future_(connection,
              "SELECT (SELECT count(*) FROM sluice_ready WHERE half = ?1 AND sent_at > ?2) + "
              "(SELECT count(*) FROM sluice_suspects WHERE half = ?1 AND sent_at > ?2)"),
      future_due_(
          connection,
          "SELECT count(*) FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 AND until < ?2 "
          "AND until IS NOT NULL AND sent_at > ?2"),
      oldest_ready_(
          connection,
          "SELECT min(at) FROM (SELECT min(sent_at) AS at FROM sluice_ready WHERE half = ?1 AND sent_at <= ?2 "
          "UNION ALL SELECT min(sent_at) FROM sluice_suspects WHERE half = ?1 AND sent_at <= ?2)"),
      oldest_due_(connection,
                  "SELECT min(sent_at) FROM (SELECT sent_at FROM sluice_deliveries INDEXED BY sluice_deliveries_due "
                  "WHERE half = ?1 "
                  "AND until < ?2 AND until IS NOT NULL AND sent_at <= ?2 ORDER BY until LIMIT 1000)"),
      hidden_waiting_(connection,
                      "SELECT sent_at, seq FROM sluice_deliveries INDEXED BY sluice_deliveries_due WHERE half = ?1 "
                      "AND until IS NOT NULL AND (until >= ?2 OR sent_at > ?2) ORDER BY sent_at, seq LIMIT ?3"),
      hidden_future_(
          connection,
          "SELECT sent_at, seq FROM sluice_ready WHERE half = ?1 AND sent_at > ?2 UNION ALL "
          "SELECT sent_at, seq FROM sluice_suspects WHERE half = ?1 AND sent_at > ?2 ORDER BY 1, 2 LIMIT ?3"),
      // CROSS JOIN: the failures first, and only their messages.
      failures_(connection,
                "SELECT d.failure, m.id FROM sluice_deliveries AS d CROSS JOIN sluice_messages AS m ON m.seq = d.seq "
                "WHERE d.half = ?1 AND d.failure IS NOT NULL"),
      kept_(connection, "SELECT kept FROM sluice_queues WHERE id = ?1"),
      list_kept_(connection, list_kept("(m.sent_at, p.seq) > (?2, ?3) ORDER BY 1, 2 LIMIT ?4").c_str()),
      list_kept_newest_(connection,
                        list_kept("(m.sent_at, p.seq) < (?2, ?3) ORDER BY 1 DESC, 2 DESC LIMIT ?4").c_str()),
      // Of those whose turn comes next: near enough, and cheap.
      oldest_kept_(
          connection,
          "SELECT min(m.sent_at) FROM (SELECT seq FROM sluice_ready WHERE half = ?1 ORDER BY sent_at, seq LIMIT 1000) "
          "AS p CROSS JOIN sluice_messages AS m ON m.seq = p.seq WHERE m.sent_at <= ?2") {}

std::vector<std::string> RecordReader::queues() {
  std::vector<std::string> names;
  while (queues_.row()) {
    names.emplace_back(queues_.bytes(0));
  }
  queues_.reset();
  return names;
}

std::optional<StoredMessage> RecordReader::find(std::int64_t queue, const std::string& id) {
  const auto seq = by_id_.bind(std::string_view(id), queue).only();
  return seq ? read(*seq) : std::nullopt;
}

std::optional<StoredMessage> RecordReader::read(Statement& statement, std::int64_t seq) {
  statement.bind(seq);
  if (!statement.row()) {
    statement.reset();
    return std::nullopt;
  }
  StoredMessage found;
  found.half = (statement.integer(0) & 1) == 0 ? Half::standard : Half::dlq;
  found.message.sent_at = loaded(statement.integer(1));
  found.created_at = loaded(statement.integer(2));
  found.message.id = statement.bytes(3);
  if (!statement.is_null(4)) {
    found.message.content_type = statement.bytes(4);
  }
  found.message.group = statement.bytes(5);
  // Attributes that nobody can read are shown as they are, so that an operator sees why nobody claims the message.
  found.message.attributes =
      decode_attributes(statement.bytes(6)).value_or(Attributes{{"(unreadable)", std::string(statement.bytes(6))}});
  found.message.body = statement.bytes(7);
  found.message.priority = stored_priority(statement.optional_integer(15));
  found.version = 1;
  found.updated_at = found.created_at;
  if (!statement.is_null(8)) {
    found.version = statement.integer(8);
    found.message.attempt = loaded_count(statement.integer(9));
    found.invisible_until = loaded(statement.optional_integer(10));
    found.received_at = loaded(statement.optional_integer(11));
    found.updated_at = loaded(statement.integer(12));
    found.failure = decode_failure(statement.bytes(13));
    found.suspect = statement.integer(14) != 0;
  }
  statement.reset();
  return found;
}

std::string RecordReader::native(std::int64_t seq) {
  native_.bind(seq);
  std::string text(native_.row() ? native_.bytes(0) : std::string_view());
  native_.reset();
  return text;
}

std::string RecordReader::id(std::int64_t seq) {
  id_.bind(seq);
  std::string text(id_.row() ? id_.bytes(0) : std::string_view());
  id_.reset();
  return text;
}

std::vector<std::int64_t> RecordReader::place_halves(std::int64_t half) {
  kept_.bind(half / 2);
  const std::int64_t bits = kept_.row() ? kept_.integer(0) : 0;
  kept_.reset();
  if (GroupOrder::kept_in(bits, half) != Kept::none) {
    return {};
  }
  std::vector<std::int64_t> halves{half};
  if ((bits & GroupOrder::kPrioritised) != 0) {
    for (const Priority priority : {Priority::critical, Priority::high, Priority::low}) {
      halves.push_back(class_half(half, priority));
    }
  }
  return halves;
}

std::vector<RecordReader::Place> RecordReader::places(Statement& statement, std::int64_t half, const Place& from,
                                                      std::size_t limit) {
  std::vector<Place> found;
  statement.bind(half, from.first, from.second, static_cast<std::int64_t>(limit));
  while (statement.row()) {
    found.emplace_back(statement.integer(0), statement.integer(1));
  }
  statement.reset();
  return found;
}

std::vector<RecordReader::Place> RecordReader::list(std::int64_t half, const Place& after, std::size_t limit) {
  const std::vector<std::int64_t> halves = place_halves(half);
  if (halves.empty()) {
    return places(list_kept_, half, after, limit);
  }
  std::vector<Place> all = places(list_suspects_, half, after, limit);
  const std::vector<Place> waiting = places(list_waiting_, half, after, limit);
  all.insert(all.end(), waiting.begin(), waiting.end());
  for (const std::int64_t place_half : halves) {
    const std::vector<Place> some = places(list_ready_, place_half, after, limit);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end());
  all.resize(std::min(all.size(), limit));
  return all;
}

std::vector<RecordReader::Place> RecordReader::list_newest(std::int64_t half, const Place& before, std::size_t limit) {
  const std::vector<std::int64_t> halves = place_halves(half);
  if (halves.empty()) {
    return places(list_kept_newest_, half, before, limit);
  }
  std::vector<Place> all;
  for (const std::int64_t place_half : halves) {
    const std::vector<Place> some = places(list_newest_, place_half, before, limit);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(), std::greater<>());
  all.resize(std::min(all.size(), limit));
  return all;
}

QueueStats RecordReader::stats(std::int64_t half, WallTime now) {
  const std::int64_t at = stored(now);
  const auto count = [](Statement& statement) {
    const std::int64_t value = statement.row() ? statement.integer(0) : 0;
    statement.reset();
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value));
  };
  QueueStats stats;
  const std::uint64_t total = count(total_.bind(half));
  waiting_.bind(half, at);
  if (waiting_.row()) {
    stats.in_flight = static_cast<std::uint64_t>(waiting_.integer(1));
    stats.delayed = static_cast<std::uint64_t>(waiting_.integer(0)) - stats.in_flight;
  }
  waiting_.reset();
  // Only after the clock has gone back, or when a delayed message was made visible before its time, are there any.
  const std::vector<std::int64_t> halves = place_halves(half);
  for (const std::int64_t place_half : halves) {
    stats.delayed += count(future_.bind(place_half, at));
  }
  stats.delayed += count(future_due_.bind(half, at));
  stats.ready = total - std::min(total, stats.in_flight + stats.delayed);
  const auto oldest = [&stats, at](Statement& statement, std::int64_t where) {
    statement.bind(where, at);
    if (statement.row() && !statement.is_null(0)) {
      const WallTime sent_at = loaded(statement.integer(0));
      stats.oldest_ready = std::min(sent_at, stats.oldest_ready.value_or(sent_at));
    }
    statement.reset();
  };
  if (halves.empty()) {
    oldest(oldest_kept_, half);
  }
  for (const std::int64_t place_half : halves) {
    oldest(oldest_ready_, place_half);
  }
  oldest(oldest_due_, half);
  return stats;
}

void RecordReader::errors(std::int64_t half, std::size_t limit, WallTime now, QueueOverview& seen) {
  if (limit == 0) {
    return;
  }
  ErrorGroups groups(now);
  failures_.bind(half);
  while (failures_.row()) {
    groups.add(std::string(failures_.bytes(1)), decode_failure(failures_.bytes(0)));
  }
  failures_.reset();
  seen.errors = std::move(groups).finish(limit, seen.unlisted_errors);
}

QueueOverview RecordReader::overview(std::int64_t half, std::size_t ids, std::size_t errors, WallTime now) {
  QueueOverview seen;
  seen.counts = stats(half, now);
  for (const Place& place : list(half, kFirst, ids)) {
    seen.first_ids.push_back(id(place.second));
  }
  std::vector<Place> hidden;
  for (Statement* statement : {&hidden_waiting_, &hidden_future_}) {
    statement->bind(half, stored(now), static_cast<std::int64_t>(ids));
    while (statement->row()) {
      hidden.emplace_back(statement->integer(0), statement->integer(1));
    }
    statement->reset();
  }
  std::sort(hidden.begin(), hidden.end());
  hidden.resize(std::min(hidden.size(), ids));
  for (const Place& place : hidden) {
    seen.first_in_flight_ids.push_back(id(place.second));
  }
  this->errors(half, errors, now, seen);
  return seen;
}

}  // namespace sluice::queue::sqlite
