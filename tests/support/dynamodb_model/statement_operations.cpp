#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text/json_string.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/reading.hpp"
#include "tests/support/dynamodb_model/statements.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxStatements = 25;
constexpr std::size_t kMaxStatementBytes = 8192;

Bindings bindings_of(const BoundStatement& statement) { return {nullptr, nullptr, &statement.parameters}; }

Item inserted_item(const BoundStatement& statement) {
  static const Item kNothing;
  Item item;
  const Bindings bindings = bindings_of(statement);
  Evaluator value(kNothing, bindings);
  for (const auto& [name, operand] : statement.tree->inserted) {
    const AttributeValue* found = value(operand);
    if (found == nullptr) {
      throw validation("INSERT takes values and no paths");
    }
    if (!item.emplace(name, *found).second) {
      throw validation("Item to insert has duplicate attributes");
    }
  }
  return item;
}

// The key that WHERE names; throws when it names none.
Item key_in_where(const BoundStatement& statement, const KeySchema& schema) {
  static const Item kNothing;
  const Bindings bindings = bindings_of(statement);
  const Condition* where = statement.tree->where ? &*statement.tree->where : nullptr;
  Evaluator value(kNothing, bindings);
  Item key;
  const auto add = [&](const KeyAttribute& attribute) {
    const Operand* operand = equal_to(where, attribute.name);
    if (operand == nullptr) {
      throw validation("Where clause does not contain a mandatory equality on all key attributes");
    }
    key.emplace(attribute.name, *value(*operand));
  };
  add(schema.hash);
  if (schema.range) {
    add(*schema.range);
  }
  return key;
}

std::string_view return_values(PartiqlStatement::Returning returning) {
  static constexpr std::array<std::string_view, 5> kNames = {"NONE", "ALL_NEW", "ALL_OLD", "UPDATED_NEW",
                                                             "UPDATED_OLD"};
  return kNames.at(static_cast<std::size_t>(returning));
}

std::vector<Item> select(Context& context, const BoundStatement& statement) {
  const PartiqlStatement& tree = *statement.tree;
  const Bindings bindings = bindings_of(statement);
  Selection selection;
  selection.table = &context.database.table(tree.table);
  selection.index = tree.index;
  selection.forward = !tree.descending;
  selection.consistent = statement.consistent;
  if (tree.where) {
    narrow(*tree.where, bindings, selection);
    const Condition* where = &*tree.where;
    selection.passes = [where, bindings](const Item& item) { return holds(*where, item, bindings); };
  }
  std::vector<Item> items;
  const SelectedPage page = read_page(context, selection);
  for (const RecordPtr& record : page.records) {
    items.push_back(tree.columns.empty() ? record->item : projected(tree.columns, record->item, bindings));
  }
  return items;
}

struct Outcome {
  std::string table;
  Item item;
  std::optional<Failure> failure;
};

Outcome run_part(Context& context, const BoundStatement& statement) {
  Outcome out;
  out.table = statement.tree->table;
  try {
    const PartFault fault = context.faults.choose_part();
    if (fault != PartFault::none && fault != PartFault::commit_then_error) {
      throw Failure(*failure_of(fault));
    }
    context.allow(statement.tree->action(), statement.tree->table);
    if (statement.tree->writes()) {
      Change change = context.database.prepare(write_of(context, statement), context.usage);
      out.item = returned(change, return_values(statement.tree->returning));
      context.database.commit(std::move(change), context.usage);
    } else {
      auto items = select(context, statement);
      if (!items.empty()) {
        out.item = std::move(items.front());
      }
    }
    if (fault == PartFault::commit_then_error) {
      throw Failure(*failure_of(fault));
    }
  } catch (Failure& failure) {
    out.item.clear();
    out.failure = std::move(failure);
  }
  return out;
}

void append_outcome(std::string& out, const Outcome& outcome) {
  // A statement that is wrong in itself comes back without its table.
  const bool wrong = outcome.failure && outcome.failure->code == "ValidationException";
  out += "{";
  if (!wrong) {
    out += "\"TableName\":";
    append_json_string(out, outcome.table);
  }
  if (outcome.failure) {
    out += wrong ? "" : ",";
    out += "\"Error\":{\"Code\":\"" + statement_code(outcome.failure->code) + "\",\"Message\":";
    append_json_string(out, outcome.failure->message);
    out += "}";
  } else if (!outcome.item.empty()) {
    out += ",\"Item\":";
    dynamo::append_item(out, outcome.item);
  }
  out += "}";
}

// No item twice, and no reads beside writes.
void check_batch(Context& context, const std::vector<BoundStatement>& statements) {
  std::set<std::pair<std::string, Position>> seen;
  for (const BoundStatement& statement : statements) {
    if (statement.tree->writes() != statements.front().tree->writes()) {
      throw validation("Read and write operations are not allowed together in the same batch");
    }
    if (!statement.tree->writes()) {
      continue;
    }
    try {
      const Write write = write_of(context, statement);
      const KeySchema& schema = write.table->schema;
      const bool put = write.kind == Write::Kind::put;
      put ? check_item_key(schema, write.item) : check_key(schema, write.key);
      if (!seen.emplace(write.table->name, position_of(schema, put ? write.item : write.key)).second) {
        throw Failure{"Duplicate", "", 400, ""};
      }
    } catch (const Failure& failure) {
      if (failure.code == "Duplicate") {
        throw validation("Item in the batch is a duplicate of another one: one operation per item is allowed");
      }
    }
  }
}

}  // namespace

std::string statement_code(const std::string& exception) {
  static const std::map<std::string, std::string> kCodes = {
      {"ConditionalCheckFailedException", "ConditionalCheckFailed"},
      {"ValidationException", "ValidationError"},
      {"ThrottlingException", "ThrottlingError"},
      {"InternalServerError", "InternalServerError"}};
  if (const auto found = kCodes.find(exception); found != kCodes.end()) {
    return found->second;
  }
  const auto end = exception.rfind("Exception");
  return end == std::string::npos ? exception : exception.substr(0, end);
}

BoundStatement bind(Context& context, const json::value& spelled) {
  const Arguments arguments(spelled, {"Statement", "Parameters", "ConsistentRead", "ReturnConsumedCapacity",
                                      "ReturnValuesOnConditionCheckFailure"});
  const std::string text = arguments.required_text("Statement");
  if (text.size() > kMaxStatementBytes) {
    throw validation(
        "1 validation error detected: Value at 'statement' failed to satisfy constraint: Member must have "
        "length less than or equal to 8192");
  }
  BoundStatement out;
  out.tree = context.cache.statement(text);
  out.consistent = arguments.flag("ConsistentRead");
  if (arguments.has("Parameters")) {
    for (const json::value& parameter : arguments.required_array("Parameters")) {
      out.parameters.push_back(read_value(parameter));
    }
  }
  if (out.parameters.size() != out.tree->parameters) {
    throw validation("Number of parameters in request and statement don't match.");
  }
  return out;
}

Write write_of(Context& context, const BoundStatement& statement) {
  const PartiqlStatement& tree = *statement.tree;
  Write write;
  write.table = &context.database.table(tree.table);
  write.bindings = bindings_of(statement);
  if (tree.kind == PartiqlStatement::Kind::insert) {
    write.item = inserted_item(statement);
    write.must_be_new = true;
    return write;
  }
  write.key = key_in_where(statement, write.table->schema);
  write.condition = &*tree.where;
  if (tree.kind == PartiqlStatement::Kind::update) {
    write.kind = Write::Kind::update;
    write.update = &tree.update;
    check_overlaps(tree.update, write.bindings);
    write.must_exist = true;
  } else {
    write.kind = Write::Kind::remove;
    write.absent_passes = true;
  }
  return write;
}

std::string execute_statement(Context& context, const json::value& request) {
  const std::string mode = Arguments(request, {"Statement", "Parameters", "ConsistentRead", "ReturnConsumedCapacity",
                                               "ReturnValuesOnConditionCheckFailure"})
                               .text("ReturnConsumedCapacity");
  const BoundStatement statement = bind(context, request);
  context.allow(statement.tree->action(), statement.tree->table);
  std::vector<Item> items;
  if (statement.tree->writes()) {
    Change change = context.database.prepare(write_of(context, statement), context.usage);
    Item item = returned(change, return_values(statement.tree->returning));
    context.database.commit(std::move(change), context.usage);
    if (!item.empty()) {
      items.push_back(std::move(item));
    }
  } else {
    items = select(context, statement);
  }
  std::string out;
  if (!statement.tree->writes() || statement.tree->returning != PartiqlStatement::Returning::nothing) {
    out += ",\"Items\":[";
    for (std::size_t i = 0; i < items.size(); ++i) {
      out += i == 0 ? "" : ",";
      dynamo::append_item(out, items[i]);
    }
    out += "]";
  }
  context.usage.append_json(out, mode, false);
  return out.empty() ? "{}" : "{" + out.substr(1) + "}";
}

std::string batch_execute_statement(Context& context, const json::value& request) {
  const Arguments arguments(request, {"Statements", "ReturnConsumedCapacity"});
  const json::array& spelled = arguments.required_array("Statements");
  if (spelled.empty() || spelled.size() > kMaxStatements) {
    throw validation(
        "1 validation error detected: Value at 'statements' failed to satisfy constraint: Member must have length " +
        std::string(spelled.empty() ? "greater than or equal to 1" : "less than or equal to 25"));
  }
  std::vector<BoundStatement> statements;
  for (const json::value& statement : spelled) {
    statements.push_back(bind(context, statement));
  }
  check_batch(context, statements);
  std::string out = "{\"Responses\":[";
  bool any = false;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Outcome outcome = run_part(context, statements[i]);
    any = any || !outcome.failure;
    out += i == 0 ? "" : ",";
    append_outcome(out, outcome);
  }
  out += "]";
  if (any) {
    context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), true);
  }
  return out + "}";
}

}  // namespace sluice::test::model
