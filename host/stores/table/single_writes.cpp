#include "host/stores/table/single_writes.hpp"

#include <utility>

#include "base/timestamp.hpp"

namespace sluice::queue::table {
namespace {

/// Names and values of an expression behind placeholders, because some names are reserved words. `Request` is any that
/// has expressions.
template <typename Request>
class Placeholders {
 public:
  explicit Placeholders(Request& request) : request_(request) {}

  std::string name(std::string_view attribute) {
    std::string placeholder = "#" + std::string(attribute);
    request_.names.emplace(placeholder, attribute);
    return placeholder;
  }
  std::string value(dynamo::AttributeValue value) {
    std::string placeholder = ":" + std::to_string(request_.values.size());
    request_.values.emplace(placeholder, std::move(value));
    return placeholder;
  }
  std::string equals(std::string_view attribute, dynamo::AttributeValue wanted) {
    const std::string left = name(attribute);
    return left + " = " + value(std::move(wanted));
  }

 private:
  Request& request_;
};

// Says the same as the WHERE of the statement.
template <typename Request>
void add_condition(Request& request, const RecordWrite& write) {
  const Expected& expected = write.expected;
  Placeholders spelt(request);
  std::string& condition = request.condition;
  if (expected.version.stored) {
    condition = spelt.equals(write.names->version, *expected.version.stored);
  } else {
    condition = "attribute_exists(" + spelt.name(write.names->hash) + ") AND attribute_not_exists(" +
                spelt.name(write.names->version) + ")";
  }
  if (expected.half) {
    condition += " AND " + spelt.equals(write.names->half, std::string(to_string(*expected.half)));
  }
  if (expected.sent_at) {
    condition += " AND " + spelt.equals(write.names->sent_at, *expected.sent_at);
  }
  if (expected.visible_at) {
    const std::string hidden = spelt.name(write.names->hidden_until);
    condition += " AND " + hidden + " < " + spelt.value(format_timestamp(*expected.visible_at));
  }
}

template <typename Request>
Request request_about(const RecordWrite& write) {
  Request request;
  request.table = write.table;
  request.key = write.key();
  if (!write.whatever_it_is) {
    add_condition(request, write);
  }
  return request;
}

dynamo::PutItemRequest put_of(const RecordWrite& write) {
  dynamo::PutItemRequest request;
  request.table = write.table;
  request.item = write.item;
  request.condition = "attribute_not_exists(" + Placeholders(request).name(write.names->hash) + ")";
  return request;
}

dynamo::UpdateItemRequest update_of(const RecordWrite& write) {
  auto request = request_about<dynamo::UpdateItemRequest>(write);
  Placeholders spelt(request);
  for (const auto& [name, value] : write.change.set) {
    request.update += (request.update.empty() ? "SET " : ", ") + spelt.equals(name, value);
  }
  if (!write.change.removed.empty()) {
    request.update += " REMOVE " + spelt.name(write.change.removed);
  }
  request.return_values = write.returning ? "ALL_NEW" : "NONE";
  return request;
}

dynamo::DeleteItemRequest delete_of(const RecordWrite& write) {
  auto request = request_about<dynamo::DeleteItemRequest>(write);
  request.return_values = write.returning ? "ALL_OLD" : "NONE";
  return request;
}

template <typename Request>
dynamo::TransactAction keyed(dynamo::TransactAction::Kind kind, Request request) {
  return {.kind = kind,
          .table = std::move(request.table),
          .item_or_key = std::move(request.key),
          .condition = std::move(request.condition),
          .names = std::move(request.names),
          .values = std::move(request.values)};
}

dynamo::TransactAction action_from(dynamo::PutItemRequest request) {
  return {.kind = dynamo::TransactAction::Kind::put,
          .table = std::move(request.table),
          .item_or_key = std::move(request.item),
          .condition = std::move(request.condition),
          .names = std::move(request.names),
          .values = std::move(request.values)};
}

dynamo::TransactAction action_from(dynamo::UpdateItemRequest request) {
  std::string update = std::move(request.update);
  dynamo::TransactAction action = keyed(dynamo::TransactAction::Kind::update, std::move(request));
  action.update = std::move(update);
  return action;
}

dynamo::TransactAction action_from(dynamo::DeleteItemRequest request) {
  return keyed(dynamo::TransactAction::Kind::remove, std::move(request));
}

}  // namespace

dynamo::ItemWrite request_of(const RecordWrite& write) {
  switch (write.kind) {
    case RecordWrite::Kind::insert:
      return put_of(write);
    case RecordWrite::Kind::remove:
      return delete_of(write);
    case RecordWrite::Kind::update:
      break;
  }
  return update_of(write);
}

dynamo::TransactAction action_of(dynamo::ItemWrite request) {
  return std::visit([](auto&& one) { return action_from(std::forward<decltype(one)>(one)); }, std::move(request));
}

dynamo::TransactAction action_of(const RecordWrite& write) { return action_of(request_of(write)); }

}  // namespace sluice::queue::table
