#include "host/stores/dynamomq/statements.hpp"

#include <iterator>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/stores/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

// What most statements take; only saves growths of the string.
constexpr std::size_t kTypicalStatementBytes = 192;

std::string quoted(std::string_view name) { return '"' + std::string(name) + '"'; }

void append(std::string& text, std::string_view before, std::string_view name, std::string_view after) {
  text += before;
  text += '"';
  text += name;
  text += '"';
  text += after;
}

// The absent version is told apart, because a comparison with a missing attribute is false for every value.
void append_condition(dynamo::Statement& statement, const RecordWrite& write) {
  const Expected& expected = write.expected;
  const RecordNames& names = *write.names;
  append(statement.text, " WHERE ", names.hash, "=?");
  statement.parameters.emplace_back(expected.id);
  if (!names.range.empty()) {
    append(statement.text, " AND ", names.range, "=?");
    statement.parameters.emplace_back(expected.sort);
  }
  if (write.whatever_it_is) {
    return;
  }
  const bool fenced = SLUICE_GUARD(table_version_fence);
  if (fenced && expected.version.stored) {
    append(statement.text, " AND ", names.version, "=?");
    statement.parameters.push_back(*expected.version.stored);
  } else if (fenced) {
    append(statement.text, " AND ", names.version, " IS MISSING");
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

dynamo::Statement insert_of(const RecordWrite& write) {
  dynamo::Statement statement;
  statement.text = "INSERT INTO " + quoted(write.table) + " VALUE {";
  for (const auto& [name, value] : write.item) {
    statement.text += (statement.parameters.empty() ? "'" : ",'") + name + "':?";
    statement.parameters.push_back(value);
  }
  statement.text += '}';
  return statement;
}

dynamo::Statement update_of(const RecordWrite& write) {
  dynamo::Statement statement;
  statement.text.reserve(kTypicalStatementBytes);
  append(statement.text, "UPDATE ", write.table, "");
  for (const auto& [name, value] : write.change.set) {
    statement.text += (statement.parameters.empty() ? " SET " : ",") + quoted(name) + "=?";
    statement.parameters.push_back(value);
  }
  if (!write.change.removed.empty()) {
    statement.text += " REMOVE " + quoted(write.change.removed);
  }
  append_condition(statement, write);
  if (write.returning) {
    statement.text += " RETURNING ALL NEW *";
  }
  return statement;
}

dynamo::Statement delete_of(const RecordWrite& write) {
  dynamo::Statement statement;
  statement.text.reserve(kTypicalStatementBytes);
  append(statement.text, "DELETE FROM ", write.table, "");
  append_condition(statement, write);
  if (write.returning) {
    statement.text += " RETURNING ALL OLD *";
  }
  return statement;
}

std::string stored_time(std::optional<WallTime> time) { return time ? format_timestamp(*time) : std::string(); }

}  // namespace

dynamo::Item RecordWrite::key() const {
  dynamo::Item key{{std::string(names->hash), expected.id}};
  if (!names->range.empty()) {
    key.emplace(names->range, expected.sort);
  }
  return key;
}

dynamo::Statement statement_of(const RecordWrite& write) {
  switch (write.kind) {
    case RecordWrite::Kind::insert:
      return insert_of(write);
    case RecordWrite::Kind::remove:
      return delete_of(write);
    case RecordWrite::Kind::update:
      break;
  }
  return update_of(write);
}

RecordWrite WriteBuilder::insert(const std::string& id, dynamo::Item item) const {
  RecordWrite write{.kind = RecordWrite::Kind::insert, .table = table_, .expected = {id, {}}};
  write.item = std::move(item);
  return write;
}

RecordWrite WriteBuilder::update(Expected expected, const WriteMark& mark, RecordChange change, bool returning) const {
  RecordWrite write{.kind = RecordWrite::Kind::update, .table = table_, .expected = std::move(expected)};
  write.returning = returning;
  auto& set = write.change.set;
  set.reserve(change.set.size() + 3);
  set.emplace_back(attribute::kVersion, AttributeValue::number(write.expected.version.next()));
  set.emplace_back(attribute::kUpdatedAt, format_timestamp(mark.now));
  set.emplace_back(attribute::kNonce, std::string(mark.nonce));
  std::move(change.set.begin(), change.set.end(), std::back_inserter(set));
  write.change.removed = change.removed;
  return write;
}

RecordWrite WriteBuilder::remove(Expected expected, bool returning) const {
  RecordWrite write{.kind = RecordWrite::Kind::remove, .table = table_, .expected = std::move(expected)};
  write.returning = returning;
  return write;
}

RecordWrite WriteBuilder::remove_any(const std::string& id) const {
  RecordWrite write = remove({id, {}}, true);
  write.whatever_it_is = true;
  return write;
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
