#include "dynamo/codec/requests.hpp"

#include <map>

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

// What Query and Scan have in common.
template <typename Request>
void add_reading(Body& body, const Request& request) {
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
  if (request.count_only) {
    body.text("Select", "COUNT");
  }
  body.item_unless_empty("ExclusiveStartKey", request.exclusive_start_key);
  ask_capacity(body);
}

void append_key_schema(std::string& out, const std::string& hash_key, const std::string& range_key) {
  out += "[{\"AttributeName\":";
  append_json_string(out, hash_key);
  out += ",\"KeyType\":\"HASH\"}";
  if (!range_key.empty()) {
    out += ",{\"AttributeName\":";
    append_json_string(out, range_key);
    out += ",\"KeyType\":\"RANGE\"}";
  }
  out.push_back(']');
}

void append_index(std::string& out, const IndexDescription& index) {
  out += "{\"IndexName\":";
  append_json_string(out, index.name);
  out += ",\"KeySchema\":";
  append_key_schema(out, index.hash_key, index.range_key);
  out += ",\"Projection\":{\"ProjectionType\":";
  append_json_string(out, index.projection.empty() ? "ALL" : index.projection);
  out += "}}";
}

std::string_view name_of(TransactAction::Kind kind) {
  switch (kind) {
    case TransactAction::Kind::put:
      return "Put";
    case TransactAction::Kind::update:
      return "Update";
    case TransactAction::Kind::remove:
      return "Delete";
    case TransactAction::Kind::check:
      break;
  }
  return "ConditionCheck";
}

std::string encode_action(const TransactAction& action) {
  Body body(kTypicalBytes);
  append_item(body.member(action.kind == TransactAction::Kind::put ? "Item" : "Key"), action.item_or_key);
  body.text("TableName", action.table);
  body.text_unless_empty("UpdateExpression", action.update);
  body.text_unless_empty("ConditionExpression", action.condition);
  add_expression_attributes(body, action.names, action.values);
  if (action.return_old) {
    body.text("ReturnValuesOnConditionCheckFailure", "ALL_OLD");
  }
  return std::move(body).finish();
}

}  // namespace

std::string encode(const TransactWriteRequest& request) {
  Body body(request.actions.size() * kTypicalBytes);
  std::string& out = body.member("TransactItems");
  out.push_back('[');
  for (std::size_t i = 0; i < request.actions.size(); ++i) {
    Body one(0);
    one.member(name_of(request.actions[i].kind)) += encode_action(request.actions[i]);
    out += (i == 0 ? "" : ",") + std::move(one).finish();
  }
  out.push_back(']');
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

std::string encode(const PutItemRequest& request) {
  Body body(kTypicalBytes);
  body.text("TableName", request.table);
  append_item(body.member("Item"), request.item);
  body.text_unless_empty("ConditionExpression", request.condition);
  add_expression_attributes(body, request.names, request.values);
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode(const UpdateItemRequest& request) {
  Body body(kTypicalBytes);
  body.text("TableName", request.table);
  append_item(body.member("Key"), request.key);
  body.text_unless_empty("UpdateExpression", request.update);
  body.text_unless_empty("ConditionExpression", request.condition);
  add_expression_attributes(body, request.names, request.values);
  body.text_unless_empty("ReturnValues", request.return_values);
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode(const DeleteItemRequest& request) {
  Body body(kTypicalBytes);
  body.text("TableName", request.table);
  append_item(body.member("Key"), request.key);
  body.text_unless_empty("ConditionExpression", request.condition);
  add_expression_attributes(body, request.names, request.values);
  body.text_unless_empty("ReturnValues", request.return_values);
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
  out.push_back('[');
  bool first = true;
  for (const auto& [name, type] : request.attribute_types) {
    out += first ? "{\"AttributeName\":" : ",{\"AttributeName\":";
    first = false;
    append_json_string(out, name);
    out += ",\"AttributeType\":";
    append_json_string(out, type);
    out.push_back('}');
  }
  out.push_back(']');
  append_key_schema(body.member("KeySchema"), request.hash_key, request.range_key);
  if (!request.indexes.empty()) {
    body.member("GlobalSecondaryIndexes");
    for (std::size_t i = 0; i < request.indexes.size(); ++i) {
      out.push_back(i == 0 ? '[' : ',');
      append_index(out, request.indexes[i]);
    }
    out.push_back(']');
  }
  if (request.deletion_protection) {
    body.flag("DeletionProtectionEnabled", true);
  }
  return std::move(body).finish();
}

std::string encode_batch_execute(std::span<const Statement> statements) {
  Body body(kTypicalBytes + statements.size() * kTypicalStatementBytes);
  std::string& out = body.member("Statements");
  out.push_back('[');
  for (std::size_t i = 0; i < statements.size(); ++i) {
    out += i == 0 ? "{\"Statement\":" : ",{\"Statement\":";
    append_json_string(out, statements[i].text);
    if (!statements[i].parameters.empty()) {
      char separator = '[';
      out += ",\"Parameters\":";
      for (const AttributeValue& parameter : statements[i].parameters) {
        out.push_back(separator);
        separator = ',';
        append_value(out, parameter);
      }
      out.push_back(']');
    }
    out.push_back('}');
  }
  out.push_back(']');
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode_batch_get(std::string_view table, std::span<const Item> keys) {
  Body body(kTypicalBytes);
  std::string& out = body.member("RequestItems");
  out.push_back('{');
  append_json_string(out, table);
  out += ":{\"ConsistentRead\":true,\"Keys\":[";
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0) {
      out.push_back(',');
    }
    append_item(out, keys[i]);
  }
  out += "]}}";
  ask_capacity(body);
  return std::move(body).finish();
}

std::string encode_batch_put(std::string_view table, std::span<const Item> items) {
  Body body(kTypicalBytes);
  std::string& out = body.member("RequestItems");
  out.push_back('{');
  append_json_string(out, table);
  out += ":[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += i == 0 ? "{\"PutRequest\":{\"Item\":" : ",{\"PutRequest\":{\"Item\":";
    append_item(out, items[i]);
    out += "}}";
  }
  out += "]}";
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
