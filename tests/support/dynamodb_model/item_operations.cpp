#include <algorithm>
#include <array>
#include <utility>

#include "dynamo/codec/json_codec.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {
namespace {

std::string_view kind_action(Write::Kind kind) {
  switch (kind) {
    case Write::Kind::put:
      return "PutItem";
    case Write::Kind::update:
      return "UpdateItem";
    default:
      return "DeleteItem";
  }
}

void check_return_values(const std::string& wanted, Write::Kind kind) {
  static constexpr std::array<std::string_view, 5> kAll = {"NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"};
  if (std::find(kAll.begin(), kAll.end(), wanted) == kAll.end()) {
    throw validation("1 validation error detected: Value '" + wanted +
                     "' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: [ALL_NEW, "
                     "UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]");
  }
  if (kind != Write::Kind::update && wanted != "NONE" && wanted != "ALL_OLD") {
    throw validation("ReturnValues can only be ALL_OLD or NONE");
  }
}

std::string write_item(Context& context, const boost::json::value& request, Write::Kind kind) {
  const Arguments arguments(request, {"TableName", kind == Write::Kind::put ? "Item" : "Key",
                                      kind == Write::Kind::update ? "UpdateExpression" : "ConditionExpression",
                                      "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues",
                                      "ReturnValues", "ReturnConsumedCapacity", "ReturnValuesOnConditionCheckFailure"});
  Write write;
  write.kind = kind;
  (kind == Write::Kind::put ? write.item : write.key) =
      arguments.required_item(kind == Write::Kind::put ? "Item" : "Key");
  const std::string return_values = arguments.text("ReturnValues", "NONE");
  check_return_values(return_values, kind);
  const Expressions expressions(arguments, context.cache);
  write.table = &table_of(context, arguments, kind_action(kind));
  write.update = expressions.update();
  write.condition = expressions.condition();
  write.bindings = expressions.bindings();
  write.returns_refused = arguments.text("ReturnValuesOnConditionCheckFailure") == "ALL_OLD";
  Change change = context.database.prepare(write, context.usage);
  const Item attributes = returned(change, return_values);
  context.database.commit(std::move(change), context.usage);
  std::string out = "{";
  if (!attributes.empty()) {
    out += "\"Attributes\":";
    dynamo::append_item(out, attributes);
  }
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), false);
  if (out.size() > 1 && out[1] == ',') {
    out.erase(1, 1);
  }
  return out + "}";
}

}  // namespace

Table& table_of(Context& context, const Arguments& arguments, std::string_view action) {
  std::string name = arguments.required_text("TableName");
  if (const auto slash = name.rfind(":table/"); slash != std::string::npos) {
    name.erase(0, slash + 7);
  }
  if (name.size() < 3 || name.size() > 255) {
    throw validation("TableName must be at least 3 characters long and at most 255 characters long");
  }
  context.allow(action, name);
  return context.database.table(name);
}

Item returned(const Change& change, std::string_view return_values) {
  const auto touched_of = [&](const RecordPtr& record) {
    Item out;
    for (const std::string& name : change.touched) {
      const auto found = record->item.find(name);
      if (found != record->item.end()) {
        out.emplace(*found);
      }
    }
    return out;
  };
  if (return_values == "ALL_OLD" && change.before) {
    return change.before->item;
  }
  if (return_values == "ALL_NEW" && change.after) {
    return change.after->item;
  }
  if (return_values == "UPDATED_OLD" && change.before) {
    return touched_of(change.before);
  }
  return return_values == "UPDATED_NEW" && change.after ? touched_of(change.after) : Item{};
}

void charge_read(Context& context, const Table& table, const std::string& index, const std::string& hash,
                 std::size_t bytes, double factor) {
  const double units = read_units(bytes) * factor;
  context.usage.add_read(table.name, index, units);
  context.database.throughput().charge(Throughput::Use::read, table.name, index, hash, units, context.database.now());
}

std::string get_item(Context& context, const boost::json::value& request) {
  const Arguments arguments(request, {"TableName", "Key", "ConsistentRead", "ProjectionExpression",
                                      "ExpressionAttributeNames", "ReturnConsumedCapacity"});
  const Item key = arguments.required_item("Key");
  const Expressions expressions(arguments, context.cache);
  Table& table = table_of(context, arguments, "GetItem");
  check_key(table.schema, key);
  const Position position = position_of(table.schema, key);
  context.database.throughput().admit(Throughput::Use::read, table.name, "", position.hash, context.database.now());
  const RecordPtr record = table.find(position);
  charge_read(context, table, "", position.hash, record ? record->bytes : 0,
              arguments.flag("ConsistentRead") ? 1 : 0.5);
  std::string out = "{";
  if (record) {
    out += "\"Item\":";
    if (const auto* paths = expressions.projection()) {
      dynamo::append_item(out, projected(*paths, record->item, expressions.bindings()));
    } else {
      dynamo::append_item(out, record->item);
    }
  }
  context.usage.append_json(out, arguments.text("ReturnConsumedCapacity"), false);
  if (out.size() > 1 && out[1] == ',') {
    out.erase(1, 1);
  }
  return out + "}";
}

std::string put_item(Context& context, const boost::json::value& request) {
  return write_item(context, request, Write::Kind::put);
}

std::string update_item(Context& context, const boost::json::value& request) {
  return write_item(context, request, Write::Kind::update);
}

std::string delete_item(Context& context, const boost::json::value& request) {
  return write_item(context, request, Write::Kind::remove);
}

}  // namespace sluice::test::model
