#include "host/stores/table/metadata_items.hpp"

#include "dynamo/item_reading.hpp"

namespace sluice::queue::table {

namespace {

using dynamo::text_of;

constexpr std::string_view kClaimed = "claimed";
constexpr std::string_view kDone = "done";

}  // namespace

std::vector<std::string> ItemScope::mark_ids(const NewMessage& message) const {
  std::vector<std::string> ids;
  if (!message.dedup_id.empty()) {
    ids.push_back(dedup_id(message.dedup_id));
  }
  if (!message.unique_key.empty()) {
    ids.push_back(unique_id(message.unique_key));
  }
  return ids;
}

Mark Mark::of(const dynamo::Item* item) {
  if (item == nullptr) {
    return {};
  }
  return {.first = text_of(*item, attribute::kMarkFirst),
          .token = text_of(*item, attribute::kMarkToken),
          .until = text_of(*item, attribute::kMarkUntil),
          .mode = text_of(*item, attribute::kMarkMode) == kClaimed ? UniqueUntil::claimed : UniqueUntil::done};
}

void Mark::put_into(dynamo::Item& item) const {
  item.emplace(attribute::kMarkFirst, first);
  item.emplace(attribute::kMarkToken, token);
  if (!until.empty()) {
    item.emplace(attribute::kMarkUntil, until);
  } else {
    item.emplace(attribute::kMarkMode, std::string(mode == UniqueUntil::claimed ? kClaimed : kDone));
  }
}

std::string Placeholders::name(std::string_view attribute) {
  std::string placeholder = "#" + std::string(attribute);
  request_.names.emplace(placeholder, attribute);
  return placeholder;
}

std::string Placeholders::compared(std::string_view attribute, std::string_view comparison,
                                   dynamo::AttributeValue value) {
  std::string placeholder = ":" + std::to_string(request_.values.size());
  std::string text = name(attribute) + std::string(comparison) + placeholder;
  request_.values.emplace(std::move(placeholder), std::move(value));
  return text;
}

dynamo::TransactAction put_message(const std::string& table, const dynamo::Item& item, const LayoutNames& names) {
  dynamo::TransactAction action{.table = table, .item = item};
  action.condition = Placeholders(action).absent(names.hash);
  return action;
}

}  // namespace sluice::queue::table
