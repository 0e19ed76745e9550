#include "host/queue/sqlite/records.hpp"

#include <string_view>

#include "host/queue/sqlite/row_codec.hpp"
#include "host/queue/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

/// What most messages have is stored as NULL.
std::optional<std::string_view> unless(std::string_view usual, const std::string& text) {
  return text == usual ? std::nullopt : std::optional<std::string_view>(text);
}

std::optional<Blob> unless_empty(const std::string& bytes) {
  return bytes.empty() ? std::nullopt : std::optional<Blob>(Blob{bytes});
}

}  // namespace

QueueNames::QueueNames(Connection& connection) : find_(connection, "SELECT id FROM queues WHERE name = ?1") {}

std::optional<std::int64_t> QueueNames::find(const std::string& name) {
  find_.bind(std::string_view(name));
  std::optional<std::int64_t> id;
  if (find_.row()) {
    id = find_.integer(0);
  }
  find_.reset();
  return id;
}

Records::Records(Connection& connection)
    : tally_(connection),
      deliveries_(connection, tally_),
      names_(connection),
      ids_(connection),
      queue_insert_(connection, "INSERT INTO queues (name) VALUES (?1)"),
      insert_(connection, "INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
      content_(connection, "UPDATE messages SET content_type = ?2, attributes = ?3, body = ?4 WHERE seq = ?1"),
      purge_ready_(connection, "SELECT seq FROM ready WHERE half = ?1 AND seq < ?2"),
      purge_waiting_(
          connection,
          "SELECT seq FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until IS NOT NULL AND seq < ?2"),
      end_(connection, "SELECT next_seq FROM counters") {}

std::int64_t Records::make_queue(const std::string& name) {
  if (const auto id = names_.find(name)) {
    return *id;
  }
  queue_insert_.bind(std::string_view(name)).run();
  return names_.find(name).value_or(0);
}

bool Records::insert(std::int64_t queue, const std::string& id, const NewMessage& message, WallTime now) {
  if (ids_.find(queue, id)) {
    return false;
  }
  const std::int64_t half = queue * 2;
  const std::int64_t seq = tally_.next_seq();
  const WallTime sent_at = later(now, message.delay);
  const std::string attributes = encode_attributes(message.attributes);
  insert_
      .bind(seq, half, stored(sent_at), stored(now), std::string_view(id), unless(kTextPlain, message.content_type),
            unless({}, message.group), unless_empty(attributes), Blob{message.body})
      .run();
  deliveries_.place(seq, half, sent_at, message.delay > Duration::zero(), now);
  tally_.index_id(IdLookup::hash(queue, id), seq);
  tally_.add(half, 1);
  return true;
}

std::optional<Standing> Records::find(std::int64_t queue, const std::string& id) {
  const auto seq = ids_.find(queue, id);
  return seq ? deliveries_.standing(*seq) : std::nullopt;
}

void Records::replace_content(const Standing& standing, const NewMessage& content, WallTime now) {
  const std::string attributes = encode_attributes(content.attributes);
  content_.bind(standing.seq, unless(kTextPlain, content.content_type), unless_empty(attributes), Blob{content.body})
      .run();
  deliveries_.change(standing, standing, now);
}

std::vector<std::int64_t> Records::gather(Statement& statement, std::int64_t half, std::int64_t end, std::size_t max) {
  std::vector<std::int64_t> found;
  statement.bind(half, end);
  while (found.size() < max && statement.row()) {
    found.push_back(statement.integer(0));
  }
  statement.reset();
  return found;
}

std::size_t Records::purge(std::int64_t half, std::int64_t end, std::size_t max) {
  std::vector<std::int64_t> found = gather(purge_ready_, half, end, max);
  if (found.empty()) {
    found = gather(purge_waiting_, half, end, max);
  }
  std::size_t removed = 0;
  for (const std::int64_t seq : found) {
    if (const auto standing = deliveries_.standing(seq)) {
      deliveries_.remove(*standing);
      ++removed;
    }
  }
  return removed;
}

std::int64_t Records::end() {
  end_.row();
  const std::int64_t end = end_.integer(0);
  end_.reset();
  return end;
}

}  // namespace sluice::queue::sqlite
