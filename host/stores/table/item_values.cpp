#include "host/stores/table/item_values.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/core/transitions.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::text_of;
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
  template <typename Set>
  std::size_t operator()(const Set& set) const {
    std::size_t total = 0;
    for (const auto& value : set.values) {
      total += value.size();
    }
    return total;
  }
};

Duration milliseconds_of(const dynamo::Map& map, std::string_view name) {
  constexpr std::int64_t kMost = std::numeric_limits<Duration::rep>::max() / 1'000'000;
  const auto number = whole_number(map, name).value_or(0);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(number, 0, kMost));
}

/// What is kept of each failed attempt, the last one and those before it.
template <typename Attempt>
Attempt attempt_of(const dynamo::Map& map) {
  Attempt attempt;
  attempt.error = text_of(map, "error");
  attempt.host = text_of(map, "host");
  attempt.wait = milliseconds_of(map, "wait_ms");
  attempt.took = milliseconds_of(map, "took_ms");
  attempt.failed_at = time_of(map, "failed_at").value_or(WallTime{});
  return attempt;
}

template <typename Attempt>
dynamo::Map map_of(const Attempt& attempt, std::size_t most_bytes) {
  dynamo::Map map;
  map.emplace("error", clean_utf8(attempt.error, most_bytes, "?"));
  map.emplace("host", clean_utf8(attempt.host, 255, "?"));
  map.emplace("failed_at", format_timestamp(attempt.failed_at));
  for (const auto& [name, span] : {std::pair("wait_ms", attempt.wait), std::pair("took_ms", attempt.took)}) {
    if (const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); count > 0) {
      map.emplace(name, AttributeValue::number(count));
    }
  }
  return map;
}

}  // namespace

// As Go's reader: garbage, NULL and "" are all the absent time. Hidden until the year 9999 is hidden.
std::optional<WallTime> time_of(const Item& item, std::string_view name) {
  return parse_timestamp_or_end(text_of(item, name));
}

std::string bytes_of(const Item& item, std::string_view name) {
  const auto* binary = dynamo::find<dynamo::Binary>(item, name);
  return binary == nullptr ? std::string() : binary->bytes;
}

std::uint32_t count_of(const AttributeValue* value) {
  const auto number = whole_number(value).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max() - 1));
}

void take_over(Item& into, const Item& from, std::string_view name) {
  if (const auto* value = attribute_of(from, name)) {
    into.insert_or_assign(std::string(name), *value);
  } else {
    into.erase(std::string(name));
  }
}

std::size_t value_bytes(const AttributeValue& value) { return std::visit(ValueBytes{}, value.variant()); }

std::size_t item_bytes(const Item& item) {
  std::size_t total = 0;
  for (const auto& [name, value] : item) {
    total += name.size() + value_bytes(value);
  }
  return total;
}

VersionMark VersionMark::of(const dynamo::AttributeValue* stored) {
  if (stored == nullptr) {
    return {};
  }
  return {*stored, dynamo::whole_number(stored).value_or(0)};
}

VersionMark VersionMark::at(std::int64_t version) const {
  const bool absent = version == 1 && least_next > 1;
  return {absent ? std::nullopt : std::optional(dynamo::AttributeValue::number(version)), version, least_next};
}

std::int64_t VersionMark::next() const { return std::max(core::next_version(number), least_next); }

Result<dynamo::Map> encode_attributes(const Attributes& attributes) {
  dynamo::Map map;
  for (const auto& [name, value] : attributes) {
    if (!is_utf8(name) || !is_utf8(value)) {
      return Error(ErrorCode::invalid,
                   "attribute '" + clean_utf8(name, 80, "?") + "' is not UTF-8; encode it, for example as base64");
    }
    map.emplace(name, value);
  }
  return map;
}

Attributes decode_attributes(const dynamo::AttributeValue* value) {
  Attributes attributes;
  const auto* map = value == nullptr ? nullptr : value->get<dynamo::Map>();
  if (map == nullptr) {
    return attributes;
  }
  for (const auto& [name, one] : *map) {
    if (const auto* text = one.get<std::string>()) {
      attributes.emplace(name, *text);
    }
  }
  return attributes;
}

AttributeValue encode_failure(const Failure& failure) {
  dynamo::Map map = map_of(failure, kMaxFailureBytes);
  map.emplace("handler", clean_utf8(failure.handler, 255, "?"));
  map.emplace("attempts", AttributeValue::number(failure.attempts));
  dynamo::List earlier;
  for (const FailedAttempt& attempt : failure.earlier) {
    dynamo::Map one = map_of(attempt, kMaxEarlierFailureBytes);
    one.emplace("attempt", AttributeValue::number(attempt.attempt));
    earlier.emplace_back(std::move(one));
  }
  if (!earlier.empty()) {
    map.emplace("earlier", std::move(earlier));
  }
  return map;
}

Failure decode_failure(const AttributeValue* value) {
  const auto* map = value == nullptr ? nullptr : value->get<dynamo::Map>();
  if (map == nullptr) {
    return {};
  }
  auto failure = attempt_of<Failure>(*map);
  failure.handler = text_of(*map, "handler");
  failure.attempts = count_of(attribute_of(*map, "attempts"));
  if (const auto* earlier = dynamo::find<dynamo::List>(*map, "earlier")) {
    for (const AttributeValue& one : *earlier) {
      const auto* attempt = one.get<dynamo::Map>();
      if (attempt != nullptr && failure.earlier.size() < kEarlierFailures) {
        failure.earlier.push_back(attempt_of<FailedAttempt>(*attempt));
        failure.earlier.back().attempt = count_of(attribute_of(*attempt, "attempt"));
      }
    }
  }
  return failure;
}

}  // namespace sluice::queue::table
