#include "host/stores/table/statements.hpp"

#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue::table {
namespace {

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
    append(statement.text, " AND ", names.half, "=?");
    statement.parameters.emplace_back(std::string(to_string(*expected.half)));
  }
  if (expected.sent_at) {
    append(statement.text, " AND ", names.sent_at, "=?");
    statement.parameters.emplace_back(*expected.sent_at);
  }
  if (expected.visible_at) {
    append(statement.text, " AND ", names.hidden_until, "<?");
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

}  // namespace sluice::queue::table
