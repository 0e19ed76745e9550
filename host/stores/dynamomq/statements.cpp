#include "host/stores/dynamomq/statements.hpp"

#include "base/timestamp.hpp"
#include "host/stores/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

// The absent version is told apart, because a comparison with a missing attribute is false for every value.
void append_condition(dynamo::Statement& statement, const Expected& expected) {
  statement.text += " WHERE \"id\"=?";
  statement.parameters.emplace_back(expected.id);
  if (expected.version.stored) {
    statement.text += " AND \"version\"=?";
    statement.parameters.push_back(*expected.version.stored);
  } else {
    statement.text += " AND \"version\" IS MISSING";
  }
  if (expected.half) {
    statement.text += " AND \"queue_type\"=?";
    statement.parameters.emplace_back(std::string(to_string(*expected.half)));
  }
  if (expected.sent_at) {
    statement.text += " AND \"sent_at\"=?";
    statement.parameters.emplace_back(*expected.sent_at);
  }
  if (expected.visible_at) {
    statement.text += " AND \"invisible_until_at\"<?";
    statement.parameters.emplace_back(format_timestamp(*expected.visible_at));
  }
}

std::string stored_time(std::optional<WallTime> time) { return time ? format_timestamp(*time) : std::string(); }

}  // namespace

StatementBuilder::StatementBuilder(std::string_view table) : table_(quoted(table)) {}

KeyedStatement StatementBuilder::insert(const std::string& id, const dynamo::Item& item) const {
  dynamo::Statement statement;
  statement.text = "INSERT INTO " + table_ + " VALUE {";
  for (const auto& [name, value] : item) {
    statement.text += (statement.parameters.empty() ? "'" : ",'") + name + "':?";
    statement.parameters.push_back(value);
  }
  statement.text += '}';
  return {id, std::move(statement)};
}

KeyedStatement StatementBuilder::update(const Expected& expected, const WriteMark& mark, const RecordChange& change,
                                        bool returning) const {
  dynamo::Statement statement;
  statement.text = "UPDATE " + table_ + " SET \"version\"=?,\"updated_at\"=?," + quoted(attribute::kNonce) + "=?";
  statement.parameters.push_back(AttributeValue::number(expected.version.next()));
  statement.parameters.emplace_back(format_timestamp(mark.now));
  statement.parameters.emplace_back(std::string(mark.nonce));
  for (const auto& [name, value] : change.set) {
    statement.text += ',' + quoted(name) + "=?";
    statement.parameters.push_back(value);
  }
  if (!change.removed.empty()) {
    statement.text += " REMOVE " + quoted(change.removed);
  }
  append_condition(statement, expected);
  if (returning) {
    statement.text += " RETURNING ALL NEW *";
  }
  return {expected.id, std::move(statement)};
}

KeyedStatement StatementBuilder::remove(const Expected& expected, bool returning) const {
  dynamo::Statement statement;
  statement.text = "DELETE FROM " + table_;
  append_condition(statement, expected);
  if (returning) {
    statement.text += " RETURNING ALL OLD *";
  }
  return {expected.id, std::move(statement)};
}

KeyedStatement StatementBuilder::remove_any(const std::string& id) const {
  dynamo::Statement statement;
  statement.text = "DELETE FROM " + table_ + " WHERE \"id\"=? RETURNING ALL OLD *";
  statement.parameters.emplace_back(id);
  return {id, std::move(statement)};
}

RecordChange claim_change(std::uint32_t receive_count, bool mark, WallTime now, WallTime invisible_until) {
  RecordChange change{{{attribute::kReceiveCount, AttributeValue::number(receive_count)},
                       {attribute::kReceivedAt, format_timestamp(now)},
                       {attribute::kInvisibleUntilAt, format_timestamp(invisible_until)}},
                      {}};
  if (mark) {
    change.set.emplace_back(attribute::kSuspect, AttributeValue::number(1));
  }
  return change;
}

RecordChange extend_change(WallTime invisible_until) {
  return {{{attribute::kInvisibleUntilAt, format_timestamp(invisible_until)}}, {}};
}

RecordChange put_off_change(std::optional<WallTime> invisible_until) {
  return {{{attribute::kInvisibleUntilAt, stored_time(invisible_until)}, {attribute::kReceivedAt, ""}}, {}};
}

RecordChange dead_letter_change(WallTime now) {
  return {{{attribute::kQueueType, std::string(to_string(Half::dlq))},
           {attribute::kReceiveCount, AttributeValue::number(0)},
           {attribute::kSentAt, format_timestamp(now)},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, ""}},
          {}};
}

RecordChange redrive_change(WallTime now) {
  RecordChange change = dead_letter_change(now);
  change.set.front().second = std::string(to_string(Half::standard));
  return change;
}

RecordChange delay_change(WallTime now, Duration delay) {
  const std::string due = format_timestamp(later(now, delay));
  return {{{attribute::kSentAt, due},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, delay > Duration::zero() ? due : std::string()}},
          {}};
}

RecordChange sent_change(WallTime sent_at) {
  return {{{attribute::kSentAt, format_timestamp(sent_at)},
           {attribute::kReceivedAt, ""},
           {attribute::kInvisibleUntilAt, ""}},
          {}};
}

RecordChange reset_change(WallTime now) {
  RecordChange change = redrive_change(now);
  change.set.emplace_back(attribute::kCreatedAt, format_timestamp(now));
  return change;
}

}  // namespace sluice::queue::dynamomq
