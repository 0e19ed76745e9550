#include "host/queue/sqlite/record_reader.hpp"

#include <algorithm>

#include "host/queue/sqlite/row_codec.hpp"
#include "host/queue/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

std::optional<WallTime> optional_time(std::optional<std::int64_t> time) {
  return time ? std::optional<WallTime>(loaded(*time)) : std::nullopt;
}

}  // namespace

RecordReader::RecordReader(Connection& connection)
    : names_(connection),
      ids_(connection),
      record_(connection,
              "SELECT m.half, m.sent_at, m.created_at, m.id, m.content_type, m.message_group, m.attributes, m.body, "
              "d.version, d.receives, d.until, d.received_at, d.updated_at, d.failure FROM messages AS m "
              "LEFT JOIN deliveries AS d ON d.seq = m.seq WHERE m.seq = ?1"),
      list_ready_(connection,
                  "SELECT sent_at, seq FROM ready WHERE half = ?1 AND (sent_at, seq) > (?2, ?3) "
                  "ORDER BY sent_at, seq LIMIT ?4"),
      list_waiting_(
          connection,
          "SELECT sent_at, seq FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until IS NOT NULL "
          "AND (sent_at, seq) > (?2, ?3) ORDER BY sent_at, seq LIMIT ?4"),
      total_(connection, "SELECT messages FROM halves WHERE half = ?1"),
      waiting_(
          connection,
          "SELECT count(*), total(leased) FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until >= ?2 "
          "AND until IS NOT NULL"),
      future_(connection, "SELECT count(*) FROM ready WHERE half = ?1 AND sent_at > ?2"),
      oldest_ready_(connection, "SELECT sent_at FROM ready WHERE half = ?1 AND sent_at <= ?2 ORDER BY sent_at LIMIT 1"),
      oldest_due_(connection,
                  "SELECT min(sent_at) FROM (SELECT sent_at FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 "
                  "AND until < ?2 AND until IS NOT NULL ORDER BY until LIMIT 1000)") {}

std::optional<StoredMessage> RecordReader::find(std::int64_t queue, const std::string& id) {
  const auto seq = ids_.find(queue, id);
  return seq ? read(*seq) : std::nullopt;
}

std::optional<StoredMessage> RecordReader::read(std::int64_t seq) {
  record_.bind(seq);
  if (!record_.row()) {
    record_.reset();
    return std::nullopt;
  }
  StoredMessage found;
  found.queue_type = (record_.integer(0) & 1) == 0 ? QueueType::standard : QueueType::dlq;
  found.message.sent_at = loaded(record_.integer(1));
  found.created_at = loaded(record_.integer(2));
  found.message.id = record_.bytes(3);
  if (!record_.is_null(4)) {
    found.message.content_type = record_.bytes(4);
  }
  found.message.group = record_.bytes(5);
  // Attributes that nobody can read are shown as they are, so that an operator sees why nobody claims the message.
  found.message.attributes =
      decode_attributes(record_.bytes(6)).value_or(Attributes{{"(unreadable)", std::string(record_.bytes(6))}});
  found.message.body = record_.bytes(7);
  found.version = 1;
  found.updated_at = found.created_at;
  if (!record_.is_null(8)) {
    found.version = record_.integer(8);
    found.message.attempt = static_cast<std::uint32_t>(record_.integer(9));
    found.invisible_until = optional_time(record_.optional_integer(10));
    found.received_at = optional_time(record_.optional_integer(11));
    found.updated_at = loaded(record_.integer(12));
    found.failure = decode_failure(record_.bytes(13));
  }
  record_.reset();
  return found;
}

void RecordReader::gather(Statement& statement, std::int64_t half, const Place& after, std::size_t limit,
                          std::vector<Place>& places) {
  statement.bind(half, after.first, after.second, static_cast<std::int64_t>(limit));
  while (statement.row()) {
    places.emplace_back(statement.integer(0), statement.integer(1));
  }
  statement.reset();
}

std::vector<RecordReader::Place> RecordReader::list(std::int64_t half, const Place& after, std::size_t limit) {
  std::vector<Place> places;
  gather(list_ready_, half, after, limit, places);
  gather(list_waiting_, half, after, limit, places);
  std::sort(places.begin(), places.end());
  places.resize(std::min(places.size(), limit));
  return places;
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
  // Only after the clock has gone back are there any.
  stats.delayed += count(future_.bind(half, at));
  stats.ready = total - std::min(total, stats.in_flight + stats.delayed);
  for (Statement* statement : {&oldest_ready_, &oldest_due_}) {
    statement->bind(half, at);
    if (statement->row() && !statement->is_null(0)) {
      const WallTime sent_at = loaded(statement->integer(0));
      stats.oldest_ready = std::min(sent_at, stats.oldest_ready.value_or(sent_at));
    }
    statement->reset();
  }
  return stats;
}

}  // namespace sluice::queue::sqlite
