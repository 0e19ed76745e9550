#include "host/stores/sqlite/records.hpp"

#include <string_view>

#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

QueueNames::QueueNames(Connection& connection)
    : again_(connection, "SELECT kept FROM sluice_queues WHERE id = ?1 AND name = ?2"),
      find_(connection, "SELECT id, kept FROM sluice_queues WHERE name = ?1") {}

std::optional<std::int64_t> QueueNames::find(const std::string& name) {
  if (const auto known = found_.find(name); known != found_.end()) {
    again_.bind(known->second, std::string_view(name));
    const bool there = again_.row();
    if (there) {
      kept_ = again_.integer(0);
    }
    again_.reset();
    if (there) {
      return known->second;
    }
    found_.erase(known);
  }
  find_.bind(std::string_view(name));
  std::optional<std::int64_t> id;
  if (find_.row()) {
    id = find_.integer(0);
    kept_ = find_.integer(1);
    found_.emplace(name, *id);
  }
  find_.reset();
  return id;
}

Records::Records(Connection& connection)
    : tally_(connection),
      ready_index_(connection),
      groups_(connection, ready_index_),
      deliveries_(connection, tally_, ready_index_, groups_),
      claimer_(connection, ready_index_, deliveries_, groups_),
      in_flight_(connection),
      names_(connection),
      by_id_(connection, kFindById),
      queue_insert_(connection, "INSERT INTO sluice_queues (name) VALUES (?1)"),
      sending_(connection, {tally_, ready_index_, deliveries_, groups_}),
      content_(
          connection,
          "UPDATE sluice_messages SET content_type = ?2, message_group = ?3, attributes = ?4, body = ?5, priority = ?6 "
          "WHERE seq = ?1"),
      put_(connection,
           "INSERT INTO sluice_messages (seq, half, sent_at, created_at, id, content_type, message_group, attributes, "
           "body, "
           "native, priority) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"),
      created_(connection, "UPDATE sluice_messages SET created_at = ?2 WHERE seq = ?1"),
      keys_(connection) {}

std::optional<std::int64_t> Records::queue(const std::string& name) {
  const auto id = names_.find(name);
  if (id) {
    groups_.learn(*id, names_.kept());
  }
  return id;
}

std::int64_t Records::make_queue(const std::string& name) {
  if (const auto id = queue(name)) {
    return *id;
  }
  queue_insert_.bind(std::string_view(name)).run();
  return queue(name).value_or(0);
}

std::optional<MessageRecord> Records::find(std::int64_t queue, const std::string& id) {
  const auto seq = by_id_.bind(std::string_view(id), queue).only();
  return seq ? deliveries_.standing(*seq) : std::nullopt;
}

void Records::replace_content(const MessageRecord& standing, const Message& content, WallTime now) {
  const std::string attributes = encode_attributes(content.attributes);
  content_
      .bind(standing.seq, unless(kTextPlain, content.content_type), unless({}, content.group), unless_empty(attributes),
            Blob{content.body}, stored(content.priority))
      .run();
  MessageRecord after = standing;
  after.group = group_hash(content.group);
  after.priority = content.priority;
  if (after.priority != Priority::normal) {
    groups_.prioritise(standing.half);
  }
  deliveries_.change(standing, after, now);
}

void Records::renew(const MessageRecord& before, const MessageRecord& after, WallTime created_at) {
  created_.bind(before.seq, stored(created_at)).run();
  deliveries_.change(before, after, created_at);
}

PutStatus Records::put(std::int64_t queue, const StoredMessage& record, PutMode mode) {
  const Message& message = record.message;
  if (const auto taken = find(queue, message.id)) {
    if (mode == PutMode::insert) {
      return PutStatus::exists;
    }
    deliveries_.remove(*taken);
  }
  MessageRecord standing{.seq = tally_.next_seq(),
                         .id = message.id,
                         .half = half_of(queue, record.half),
                         .sent_at = message.sent_at,
                         .version = record.version,
                         .receives = message.attempt,
                         .until = record.invisible_until,
                         .received_at = record.received_at,
                         .failure = {},
                         .suspect = record.suspect,
                         .group = group_hash(message.group),
                         .priority = message.priority};
  if (message.priority != Priority::normal) {
    groups_.prioritise(standing.half);
  }
  if (!record.failure.empty()) {
    standing.failure = encode_failure(record.failure);
  }
  const std::string attributes = encode_attributes(message.attributes);
  put_.bind(standing.seq, standing.half, stored(message.sent_at), stored(record.created_at),
            std::string_view(message.id), unless(kTextPlain, message.content_type), unless({}, message.group),
            unless_empty(attributes), Blob{message.body}, unless_empty(record.native), stored(message.priority))
      .run();
  deliveries_.place(standing, record.updated_at);
  tally_.add(standing.half, 1);
  return PutStatus::written;
}

}  // namespace sluice::queue::sqlite
