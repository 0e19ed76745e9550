#include <string_view>
#include <utility>

#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"
#include "dynamo/codec/error_response.hpp"
#include "dynamo/codec/item_reader.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/codec/response_reader.hpp"
#include "dynamo/transaction.hpp"

namespace sluice::dynamo {

namespace {

constexpr std::size_t kTypicalActionBytes = 1536;

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

void append_text(std::string& out, std::string_view name, std::string_view value) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json_string(out, value);
}

void append_action(std::string& out, const TransactAction& action) {
  out += "{\"";
  out += name_of(action.kind);
  out += "\":{";
  out += action.kind == TransactAction::Kind::put ? "\"Item\":" : "\"Key\":";
  append_item(out, action.item_or_key);
  append_text(out, "TableName", action.table);
  if (!action.update.empty()) {
    append_text(out, "UpdateExpression", action.update);
  }
  if (!action.condition.empty()) {
    append_text(out, "ConditionExpression", action.condition);
  }
  if (!action.names.empty()) {
    out += ",\"ExpressionAttributeNames\":";
    append_names(out, action.names);
  }
  if (!action.values.empty()) {
    out += ",\"ExpressionAttributeValues\":";
    append_item(out, action.values);
  }
  if (action.return_old) {
    append_text(out, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
  }
  out += "}}";
}

}  // namespace

std::string encode(const TransactWriteRequest& request) {
  std::string out;
  out.reserve(request.actions.size() * kTypicalActionBytes);
  out += "{\"TransactItems\":[";
  for (std::size_t i = 0; i < request.actions.size(); ++i) {
    if (i > 0) {
      out.push_back(',');
    }
    append_action(out, request.actions[i]);
  }
  out.push_back(']');
  if (!request.token.empty()) {
    append_text(out, "ClientRequestToken", request.token);
  }
  append_text(out, "ReturnConsumedCapacity", "TOTAL");
  out.push_back('}');
  return out;
}

std::vector<CancellationReason> decode_cancellation(std::string_view body) {
  std::vector<CancellationReason> reasons;
  JsonReader reader(body, kMaxJsonDepth, JsonReader::BadText::replace);
  const bool read = read_members(reader, [&](std::string_view name) {
    if (name != "CancellationReasons" || reader.peek() != JsonReader::Kind::array) {
      return false;
    }
    return read_elements(reader, [&] {
      CancellationReason& reason = reasons.emplace_back();
      return read_members(reader, [&](std::string_view member) {
        if (member == "Message") {
          took_string(reader, reason.message);
          reason.message = one_line(reason.message);
          return true;
        }
        return member == "Code" ? took_string(reader, reason.code) : member == "Item" && took_item(reader, reason.item);
      });
    });
  });
  if (!read || !reader.finish()) {
    reasons.clear();
  }
  return reasons;
}

}  // namespace sluice::dynamo
