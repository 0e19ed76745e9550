#include "host/stores/table/item_values.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::whole_number;

struct ValueBytes {
  std::size_t operator()(const dynamo::Null&) const { return 1; }
  std::size_t operator()(bool) const { return 1; }
  std::size_t operator()(const std::string& text) const { return text.size(); }
  std::size_t operator()(const dynamo::Number& number) const { return number.text.size() / 2 + 2; }
  std::size_t operator()(const dynamo::Binary& binary) const { return binary.bytes.size(); }
  std::size_t operator()(const dynamo::List& list) const {
    std::size_t total = 3;
    for (const auto& value : list) {
      total += 1 + value_bytes(value);
    }
    return total;
  }
  std::size_t operator()(const dynamo::Map& map) const {
    std::size_t total = 3;
    for (const auto& [name, value] : map) {
      total += 1 + name.size() + value_bytes(value);
    }
    return total;
  }
  std::size_t operator()(const dynamo::StringSet& set) const { return set_bytes(set.values); }
  std::size_t operator()(const dynamo::NumberSet& set) const { return set_bytes(set.values); }
  std::size_t operator()(const dynamo::BinarySet& set) const { return set_bytes(set.values); }

  static std::size_t set_bytes(const std::vector<std::string>& values) {
    std::size_t total = 0;
    for (const auto& value : values) {
      total += value.size();
    }
    return total;
  }
};

}  // namespace

// As Go's reader: garbage, NULL and "" are all the absent time. Hidden until the year 9999 is hidden.
std::optional<WallTime> time_of(const Item& item, std::string_view name) {
  const auto* text = dynamo::find<std::string>(item, name);
  return text == nullptr ? std::nullopt : parse_timestamp_or_end(*text);
}

std::uint32_t count_of(const AttributeValue* value) {
  const auto number = whole_number(value).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max() - 1));
}

std::size_t value_bytes(const AttributeValue& value) { return std::visit(ValueBytes{}, value.variant()); }

std::size_t item_bytes(const Item& item) {
  std::size_t total = 0;
  for (const auto& [name, value] : item) {
    total += name.size() + value_bytes(value);
  }
  return total;
}

}  // namespace sluice::queue::table
