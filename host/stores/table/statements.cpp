#include "host/stores/table/statements.hpp"

#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"

namespace sluice::queue::table {

namespace {

using dynamo::AttributeValue;
using Kind = RecordWrite::Kind;

// What most statements take; only saves growths of the string.
constexpr std::size_t kTypicalStatementBytes = 192;

/// What a record must say for a write to take effect.
struct Clause {
  enum class Comparison { equals, is_below, is_absent };
  std::string_view attribute;
  Comparison comparison = Comparison::equals;
  AttributeValue value{};
};

// The absent version is told apart, because a comparison with a missing attribute is false for every value.
std::vector<Clause> clauses_of(const RecordWrite& write) {
  std::vector<Clause> clauses;
  if (write.whatever_it_is) {
    return clauses;
  }
  const Expected& expected = write.expected;
  const RecordNames& names = *write.names;
  const bool fenced = SLUICE_GUARD(table_version_fence);
  if (fenced && expected.version.stored) {
    clauses.push_back({names.version, Clause::Comparison::equals, *expected.version.stored});
  } else if (fenced) {
    clauses.push_back({names.version, Clause::Comparison::is_absent});
  }
  if (expected.half) {
    clauses.push_back({names.half, Clause::Comparison::equals, std::string(to_string(*expected.half))});
  }
  if (expected.sent_at) {
    clauses.push_back({names.sent_at, Clause::Comparison::equals, *expected.sent_at});
  }
  if (expected.visible_at) {
    clauses.push_back({names.hidden_until, Clause::Comparison::is_below, format_timestamp(*expected.visible_at)});
  }
  return clauses;
}

void append_quoted(std::string& text, std::string_view before, std::string_view name, std::string_view after = "") {
  text += before;
  text += '"';
  text += name;
  text += '"';
  text += after;
}

void append_where(dynamo::Statement& statement, const RecordWrite& write) {
  append_quoted(statement.text, " WHERE ", write.names->hash, "=?");
  statement.parameters.emplace_back(write.expected.id);
  if (!write.names->range.empty()) {
    append_quoted(statement.text, " AND ", write.names->range, "=?");
    statement.parameters.emplace_back(write.expected.sort);
  }
  for (Clause& clause : clauses_of(write)) {
    const bool absent = clause.comparison == Clause::Comparison::is_absent;
    append_quoted(statement.text, " AND ", clause.attribute,
                  absent                                              ? " IS MISSING"
                  : clause.comparison == Clause::Comparison::is_below ? "<?"
                                                                      : "=?");
    if (!absent) {
      statement.parameters.push_back(std::move(clause.value));
    }
  }
}

/// Spells the names and values of a request's expressions behind placeholders, because some names are reserved words.
/// `Request` is any that has expressions.
template <typename Request>
class Placeholders {
 public:
  explicit Placeholders(Request& request) : request_(request) {}

  std::string name(std::string_view attribute) {
    std::string placeholder = "#" + std::string(attribute);
    request_.names.emplace(placeholder, attribute);
    return placeholder;
  }
  std::string compared(std::string_view attribute, std::string_view comparison, AttributeValue value) {
    std::string placeholder = ":" + std::to_string(request_.values.size());
    std::string text = name(attribute) + std::string(comparison) + placeholder;
    request_.values.emplace(std::move(placeholder), std::move(value));
    return text;
  }
  std::string clause(Clause&& clause) {
    switch (clause.comparison) {
      case Clause::Comparison::is_absent:
        return "attribute_not_exists(" + name(clause.attribute) + ")";
      case Clause::Comparison::is_below:
        return compared(clause.attribute, " < ", std::move(clause.value));
      case Clause::Comparison::equals:
        break;
    }
    return compared(clause.attribute, " = ", std::move(clause.value));
  }

 private:
  Request& request_;
};

template <typename Request>
Request request_about(const RecordWrite& write, std::string_view returned) {
  Request request;
  request.table = write.table;
  request.key = write.key();
  request.return_values = write.returning ? returned : "NONE";
  Placeholders spelt(request);
  for (Clause& clause : clauses_of(write)) {
    if (request.condition.empty() && clause.comparison == Clause::Comparison::is_absent) {
      request.condition = "attribute_exists(" + spelt.name(write.names->hash) + ")";
    }
    request.condition += (request.condition.empty() ? "" : " AND ") + spelt.clause(std::move(clause));
  }
  return request;
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
  dynamo::Statement statement;
  std::string& text = statement.text;
  text.reserve(kTypicalStatementBytes);
  if (write.kind == Kind::insert) {
    append_quoted(text, "INSERT INTO ", write.table, " VALUE {");
    for (const auto& [name, value] : write.item) {
      text += (statement.parameters.empty() ? "'" : ",'") + name + "':?";
      statement.parameters.push_back(value);
    }
    text += '}';
    return statement;
  }
  append_quoted(text, write.kind == Kind::update ? "UPDATE " : "DELETE FROM ", write.table);
  for (const auto& [name, value] : write.change.set) {
    append_quoted(text, statement.parameters.empty() ? " SET " : ",", name, "=?");
    statement.parameters.push_back(value);
  }
  if (!write.change.removed.empty()) {
    append_quoted(text, " REMOVE ", write.change.removed);
  }
  append_where(statement, write);
  if (write.returning) {
    text += write.kind == Kind::update ? " RETURNING ALL NEW *" : " RETURNING ALL OLD *";
  }
  return statement;
}

dynamo::ItemWrite request_of(const RecordWrite& write) {
  if (write.kind == Kind::insert) {
    dynamo::PutItemRequest put{.table = std::string(write.table), .item = write.item};
    put.condition = "attribute_not_exists(" + Placeholders(put).name(write.names->hash) + ")";
    return put;
  }
  if (write.kind == Kind::remove) {
    return request_about<dynamo::DeleteItemRequest>(write, "ALL_OLD");
  }
  auto request = request_about<dynamo::UpdateItemRequest>(write, "ALL_NEW");
  Placeholders spelt(request);
  for (const auto& [name, value] : write.change.set) {
    request.update += (request.update.empty() ? "SET " : ", ") + spelt.compared(name, " = ", value);
  }
  if (!write.change.removed.empty()) {
    request.update += " REMOVE " + spelt.name(write.change.removed);
  }
  return request;
}

dynamo::TransactAction action_of(dynamo::ItemWrite request) {
  using dynamo::TransactAction;
  TransactAction action;
  std::visit(
      [&action](auto& one) {
        using Request = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<Request, dynamo::PutItemRequest>) {
          action.item_or_key = std::move(one.item);
        } else {
          action.kind = std::is_same_v<Request, dynamo::UpdateItemRequest> ? TransactAction::Kind::update
                                                                           : TransactAction::Kind::remove;
          action.item_or_key = std::move(one.key);
        }
        if constexpr (std::is_same_v<Request, dynamo::UpdateItemRequest>) {
          action.update = std::move(one.update);
        }
        action.table = std::move(one.table);
        action.condition = std::move(one.condition);
        action.names = std::move(one.names);
        action.values = std::move(one.values);
      },
      request);
  return action;
}

dynamo::TransactAction action_of(const RecordWrite& write) { return action_of(request_of(write)); }

}  // namespace sluice::queue::table
