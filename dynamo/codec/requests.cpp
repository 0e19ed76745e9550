#include "dynamo/codec/requests.hpp"

#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/text/json_string.hpp"
#include "dynamo/codec/json_codec.hpp"

namespace sluice::dynamo {

namespace {

// Builds the outermost object of a request, member by member.
class Body {
 public:
  explicit Body(std::size_t expected) {
    out_.reserve(expected);
    out_.push_back('{');
  }

  // Begins a member; its value is to be appended to the result.
  std::string& member(std::string_view name) {
    if (out_.size() > 1) {
      out_.push_back(',');
    }
    out_.push_back('"');
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void text(std::string_view name, std::string_view value) { append_json_string(member(name), value); }
  void text_unless_empty(std::string_view name, std::string_view value) {
    if (!value.empty()) {
      text(name, value);
    }
  }
  void item_unless_empty(std::string_view name, const Item& value) {
    if (!value.empty()) {
      append_item(member(name), value);
    }
  }
  void flag(std::string_view name, bool value) { member(name) += value ? "true" : "false"; }

  std::string finish() && {
    out_.push_back('}');
    return std::move(out_);
  }

 private:
  std::string out_;
};

// Room for table, expressions and flags beside the items; most requests then need one allocation.
constexpr std::size_t kTypicalBytes = 1536;
constexpr std::size_t kTypicalStatementBytes = 512;

void ask_capacity(Body& body) { body.text("ReturnConsumedCapacity", "TOTAL"); }

void add_expression_attributes(Body& body, const std::map<std::string, std::string>& names, const Item& values) {
  if (!names.empty()) {
    append_names(body.member("ExpressionAttributeNames"), names);
  }
  body.item_unless_empty("ExpressionAttributeValues", values);
}

void add_reading(Body& body, const PageRequest& request) {
  body.text("TableName", request.table);
  body.text_unless_empty("IndexName", request.index);
  body.text_unless_empty("FilterExpression", request.filter);
  body.text_unless_empty("ProjectionExpression", request.projection);
  add_expression_attributes(body, request.names, request.values);
  if (request.limit) {
    body.member("Limit") += std::to_string(*request.limit);
  }
  if (request.consistent) {
    body.flag("ConsistentRead", true);
  }
  body.item_unless_empty("ExclusiveStartKey", request.exclusive_start_key);
  ask_capacity(body);
}

void append_attribute(std::string& out, std::string_view name, std::string_view kind, std::string_view is) {
  Body body(0);
  body.text("AttributeName", name);
  body.text(kind, is);
  out += std::move(body).finish();
}

void append_key_schema(std::string& out, const std::string& hash_key, const std::string& range_key) {
  std::vector<std::pair<std::string, std::string_view>> keys{{hash_key, "HASH"}};
  if (!range_key.empty()) {
    keys.emplace_back(range_key, "RANGE");
  }
  append_joined(out, "[]", keys, [&out](const auto& key) { append_attribute(out, key.first, "KeyType", key.second); });
}

void append_index(std::string& out, const IndexDescription& index) {
  Body body(0);
  body.text("IndexName", index.name);
  append_key_schema(body.member("KeySchema"), index.hash_key, index.range_key);
  Body projection(0);
  projection.text("ProjectionType", index.projection.empty() ? "ALL" : index.projection);
  body.member("Projection") += std::move(projection).finish();
  out += std::move(body).finish();
}

// By ItemWrite::Kind.
constexpr std::array<std::string_view, 4> kActions{"Put", "Update", "Delete", "ConditionCheck"};

// What a write says, alone or as an action of a transaction.
void add_write(Body& body, const ItemWrite& write) {
  body.text("TableName", write.table);
  append_item(body.member(write.kind == ItemWrite::Kind::put ? "Item" : "Key"), write.item);
  body.text_unless_empty("UpdateExpression", write.update);
  body.text_unless_empty("ConditionExpression", write.condition);
  add_expression_attributes(body, write.names, write.values);
}

}  // namespace

std::string encode(const TransactWriteRequest& request) {
  Body body(request.actions.size() * kTypicalBytes);
  std::string& out = body.member("TransactItems");
  append_joined(out, "[]", request.actions, [&out](const TransactAction& action) {
    Body write(kTypicalBytes);
    add_write(write, action);
    Body one(0);
    one.member(kActions.at(static_cast<std::size_t>(action.kind))) += std::move(write).finish();
    out += std::move(one).finish();
  });
  body.text_unless_empty("ClientRequestToken", request.token);
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode(const GetItemRequest& request) {
  Body body(kTypicalBytes);
  body.text("TableName", request.table);
  append_item(body.member("Key"), request.key);
  if (request.consistent) {
    body.flag("ConsistentRead", true);
  }
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode(const ItemWrite& write) {
  Body body(kTypicalBytes);
  add_write(body, write);
  if (write.returning) {
    body.text("ReturnValues", write.kind == ItemWrite::Kind::update ? "ALL_NEW" : "ALL_OLD");
  }
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode(const QueryRequest& request) {
  Body body(kTypicalBytes);
  body.text("KeyConditionExpression", request.key_condition);
  if (!request.forward) {
    body.flag("ScanIndexForward", false);
  }
  add_reading(body, request);
  return std::move(body).finish();
}

std::string encode(const ScanRequest& request) {
  Body body(kTypicalBytes);
  add_reading(body, request);
  return std::move(body).finish();
}

std::string encode(const CreateTableRequest& request) {
  Body body(kTypicalBytes);
  body.text("TableName", request.name);
  body.text("BillingMode", "PAY_PER_REQUEST");
  std::string& out = body.member("AttributeDefinitions");
  append_joined(out, "[]", request.attribute_types,
                [&out](const auto& type) { append_attribute(out, type.first, "AttributeType", type.second); });
  append_key_schema(body.member("KeySchema"), request.hash_key, request.range_key);
  if (!request.indexes.empty()) {
    append_joined(body.member("GlobalSecondaryIndexes"), "[]", request.indexes,
                  [&out](const IndexDescription& index) { append_index(out, index); });
  }
  if (request.deletion_protection) {
    body.flag("DeletionProtectionEnabled", true);
  }
  return std::move(body).finish();
}

std::string encode_batch_execute(std::span<const Statement> statements) {
  Body body(kTypicalBytes + statements.size() * kTypicalStatementBytes);
  std::string& out = body.member("Statements");
  append_joined(out, "[]", statements, [&out](const Statement& statement) {
    out += "{\"Statement\":";
    append_json_string(out, statement.text);
    if (!statement.parameters.empty()) {
      out += ",\"Parameters\":";
      append_joined(out, "[]", statement.parameters, [&out](const AttributeValue& value) { append_value(out, value); });
    }
    out.push_back('}');
  });
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode_batch_get(std::string_view table, std::span<const Item> keys) {
  Body body(kTypicalBytes);
  std::string& out = body.member("RequestItems");
  out.push_back('{');
  append_json_string(out, table);
  out += ":{\"ConsistentRead\":true,\"Keys\":";
  append_joined(out, "[]", keys, [&out](const Item& key) { append_item(out, key); });
  out += "}}";
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode_describe_table(std::string_view table) {
  Body body(kTypicalBytes);
  body.text("TableName", table);
  return std::move(body).finish();
}

std::string encode_enable_time_to_live(std::string_view table, std::string_view attribute) {
  Body body(kTypicalBytes);
  body.text("TableName", table);
  std::string& out = body.member("TimeToLiveSpecification");
  out += "{\"AttributeName\":";
  append_json_string(out, attribute);
  out += ",\"Enabled\":true}";
  return std::move(body).finish();
}

}  // namespace sluice::dynamo
