#include <set>
#include <utility>

#include "base/text/json_string.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxKeys = 100;
constexpr std::size_t kMaxWrites = 25;
constexpr std::size_t kMaxAnswerBytes = 16u << 20;

bool is_throttle(const Failure& failure) {
  return failure.code == "ProvisionedThroughputExceededException" || failure.code == "ThrottlingException" ||
         failure.code == "InternalServerError" || failure.code == "TransactionConflictException";
}

// One table's part of a BatchGetItem, and what came of it.
struct KeysOfTable {
  std::string name;
  const json::object* asked = nullptr;
  std::vector<std::pair<Item, const json::value*>> keys;
  std::string items;  ///< JSON, without brackets
  std::vector<const json::value*> unprocessed;
};

KeysOfTable read_keys(const std::string& name, const json::value& asked) {
  KeysOfTable out;
  out.name = name;
  const Arguments arguments(asked, {"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"});
  out.asked = &asked.get_object();
  const json::array& keys = arguments.required_array("Keys");
  if (keys.empty()) {
    throw validation("1 validation error detected: Value at 'requestItems." + name +
                     ".member.keys' failed to satisfy constraint: Member must have length greater than or equal to 1");
  }
  for (const json::value& key : keys) {
    out.keys.emplace_back(read_item(key), &key);
  }
  return out;
}

// Reads one key; false when it is left for another time.
bool get_key(Context& context, Table& table, const Item& key, const Expressions& expressions, bool consistent,
             KeysOfTable& part, std::size_t& room) {
  const Position position = position_of(table.schema, key);
  context.database.throughput().admit(Throughput::Use::read, table.name, "", position.hash, context.database.now());
  const RecordPtr record = table.find(position);
  if (record && record->bytes > room) {
    return false;
  }
  charge_read(context, table, "", position.hash, record ? record->bytes : 0, consistent ? 1 : 0.5);
  if (!record) {
    return true;
  }
  room -= record->bytes;
  part.items += part.items.empty() ? "" : ",";
  if (const auto* paths = expressions.projection()) {
    dynamo::append_item(part.items, projected(*paths, record->item, expressions.bindings()));
  } else {
    dynamo::append_item(part.items, record->item);
  }
  return true;
}

// Reads what it may; gives how many keys it read.
std::size_t get_keys(Context& context, KeysOfTable& part, const json::value& asked, std::size_t& room,
                     std::optional<Failure>& refusal) {
  const Arguments arguments(asked, {"Keys", "ConsistentRead", "ProjectionExpression", "ExpressionAttributeNames"});
  const Expressions expressions(arguments, context.cache);
  Table& table = context.database.table(part.name);
  std::set<Position> seen;
  for (const auto& [key, spelled] : part.keys) {
    check_key(table.schema, key);
    if (!seen.insert(position_of(table.schema, key)).second) {
      throw validation("Provided list of item keys contains duplicates");
    }
  }
  for (const auto& [key, spelled] : part.keys) {
    bool read = false;
    try {
      const PartFault fault = context.faults.choose_part();
      read = fault == PartFault::none &&
             get_key(context, table, key, expressions, arguments.flag("ConsistentRead"), part, room);
    } catch (const Failure& failure) {
      if (!is_throttle(failure)) {
        throw;
      }
      refusal = failure;
    }
    if (!read) {
      part.unprocessed.push_back(spelled);
    }
  }
  return part.keys.size() - part.unprocessed.size();
}

void append_unprocessed_keys(std::string& out, const KeysOfTable& part) {
  json::object left = *part.asked;
  json::array keys;
  for (const json::value* key : part.unprocessed) {
    keys.push_back(*key);
  }
  left["Keys"] = std::move(keys);
  append_json_string(out, part.name);
  out += ":" + json::serialize(left);
}

// One put or delete of a BatchWriteItem, and how it was asked for.
struct BatchWrite {
  std::string table;
  const json::value* spelled = nullptr;
  Write write;
};

BatchWrite read_write(Context& context, const std::string& table, const json::value& spelled) {
  const Arguments arguments(spelled, {"PutRequest", "DeleteRequest"});
  BatchWrite out;
  out.table = table;
  out.spelled = &spelled;
  out.write.table = &context.database.table(table);
  if (const json::value* put = arguments.find("PutRequest")) {
    out.write.item = Arguments(*put, {"Item"}).required_item("Item");
  } else {
    out.write.kind = Write::Kind::remove;
    out.write.key = Arguments(arguments.required("DeleteRequest"), {"Key"}).required_item("Key");
  }
  return out;
}

Position place_of(const BatchWrite& write) {
  const KeySchema& schema = write.write.table->schema;
  if (write.write.kind == Write::Kind::put) {
    check_item_key(schema, write.write.item);
    return position_of(schema, write.write.item);
  }
  check_key(schema, write.write.key);
  return position_of(schema, write.write.key);
}

std::vector<BatchWrite> read_writes(Context& context, const json::object& tables) {
  std::vector<BatchWrite> writes;
  std::set<std::pair<std::string, Position>> seen;
  for (const auto& [name, requests] : tables) {
    const std::string table(name.data(), name.size());
    context.allow("BatchWriteItem", table);
    if (!requests.is_array() || requests.get_array().empty()) {
      throw validation("The batch write request list for a table cannot be null or empty: " + table);
    }
    for (const json::value& request : requests.get_array()) {
      writes.push_back(read_write(context, table, request));
    }
  }
  if (writes.empty() || writes.size() > kMaxWrites) {
    throw validation(writes.empty() ? "BatchWriteItem cannot have a null or empty requests set"
                                    : "Too many items requested for the BatchWriteItem call");
  }
  for (const BatchWrite& write : writes) {
    if (!seen.emplace(write.table, place_of(write)).second) {
      throw validation("Provided list of item keys contains duplicates");
    }
  }
  return writes;
}

// What a write is refused for whatever the state of the table is fails the whole batch before any of it is done.
void check_items(const std::vector<BatchWrite>& writes) {
  for (const BatchWrite& write : writes) {
    if (write.write.kind == Write::Kind::put) {
      check_new_item(*write.write.table, write.write.item);
    }
  }
}

}  // namespace

std::string batch_get_item(Context& context, const json::value& request) {
  const Arguments arguments(request, {"RequestItems", "ReturnConsumedCapacity"});
  std::vector<std::pair<KeysOfTable, const json::value*>> parts;
  std::size_t keys = 0;
  for (const auto& [name, asked] : arguments.required_object("RequestItems")) {
    parts.emplace_back(read_keys(std::string(name.data(), name.size()), asked), &asked);
    keys += parts.back().first.keys.size();
    context.allow("BatchGetItem", parts.back().first.name);
  }
  if (keys == 0 || keys > kMaxKeys) {
    throw validation(keys == 0 ? "1 validation error detected: Value '{}' at 'requestItems' failed to satisfy "
                                 "constraint: Member must have length greater than or equal to 1"
                               : "Too many items requested for the BatchGetItem call");
  }
  std::size_t room = kMaxAnswerBytes;
  std::size_t read = 0;
  std::optional<Failure> refusal;
  for (auto& [part, asked] : parts) {
    read += get_keys(context, part, *asked, room, refusal);
  }
  if (read == 0 && refusal) {
    throw Failure(*refusal);
  }
  std::string responses;
  std::string unprocessed;
  for (const auto& [part, asked] : parts) {
    responses += responses.empty() ? "" : ",";
    append_json_string(responses, part.name);
    responses += ":[" + part.items + "]";
    if (!part.unprocessed.empty()) {
      unprocessed += unprocessed.empty() ? "" : ",";
      append_unprocessed_keys(unprocessed, part);
    }
  }
  std::string out = "{\"Responses\":{" + responses + "},\"UnprocessedKeys\":{" + unprocessed + "}";
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), true);
  return out + "}";
}

std::string batch_write_item(Context& context, const json::value& request) {
  const Arguments arguments(request, {"RequestItems", "ReturnConsumedCapacity"});
  const std::vector<BatchWrite> writes = read_writes(context, arguments.required_object("RequestItems"));
  check_items(writes);
  std::map<std::string, std::string> left;
  std::size_t done = 0;
  std::optional<Failure> refusal;
  for (const BatchWrite& write : writes) {
    try {
      if (auto failure = failure_of(context.faults.choose_part())) {
        throw Failure(std::move(*failure));
      }
      context.database.commit(context.database.prepare(write.write, context.usage), context.usage);
      ++done;
    } catch (const Failure& failure) {
      if (!is_throttle(failure)) {
        throw;
      }
      refusal = failure;
      std::string& rest = left[write.table];
      rest += (rest.empty() ? "" : ",") + json::serialize(*write.spelled);
    }
  }
  if (done == 0 && refusal && refusal->code == "ProvisionedThroughputExceededException") {
    throw Failure(*refusal);
  }
  std::string out = "{\"UnprocessedItems\":{";
  for (auto table = left.begin(); table != left.end(); ++table) {
    out += table == left.begin() ? "" : ",";
    append_json_string(out, table->first);
    out += ":[" + table->second + "]";
  }
  out += "}";
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), true);
  return out + "}";
}

}  // namespace sluice::test::model
