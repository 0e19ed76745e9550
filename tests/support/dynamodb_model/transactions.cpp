#include "tests/support/dynamodb_model/transactions.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text/json_string.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/statements.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxParts = 100;
constexpr std::size_t kMaxTransactionBytes = 4 * 1024 * 1024;
constexpr Duration kTokenLife = std::chrono::minutes(10);

// "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]".
Failure cancelled(const std::vector<std::optional<Failure>>& reasons) {
  std::string codes;
  std::string list;
  for (const auto& reason : reasons) {
    const std::string code = reason ? statement_code(reason->code) : "None";
    codes += (codes.empty() ? "" : ", ") + code;
    list += (list.empty() ? "{\"Code\":\"" : ",{\"Code\":\"") + code + "\"";
    if (reason) {
      list += ",\"Message\":";
      append_json_string(list, reason->message);
      list += reason->code == "ConditionalCheckFailedException" ? reason->extra : "";
    }
    list += "}";
  }
  return {"TransactionCanceledException",
          "Transaction cancelled, please refer cancellation reasons for specific reasons [" + codes + "]", 400,
          ",\"CancellationReasons\":[" + list + "]"};
}

void check_count(std::size_t count, const char* member) {
  if (count == 0 || count > kMaxParts) {
    throw validation("1 validation error detected: Value at '" + std::string(member) +
                     "' failed to satisfy constraint: Member must have length " +
                     (count == 0 ? "greater than or equal to 1" : "less than or equal to 100"));
  }
}

std::string capacity_alone(const Context& context, const Arguments& arguments) {
  std::string out;
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), true, true);
  return out.empty() ? "{}" : "{" + out.substr(1) + "}";
}

std::size_t bytes_of(const std::vector<Change>& changes) {
  std::size_t total = 0;
  for (const Change& change : changes) {
    total += std::max(change.before ? change.before->bytes : 0, change.after ? change.after->bytes : 0);
  }
  return total;
}

Position place_of(const Write& write) {
  const KeySchema& schema = write.table->schema;
  if (write.kind == Write::Kind::put) {
    check_item_key(schema, write.item);
    for (const auto& index : write.table->indexes) {
      index->check_not_empty(write.item);
    }
    return position_of(schema, write.item);
  }
  check_key(schema, write.key);
  return position_of(schema, write.key);
}

}  // namespace

/// One write of a transaction, with what it borrows from.
struct Transactions::Part {
  std::unique_ptr<Expressions> expressions;
  std::unique_ptr<BoundStatement> statement;
  Write write;

  static Part from(Context& context, const json::value& spelled) {
    const Arguments kinds(spelled, {"Put", "Update", "Delete", "ConditionCheck"});
    const auto& object = spelled.get_object();
    if (object.size() != 1) {
      throw validation("TransactItems can only contain one of Check, Put, Update or Delete");
    }
    const std::string name(object.begin()->key().data(), object.begin()->key().size());
    const Arguments arguments(
        object.begin()->value(),
        {"TableName", name == "Put" ? "Item" : "Key", "ConditionExpression",
         name == "Update" ? "UpdateExpression" : "ConditionExpression", "ExpressionAttributeNames",
         "ExpressionAttributeValues", "ReturnValuesOnConditionCheckFailure"});
    Part part;
    part.expressions = std::make_unique<Expressions>(arguments, context.cache);
    Write& write = part.write;
    write.kind = name == "Put"      ? Write::Kind::put
                 : name == "Update" ? Write::Kind::update
                 : name == "Delete" ? Write::Kind::remove
                                    : Write::Kind::check;
    (name == "Put" ? write.item : write.key) = arguments.required_item(name == "Put" ? "Item" : "Key");
    write.table = &table_of(context, arguments, name == "ConditionCheck" ? "ConditionCheckItem" : name + "Item");
    write.update = part.expressions->update();
    write.condition = part.expressions->condition();
    write.bindings = part.expressions->bindings();
    write.returns_refused = arguments.text("ReturnValuesOnConditionCheckFailure") == "ALL_OLD";
    if (write.kind == Write::Kind::update && write.update == nullptr) {
      arguments.required("UpdateExpression");
    }
    if (write.kind == Write::Kind::check && write.condition == nullptr) {
      arguments.required("ConditionExpression");
    }
    return part;
  }

  static Part from_statement(Context& context, const json::value& spelled) {
    Part part;
    part.statement = std::make_unique<BoundStatement>(bind(context, spelled));
    if (!part.statement->tree->writes()) {
      throw validation("the model of DynamoDB does not know transactions of SELECT statements");
    }
    if (part.statement->tree->returning != PartiqlStatement::Returning::nothing) {
      throw validation("RETURNING clause is not supported in ExecuteTransaction");
    }
    context.allow(part.statement->tree->action(), part.statement->tree->table);
    part.write = write_of(context, *part.statement);
    return part;
  }
};

std::string Transactions::write(Context& context, const json::value& request) {
  const Arguments arguments(request, {"TransactItems", "ClientRequestToken", "ReturnConsumedCapacity"});
  std::vector<Part> parts;
  check_count(arguments.required_array("TransactItems").size(), "transactItems");
  for (const json::value& spelled : arguments.required_array("TransactItems")) {
    parts.push_back(Part::from(context, spelled));
  }
  const std::string token = arguments.text("ClientRequestToken");
  const std::string text = json::serialize(request);
  if (!token.empty() && replayed(context, token, text)) {
    return capacity_alone(context, arguments);
  }
  Usage replay;
  for (const Part& part : parts) {
    replay.add_read(part.write.table->name, "", 2);
  }
  std::string body = run(context, arguments, std::move(parts));
  if (!token.empty()) {
    remember(context, token, text, replay);
  }
  return body;
}

std::string Transactions::execute(Context& context, const json::value& request) {
  const Arguments arguments(request, {"TransactStatements", "ClientRequestToken", "ReturnConsumedCapacity"});
  std::vector<Part> parts;
  check_count(arguments.required_array("TransactStatements").size(), "transactStatements");
  for (const json::value& spelled : arguments.required_array("TransactStatements")) {
    parts.push_back(Part::from_statement(context, spelled));
  }
  const std::string token = arguments.text("ClientRequestToken");
  const std::string text = json::serialize(request);
  if (!token.empty() && replayed(context, token, text)) {
    return capacity_alone(context, arguments);
  }
  std::string body = run(context, arguments, std::move(parts));
  if (!token.empty()) {
    remember(context, token, text, {});
  }
  return body;
}

std::string Transactions::run(Context& context, const Arguments& arguments, std::vector<Part> parts) {
  Database& database = context.database;
  std::set<std::pair<std::string, Position>> seen;
  for (const Part& part : parts) {
    if (!seen.emplace(part.write.table->name, place_of(part.write)).second) {
      throw validation("Transaction request cannot include multiple operations on one item");
    }
  }
  std::vector<std::optional<Failure>> reasons(parts.size());
  std::vector<Change> changes;
  bool failed = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    try {
      if (auto failure = failure_of(context.faults.choose_part())) {
        throw Failure(std::move(*failure));
      }
      changes.push_back(database.prepare(parts[i].write, context.usage));
    } catch (const Failure& failure) {
      reasons[i] = failure;
      failed = true;
    }
  }
  if (failed) {
    throw cancelled(reasons);
  }
  if (bytes_of(changes) > kMaxTransactionBytes) {
    throw validation("The aggregate size of the items in the transaction exceeds 4 MB");
  }
  for (Change& change : changes) {
    const Table& table = *change.table;
    const Position position = change.position;
    database.commit(std::move(change), context.usage, 2);
    database.lock(table, position, database.now() + span_);
  }
  return capacity_alone(context, arguments);
}

std::string Transactions::get(Context& context, const json::value& request) {
  const Arguments arguments(request, {"TransactItems", "ReturnConsumedCapacity"});
  const json::array& spelled = arguments.required_array("TransactItems");
  check_count(spelled.size(), "transactItems");
  std::vector<std::optional<Failure>> reasons(spelled.size());
  std::set<std::pair<std::string, Position>> seen;
  std::string items;
  bool failed = false;
  for (std::size_t i = 0; i < spelled.size(); ++i) {
    const Arguments get(Arguments(spelled[i], {"Get"}).required("Get"),
                        {"TableName", "Key", "ProjectionExpression", "ExpressionAttributeNames"});
    const Expressions expressions(get, context.cache);
    Table& table = table_of(context, get, "GetItem");
    const Item key = get.required_item("Key");
    check_key(table.schema, key);
    const Position position = position_of(table.schema, key);
    if (!seen.emplace(table.name, position).second) {
      throw validation("Transaction request cannot include multiple operations on one item");
    }
    if (context.database.is_locked(table, position)) {
      reasons[i] = Failure{"TransactionConflictException", "Transaction is ongoing for the item", 400, ""};
      failed = true;
      continue;
    }
    const RecordPtr record = table.find(position);
    charge_read(context, table, "", position.hash, record ? record->bytes : 0, 2);
    items += i == 0 ? "{" : ",{";
    if (record) {
      items += "\"Item\":";
      const auto* paths = expressions.projection();
      dynamo::append_item(items,
                          paths != nullptr ? projected(*paths, record->item, expressions.bindings()) : record->item);
    }
    items += "}";
  }
  if (failed) {
    throw cancelled(reasons);
  }
  std::string out = "{\"Responses\":[" + items + "]";
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), true, true);
  return out + "}";
}

bool Transactions::replayed(Context& context, const std::string& token, const std::string& request) {
  const SteadyTime now = context.database.now();
  forget_old(now);
  const auto found = tokens_.find(token);
  if (found == tokens_.end() || found->second.until <= now) {
    return false;
  }
  if (found->second.request != request) {
    throw Failure{"IdempotentParameterMismatchException",
                  "The provided idempotent token was already used with other parameters", 400, ""};
  }
  if (found->second.finished > now) {
    throw Failure{"TransactionInProgressException",
                  "The transaction with the given request token is already in progress", 400, ""};
  }
  context.usage.add(found->second.replay);
  return true;
}

void Transactions::remember(Context& context, const std::string& token, const std::string& request, Usage replay) {
  const SteadyTime now = context.database.now();
  tokens_[token] = {request, std::move(replay), now + kTokenLife, now + span_};
}

void Transactions::forget_old(SteadyTime now) {
  if (tokens_.size() < forget_at_) {
    return;
  }
  std::erase_if(tokens_, [now](const auto& entry) { return entry.second.until <= now; });
  forget_at_ = std::max<std::size_t>(4096, tokens_.size() * 2);
}

}  // namespace sluice::test::model
