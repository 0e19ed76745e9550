#include "host/stores/table/failure_codec.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/limits.hpp"

namespace sluice::queue::table {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::text_of;
using dynamo::whole_number;

Duration milliseconds_of(const dynamo::Map& map, std::string_view name) {
  constexpr std::int64_t kMost = std::numeric_limits<Duration::rep>::max() / 1'000'000;
  const auto number = whole_number(map, name).value_or(0);
  return std::chrono::milliseconds(std::clamp<std::int64_t>(number, 0, kMost));
}

FailedAttempt attempt_of(const dynamo::Map& map) {
  return {.error = text_of(map, "error"),
          .host = text_of(map, "host"),
          .attempt = count_of(attribute_of(map, "attempt")),
          .wait = milliseconds_of(map, "wait_ms"),
          .took = milliseconds_of(map, "took_ms"),
          .failed_at = time_of(map, "failed_at").value_or(WallTime{})};
}

void add_milliseconds(dynamo::Map& map, Duration wait, Duration took) {
  const auto count = [](Duration span) { return std::chrono::duration_cast<std::chrono::milliseconds>(span).count(); };
  if (count(wait) > 0) {
    map.emplace("wait_ms", AttributeValue::number(count(wait)));
  }
  if (count(took) > 0) {
    map.emplace("took_ms", AttributeValue::number(count(took)));
  }
}

AttributeValue encode_attempt(const FailedAttempt& attempt) {
  dynamo::Map map;
  map.emplace("error", clean_utf8(attempt.error, kMaxEarlierFailureBytes, "?"));
  map.emplace("host", clean_utf8(attempt.host, 255, "?"));
  map.emplace("attempt", AttributeValue::number(attempt.attempt));
  map.emplace("failed_at", format_timestamp(attempt.failed_at));
  add_milliseconds(map, attempt.wait, attempt.took);
  return map;
}

}  // namespace

AttributeValue encode_failure(const Failure& failure) {
  dynamo::Map map;
  map.emplace("error", clean_utf8(failure.error, kMaxFailureBytes, "?"));
  map.emplace("handler", clean_utf8(failure.handler, 255, "?"));
  map.emplace("host", clean_utf8(failure.host, 255, "?"));
  map.emplace("attempts", AttributeValue::number(failure.attempts));
  map.emplace("failed_at", format_timestamp(failure.failed_at));
  add_milliseconds(map, failure.wait, failure.took);
  if (!failure.earlier.empty()) {
    dynamo::List earlier;
    for (const FailedAttempt& attempt : failure.earlier) {
      earlier.push_back(encode_attempt(attempt));
    }
    map.emplace("earlier", std::move(earlier));
  }
  return map;
}

Failure decode_failure(const AttributeValue* value) {
  const auto* map = value == nullptr ? nullptr : value->get<dynamo::Map>();
  if (map == nullptr) {
    return {};
  }
  Failure failure;
  failure.error = text_of(*map, "error");
  failure.handler = text_of(*map, "handler");
  failure.host = text_of(*map, "host");
  failure.attempts = count_of(attribute_of(*map, "attempts"));
  failure.failed_at = time_of(*map, "failed_at").value_or(WallTime{});
  failure.wait = milliseconds_of(*map, "wait_ms");
  failure.took = milliseconds_of(*map, "took_ms");
  if (const auto* earlier = dynamo::find<dynamo::List>(*map, "earlier")) {
    for (const AttributeValue& one : *earlier) {
      const auto* attempt = one.get<dynamo::Map>();
      if (attempt != nullptr && failure.earlier.size() < kEarlierFailures) {
        failure.earlier.push_back(attempt_of(*attempt));
      }
    }
  }
  return failure;
}

}  // namespace sluice::queue::table
