#include "host/stores/dynamomq/content_edit.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/base64.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using Elements = std::vector<std::string>;

/// The elements of a set of any kind; null for what is none.
Elements* elements(AttributeValue& value) {
  if (auto* strings = value.get<dynamo::StringSet>()) {
    return &strings->values;
  }
  if (auto* numbers = value.get<dynamo::NumberSet>()) {
    return &numbers->values;
  }
  auto* binaries = value.get<dynamo::BinarySet>();
  return binaries == nullptr ? nullptr : &binaries->values;
}

/// The value as an element of such a set.
std::optional<std::string> element_of(const AttributeValue& set, const AttributeValue& value) {
  if (set.is<dynamo::NumberSet>()) {
    const auto* number = value.get<dynamo::Number>();
    return number == nullptr ? std::nullopt : std::optional(number->text);
  }
  const auto* text = value.get<std::string>();
  if (text == nullptr) {
    return std::nullopt;
  }
  return set.is<dynamo::BinarySet>() ? decode_base64(*text) : std::optional(*text);
}

bool holds_one_twice(Elements values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

Error beyond(std::size_t size, std::size_t index) {
  return {ErrorCode::invalid, "has " + std::to_string(size) + " elements, and no [" + std::to_string(index) + "]"};
}

const char* wanted_element(const AttributeValue& set) {
  if (set.is<dynamo::StringSet>()) {
    return "a set of strings holds nothing but text";
  }
  return set.is<dynamo::NumberSet>() ? "a set of numbers holds nothing but numbers"
                                     : "a set of binaries holds nothing but Base64 text";
}

bool is_set(const AttributeValue& value) {
  return value.is<dynamo::StringSet>() || value.is<dynamo::NumberSet>() || value.is<dynamo::BinarySet>();
}

/// `value`, as `before` is: a set where that is one and this is an array of fitting elements, binary where that is
/// binary and this is Base64. Otherwise `value` as it is.
AttributeValue of_the_type_of(const AttributeValue& before, AttributeValue value) {
  if (before.is<dynamo::Binary>() && value.is<std::string>()) {
    auto bytes = decode_base64(*value.get<std::string>());
    return bytes ? AttributeValue(dynamo::Binary{std::move(*bytes)}) : std::move(value);
  }
  const auto* list = value.get<dynamo::List>();
  if (!is_set(before) || list == nullptr || list->empty()) {
    return value;
  }
  AttributeValue set = before;
  Elements& values = *elements(set);
  values.clear();
  for (const AttributeValue& item : *list) {
    auto element = element_of(before, item);
    if (!element) {
      return value;
    }
    values.push_back(std::move(*element));
  }
  return holds_one_twice(values) ? std::move(value) : std::move(set);
}

/// Replaces the element of a set, or appends it where the index is the set's size.
Result<void> set_element(AttributeValue& set, std::size_t index, const AttributeValue& element) {
  Elements& values = *elements(set);
  auto wanted = element_of(set, element);
  if (!wanted) {
    return Error(ErrorCode::invalid, wanted_element(set));
  }
  if (index > values.size()) {
    return beyond(values.size(), index);
  }
  if (index == values.size()) {
    values.push_back(std::move(*wanted));
  } else {
    values[index] = std::move(*wanted);
  }
  return {};
}

Result<void> remove_element(AttributeValue& set, std::size_t index) {
  Elements& values = *elements(set);
  if (index >= values.size()) {
    return beyond(values.size(), index);
  }
  if (values.size() == 1) {
    return Error(ErrorCode::invalid, "no set is empty; take the whole set away instead");
  }
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(index));
  return {};
}

std::string spelt(std::span<const PathStep> path) {
  std::string text;
  for (const PathStep& step : path) {
    if (const auto* index = std::get_if<std::size_t>(&step)) {
      text += '[' + std::to_string(*index) + ']';
    } else {
      text += (text.empty() ? "" : ".") + std::get<std::string>(step);
    }
  }
  return text;
}

Error invalid(std::span<const PathStep> path, const std::string& why) {
  return {ErrorCode::invalid, spelt(path) + ": " + why};
}

const char* kind_of(const AttributeValue& value) {
  constexpr const char* kKinds[] = {"null",
                                    "a boolean",
                                    "text",
                                    "a number",
                                    "binary",
                                    "an array",
                                    "an object",
                                    "a set of strings",
                                    "a set of numbers",
                                    "a set of binaries"};
  return kKinds[value.variant().index()];
}

void put_text(Item& item, std::string_view name, std::string text) {
  if (text.empty()) {
    item.erase(std::string(name));
  } else {
    item.insert_or_assign(std::string(name), std::move(text));
  }
}

Result<AttributeValue> value_of(const ContentEdit& edit) {
  auto value = dynamo::from_plain_json(*edit.json);
  if (!value) {
    return invalid(edit.path, "the value is not JSON that DynamoDB can hold: " + value.error().message);
  }
  return std::move(*value);
}

Result<std::string> text_of(const ContentEdit& edit) {
  if (!edit.json) {
    return std::string();
  }
  SLUICE_TRY(value, value_of(edit));
  auto* text = value->get<std::string>();
  if (text == nullptr) {
    return invalid(edit.path, "must be text, and this is " + std::string(kind_of(*value)) + "; put it in quotes");
  }
  return std::move(*text);
}

// The value that the path leads to, one step at a time.
Result<AttributeValue*> step_into(AttributeValue& value, std::span<const PathStep> so_far, const PathStep& step) {
  if (const auto* index = std::get_if<std::size_t>(&step)) {
    auto* list = value.get<dynamo::List>();
    if (list == nullptr) {
      return invalid(so_far,
                     "is " + std::string(kind_of(value)) + ", and [" + std::to_string(*index) + "] asks for an array");
    }
    if (*index >= list->size()) {
      return invalid(so_far, beyond(list->size(), *index).message());
    }
    return &(*list)[*index];
  }
  const auto& name = std::get<std::string>(step);
  auto* map = value.get<dynamo::Map>();
  if (map == nullptr) {
    return invalid(so_far, "is " + std::string(kind_of(value)) + " and has no '" + name + "'");
  }
  const auto found = map->find(name);
  if (found == map->end()) {
    return invalid(so_far, "has no '" + name + "'");
  }
  return &found->second;
}

Result<void> set_in(AttributeValue& parent, const ContentEdit& edit) {
  const auto path = std::span(edit.path);
  SLUICE_TRY(value, value_of(edit));
  auto* map = parent.get<dynamo::Map>();
  auto* list = parent.get<dynamo::List>();
  const auto* index = std::get_if<std::size_t>(&path.back());
  if (map != nullptr && index == nullptr) {
    AttributeValue& place = (*map)[std::get<std::string>(path.back())];
    place = of_the_type_of(place, std::move(*value));
    return {};
  }
  if (is_set(parent) && index != nullptr) {
    const auto put = set_element(parent, *index, *value);
    return put ? put : invalid(path.first(path.size() - 1), put.error().message());
  }
  if (list != nullptr && index != nullptr && *index == list->size()) {
    list->push_back(std::move(*value));
    return {};
  }
  SLUICE_TRY(place, step_into(parent, path.first(path.size() - 1), path.back()));
  **place = of_the_type_of(**place, std::move(*value));
  return {};
}

Result<void> remove_from(AttributeValue& parent, const ContentEdit& edit) {
  const auto path = std::span(edit.path);
  if (const auto* index = std::get_if<std::size_t>(&path.back()); index != nullptr && is_set(parent)) {
    const auto removed = remove_element(parent, *index);
    return removed ? removed : invalid(path.first(path.size() - 1), removed.error().message());
  }
  SLUICE_PASS_ON(step_into(parent, path.first(path.size() - 1), path.back()));
  if (const auto* index = std::get_if<std::size_t>(&path.back())) {
    auto* list = parent.get<dynamo::List>();
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(*index));
  } else {
    parent.get<dynamo::Map>()->erase(std::get<std::string>(path.back()));
  }
  return {};
}

Result<void> replace_body(Item& item, const ContentEdit& edit) {
  if (!edit.json) {
    return invalid(edit.path, "a message always has a body; set it to null instead");
  }
  const std::string before =
      read_body(attribute_of(item, attribute::kData), dynamo::text_of(item, attribute::kContentType)).content_type;
  SLUICE_TRY(value, value_of(edit));
  const bool text = before != kJson && before != kOctetStream && value->is<std::string>();
  if (!text || before == kTextPlain) {
    const bool json_text = !text && value->is<std::string>();
    put_text(item, attribute::kContentType, json_text ? std::string(kJson) : std::string());
  }
  item.insert_or_assign(std::string(attribute::kData), std::move(*value));
  return {};
}

Result<void> edit_body(Item& item, const ContentEdit& edit) {
  if (edit.path.size() == 1) {
    return replace_body(item, edit);
  }
  const auto path = std::span(edit.path);
  const auto data = item.find(attribute::kData);
  if (data == item.end() || (!data->second.is<dynamo::Map>() && !data->second.is<dynamo::List>())) {
    return invalid(path.first(1), "the body is " + std::string(data == item.end() ? "null" : kind_of(data->second)) +
                                      ", and no path leads into that; replace it as a whole");
  }
  AttributeValue* parent = &data->second;
  for (std::size_t i = 1; i + 1 < path.size(); ++i) {
    SLUICE_TRY(next, step_into(*parent, path.first(i), path[i]));
    parent = *next;
  }
  return edit.json ? set_in(*parent, edit) : remove_from(*parent, edit);
}

Result<void> edit_content_type(Item& item, const ContentEdit& edit) {
  SLUICE_TRY(wanted, text_of(edit));
  if (wanted->empty()) {
    return invalid(edit.path, "a body always has a type; text/plain is the plainest");
  }
  const AttributeValue* data = attribute_of(item, attribute::kData);
  const Body body = read_body(data, dynamo::text_of(item, attribute::kContentType));
  if (body.content_type == *wanted) {
    return {};
  }
  if (body.content_type == kJson && data != nullptr) {
    // As JSON text sets and binary values would be arrays and strings for ever.
    const auto back = dynamo::from_plain_json(body.bytes);
    if (!back || !(*back == *data)) {
      return invalid(edit.path, "the body holds sets or binary values, which only application/json keeps");
    }
  }
  auto stored = store_body(body.bytes, *wanted);
  if (!stored) {
    return invalid(edit.path, stored.error().message());
  }
  item.insert_or_assign(std::string(attribute::kData), std::move(stored->data));
  put_text(item, attribute::kContentType, std::move(stored->content_type));
  return {};
}

Result<void> edit_group(Item& item, const ContentEdit& edit) {
  SLUICE_TRY(group, text_of(edit));
  put_text(item, attribute::kGroup, std::move(*group));
  return {};
}

Result<void> edit_attributes(Item& item, const ContentEdit& edit) {
  const auto* name = edit.path.size() == 2 ? std::get_if<std::string>(&edit.path[1]) : nullptr;
  if (name == nullptr || name->empty()) {
    return invalid(edit.path, "name one attribute, as in attributes.tenant");
  }
  SLUICE_TRY(value, text_of(edit));
  auto& stored = item.try_emplace(std::string(attribute::kAttributes), dynamo::Map{}).first->second;
  auto* map = stored.get<dynamo::Map>();
  if (map == nullptr) {
    return invalid(edit.path, "where the attributes would be, the record has " + std::string(kind_of(stored)));
  }
  if (edit.json) {
    map->insert_or_assign(*name, std::move(*value));
  } else if (map->erase(*name) == 0) {
    return invalid(edit.path, "there is no such attribute");
  }
  if (map->empty()) {
    item.erase(std::string(attribute::kAttributes));
  }
  return {};
}

Result<void> apply_edit(Item& item, const ContentEdit& edit) {
  const auto* part = edit.path.empty() ? nullptr : std::get_if<std::string>(&edit.path.front());
  if (part == nullptr) {
    return Error(ErrorCode::invalid, "a path begins with data, attributes, content_type or group");
  }
  if (*part == "data") {
    return edit_body(item, edit);
  }
  if (*part == "attributes") {
    return edit_attributes(item, edit);
  }
  const bool is_type = *part == "content_type";
  if (!is_type && *part != "group") {
    return invalid(edit.path, "a path begins with data, attributes, content_type or group");
  }
  if (edit.path.size() > 1) {
    return invalid(edit.path, *part + " is text, and no path leads into it");
  }
  return is_type ? edit_content_type(item, edit) : edit_group(item, edit);
}

}  // namespace

Result<void> apply_edits(Item& item, std::span<const ContentEdit> edits) {
  for (const ContentEdit& edit : edits) {
    if (auto applied = apply_edit(item, edit); !applied) {
      return applied;
    }
  }
  return {};
}

}  // namespace sluice::queue::dynamomq
