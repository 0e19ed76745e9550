#include "host/stores/dynamomq/content_edit.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/text/base64.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"
#include "host/queue/content_edit.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::List;
using dynamo::Map;

Error invalid(std::string message) { return {ErrorCode::invalid, std::move(message)}; }

bool is_set(const AttributeValue& value) {
  return value.is<dynamo::StringSet>() || value.is<dynamo::NumberSet>() || value.is<dynamo::BinarySet>();
}

/// What a value of JSON is as an element of such a set; nothing: it cannot be.
template <typename Set>
std::optional<std::string> element_of(const AttributeValue& value) {
  if constexpr (std::is_same_v<Set, dynamo::NumberSet>) {
    const auto* number = value.get<dynamo::Number>();
    return number == nullptr ? std::nullopt : std::optional(number->text);
  }
  const auto* text = value.get<std::string>();
  return text == nullptr                          ? std::nullopt
         : std::is_same_v<Set, dynamo::BinarySet> ? decode_base64(*text)
                                                  : std::optional(*text);
}

/// A set of these elements; nothing: one does not fit, or is there twice.
template <typename Set>
std::optional<AttributeValue> set_of(const List& elements) {
  Set set;
  for (const AttributeValue& element : elements) {
    const std::optional<std::string> text = element_of<Set>(element);
    if (!text || std::find(set.values.begin(), set.values.end(), *text) != set.values.end()) {
      return std::nullopt;
    }
    set.values.push_back(*text);
  }
  return set.values.empty() ? std::nullopt : std::optional<AttributeValue>(std::move(set));
}

/// `value`, as JSON has it, of the type of `before`, for which it stands; nothing: it cannot be.
std::optional<AttributeValue> of_the_type_of(const AttributeValue& before, const AttributeValue& value) {
  const auto* list = value.get<List>();
  if (before.is<dynamo::Binary>()) {
    auto bytes = element_of<dynamo::BinarySet>(value);
    return bytes ? std::optional<AttributeValue>(dynamo::Binary{std::move(*bytes)}) : std::nullopt;
  }
  if (list == nullptr || !is_set(before)) {
    return std::nullopt;
  }
  return before.is<dynamo::StringSet>()   ? set_of<dynamo::StringSet>(*list)
         : before.is<dynamo::NumberSet>() ? set_of<dynamo::NumberSet>(*list)
                                          : set_of<dynamo::BinarySet>(*list);
}

bool alike(const AttributeValue& a, const AttributeValue& b) {
  return dynamo::to_plain_json(a) == dynamo::to_plain_json(b);
}

/// Gives `value`, which is what an edit has made of `before` as JSON, the types of `before`.
void take_types(const AttributeValue& before, AttributeValue& value) {
  const auto* map_before = before.get<Map>();
  const auto* list_before = before.get<List>();
  auto* map = value.get<Map>();
  auto* list = value.get<List>();
  if (map_before != nullptr && map != nullptr) {
    for (auto& [name, member] : *map) {
      if (const auto* was = attribute_of(*map_before, name)) {
        take_types(*was, member);
      }
    }
  } else if (list_before != nullptr && list != nullptr) {
    // An edit takes away one element at most: those behind it have moved up.
    const auto [first_other, last] = std::mismatch(list->begin(), list->end(), list_before->begin(), list_before->end(),
                                                   [](const auto& a, const auto& b) { return alike(a, b); });
    const auto place = static_cast<std::size_t>(first_other - list->begin());
    const std::size_t gone = list_before->size() > list->size() ? list_before->size() - list->size() : 0;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (const std::size_t was = i < place ? i : i + gone; was < list_before->size()) {
        take_types((*list_before)[was], (*list)[i]);
      }
    }
  } else if (alike(before, value)) {
    value = before;
  } else if (auto typed = of_the_type_of(before, value)) {
    value = *std::move(typed);
  }
}

/// The set that the path leads into; null: it leads into none.
const AttributeValue* set_on(const AttributeValue* value, std::span<const PathStep> path) {
  for (const PathStep& step : path) {
    if (value == nullptr || is_set(*value)) {
      return value;
    }
    const auto* name = std::get_if<std::string>(&step);
    const auto* map = value->get<Map>();
    const auto* list = value->get<List>();
    const auto index = name == nullptr ? std::get<std::size_t>(step) : 0;
    value = name != nullptr && map != nullptr                            ? attribute_of(*map, *name)
            : name == nullptr && list != nullptr && index < list->size() ? &(*list)[index]
                                                                         : nullptr;
  }
  return nullptr;
}

/// Why an element cannot be what the edit makes of it, as its set would be none any more.
std::string set_rule(const AttributeValue& set) {
  return std::string("a set of ") +
         (set.is<dynamo::StringSet>()   ? "strings holds nothing but text"
          : set.is<dynamo::NumberSet>() ? "numbers holds nothing but numbers"
                                        : "binaries holds nothing but Base64 text") +
         ", each once, and is never empty; replace or take away the whole set";
}

void put_text(Item& item, std::string_view name, std::string text) {
  if (text.empty()) {
    item.erase(std::string(name));
  } else {
    item.insert_or_assign(std::string(name), std::move(text));
  }
}

Result<void> put_body(Item& item, const Message& was, const Message& is, const ContentEdit& edit) {
  const AttributeValue* before = attribute_of(item, attribute::kData);
  SLUICE_TRY(stored, store_body(is.body, is.content_type));
  if (before != nullptr && was.content_type == kJson) {
    if (is.content_type == kJson) {
      take_types(*before, stored->data);
    } else if (const auto plain = dynamo::from_plain_json(was.body); !plain || !(*plain == *before)) {
      // As text they would be arrays and strings for ever.
      return invalid("content_type: the body holds sets or binary values, which only application/json keeps");
    }
    const auto inner = std::span(edit.path).subspan(1);
    if (const auto* set = set_on(before, inner); set != nullptr && set_on(&stored->data, inner) == nullptr) {
      return invalid("data: " + set_rule(*set));
    }
  }
  item.insert_or_assign(std::string(attribute::kData), std::move(stored->data));
  put_text(item, attribute::kContentType, std::move(stored->content_type));
  return {};
}

Result<void> put_attributes(Item& item, const Attributes& was, const Attributes& is) {
  auto& stored = item.try_emplace(std::string(attribute::kAttributes), Map{}).first->second;
  auto* map = stored.get<Map>();
  if (map == nullptr) {
    return invalid("attributes: where they would be, the record has something else than a map");
  }
  for (const auto& [name, value] : was) {
    if (!is.contains(name)) {
      map->erase(name);
    }
  }
  for (const auto& [name, value] : is) {
    map->insert_or_assign(name, value);
  }
  if (map->empty()) {
    item.erase(std::string(attribute::kAttributes));
  }
  return {};
}

}  // namespace

Result<void> apply_edits(Item& item, std::span<const ContentEdit> edits) {
  for (const ContentEdit& edit : edits) {
    const Message was = decode_record(item).message;
    Message is = was;
    SLUICE_PASS_ON(queue::apply_edits(is, std::span(&edit, 1)));
    if (is.priority != Priority::normal) {
      return invalid("priority: a DynamoDB table has none; put the message into the queue of its class");
    }
    if (was.body != is.body || was.content_type != is.content_type) {
      SLUICE_PASS_ON(put_body(item, was, is, edit));
    }
    if (was.attributes != is.attributes) {
      SLUICE_PASS_ON(put_attributes(item, was.attributes, is.attributes));
    }
    if (was.group != is.group) {
      put_text(item, attribute::kGroup, std::move(is.group));
    }
  }
  return {};
}

}  // namespace sluice::queue::dynamomq
