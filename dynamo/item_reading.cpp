#include "dynamo/item_reading.hpp"

#include <charconv>
#include <system_error>

namespace sluice::dynamo {

const AttributeValue* attribute_of(const Item& item, std::string_view name) {
  const auto found = item.find(name);
  return found == item.end() ? nullptr : &found->second;
}

std::string text_of(const Item& item, std::string_view name) {
  const auto* text = find<std::string>(item, name);
  return text == nullptr ? std::string() : *text;
}

std::optional<std::int64_t> whole_number(const AttributeValue* value) {
  const auto* number = value == nullptr ? nullptr : value->get<Number>();
  if (number == nullptr) {
    return std::nullopt;
  }
  std::int64_t result = 0;
  const char* const end = number->text.data() + number->text.size();
  const auto [stop, failure] = std::from_chars(number->text.data(), end, result);
  return failure != std::errc() || stop != end ? std::nullopt : std::optional(result);
}

std::optional<std::int64_t> whole_number(const Item& item, std::string_view name) {
  return whole_number(attribute_of(item, name));
}

}  // namespace sluice::dynamo
