#include "host/stores/dynamomq/record.hpp"

#include <algorithm>
#include <limits>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/body.hpp"
#include "host/stores/dynamomq/key_items.hpp"
#include "host/stores/dynamomq/mark_items.hpp"
#include "host/stores/dynamomq/nonce.hpp"
#include "host/stores/dynamomq/notice_items.hpp"
#include "host/stores/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::text_of;
using dynamo::whole_number;

// As Go's reader: garbage, NULL and "" are all the absent time. Hidden until the year 9999 is hidden.
std::optional<WallTime> time_of(const Item& item, std::string_view name) {
  const auto* text = dynamo::find<std::string>(item, name);
  return text == nullptr ? std::nullopt : parse_timestamp_or_end(*text);
}

std::uint32_t count_of(const AttributeValue* value) {
  const auto number = whole_number(value).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max() - 1));
}

Attributes attributes_of(const Item& item) {
  Attributes attributes;
  if (const auto* map = dynamo::find<dynamo::Map>(item, attribute::kAttributes)) {
    for (const auto& [name, value] : *map) {
      if (const auto* text = value.get<std::string>()) {
        attributes.emplace(name, *text);
      }
    }
  }
  return attributes;
}

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

Failure failure_of(const Item& item) {
  const auto* map = dynamo::find<dynamo::Map>(item, attribute::kFailure);
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

// From the lowest bit on: the count, whether it is marked, the fingerprint.
constexpr unsigned kCountBits = 31;
constexpr std::uint64_t kMarkedBit = std::uint64_t{1} << kCountBits;
constexpr unsigned kFingerprintShift = kCountBits + 1;

// 31 bits, so that a locator is not negative, and never zero.
std::uint64_t fingerprint_of(std::string_view sort_key) { return (stable_hash(sort_key) & 0x7fffffffU) | 1U; }

Error invalid(std::string message) { return {ErrorCode::invalid, std::move(message)}; }

}  // namespace

VersionMark VersionMark::of(const Item& item) {
  const AttributeValue* stored = attribute_of(item, attribute::kVersion);
  if (stored == nullptr) {
    return {};
  }
  return {*stored, whole_number(stored).value_or(0)};
}

VersionMark VersionMark::number_of(std::int64_t version) { return {AttributeValue::number(version), version}; }

std::int64_t VersionMark::next() const { return number == std::numeric_limits<std::int64_t>::max() ? 1 : number + 1; }

Candidate Candidate::of(const Item& item) {
  Candidate candidate;
  candidate.id = text_of(item, attribute::kId);
  candidate.sort_key = text_of(item, attribute::kSentAt);
  candidate.sent_at = parse_timestamp_or_end(candidate.sort_key).value_or(WallTime{});
  candidate.version = VersionMark::of(item);
  candidate.receive_count = count_of(attribute_of(item, attribute::kReceiveCount));
  candidate.invisible_until = time_of(item, attribute::kInvisibleUntilAt);
  candidate.received = time_of(item, attribute::kReceivedAt).has_value();
  candidate.marked = is_marked(item);
  candidate.nonce = nonce_of(item);
  return candidate;
}

std::int64_t make_locator(std::uint32_t receive_count, bool marked, std::string_view sort_key) {
  const std::uint64_t count = std::min<std::uint64_t>(receive_count, kMarkedBit - 1);
  return static_cast<std::int64_t>(fingerprint_of(sort_key) << kFingerprintShift | (marked ? kMarkedBit : 0) | count);
}

std::uint32_t receive_count_of(const Receipt& receipt) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(receipt.locator) & (kMarkedBit - 1));
}

bool is_marked(const Receipt& receipt) { return (static_cast<std::uint64_t>(receipt.locator) & kMarkedBit) != 0; }

bool has_fingerprint(const Receipt& receipt) {
  return static_cast<std::uint64_t>(receipt.locator) >> kFingerprintShift != 0;
}

bool may_be_of(const Receipt& receipt, std::string_view sort_key) {
  return !has_fingerprint(receipt) ||
         static_cast<std::uint64_t>(receipt.locator) >> kFingerprintShift == fingerprint_of(sort_key);
}

StoredMessage decode_standing(const Item& item) {
  StoredMessage record;
  record.message.id = text_of(item, attribute::kId);
  record.message.attempt = count_of(attribute_of(item, attribute::kReceiveCount));
  record.message.sent_at = time_of(item, attribute::kSentAt).value_or(WallTime{});
  record.half = text_of(item, attribute::kQueueType) == to_string(Half::dlq) ? Half::dlq : Half::standard;
  record.version = VersionMark::of(item).number;
  record.created_at = time_of(item, attribute::kCreatedAt).value_or(WallTime{});
  record.updated_at = time_of(item, attribute::kUpdatedAt).value_or(WallTime{});
  record.received_at = time_of(item, attribute::kReceivedAt);
  record.invisible_until = time_of(item, attribute::kInvisibleUntilAt);
  record.failure = failure_of(item);
  record.suspect = is_marked(item);
  return record;
}

void note_oddities(StoredMessage& record, const Item& item) {
  const std::string half = text_of(item, attribute::kQueueType);
  if (half != to_string(Half::standard) && half != to_string(Half::dlq)) {
    record.odd.emplace(attribute::kQueueType, half);
  }
  for (const std::string_view name : {attribute::kCreatedAt, attribute::kUpdatedAt, attribute::kSentAt}) {
    if (!time_of(item, name)) {
      record.odd.emplace(name, text_of(item, name));
    }
  }
  // These may be absent, which is spelt as the empty text.
  for (const std::string_view name : {attribute::kReceivedAt, attribute::kInvisibleUntilAt}) {
    if (std::string text = text_of(item, name); !text.empty() && !time_of(item, name)) {
      record.odd.emplace(name, std::move(text));
    }
  }
}

StoredMessage decode_record(const Item& item) {
  StoredMessage record = decode_standing(item);
  note_oddities(record, item);
  Body body = read_body(attribute_of(item, attribute::kData), text_of(item, attribute::kContentType));
  record.message.body = std::move(body.bytes);
  record.message.content_type = std::move(body.content_type);
  record.message.attributes = attributes_of(item);
  record.message.group = text_of(item, attribute::kGroup);
  return record;
}

Result<Item> encode_content(const NewMessage& message) {
  auto body = store_body(message.body, message.content_type);
  if (!body) {
    return body.error();
  }
  Item item;
  item.emplace(attribute::kData, std::move(body->data));
  if (!is_utf8(body->content_type) || !is_utf8(message.group)) {
    return invalid("content type and group must be UTF-8");
  }
  if (!body->content_type.empty()) {
    item.emplace(attribute::kContentType, std::move(body->content_type));
  }
  if (!message.group.empty()) {
    item.emplace(attribute::kGroup, message.group);
  }
  dynamo::Map attributes;
  for (const auto& [name, value] : message.attributes) {
    if (!is_utf8(name) || !is_utf8(value)) {
      return invalid("attribute '" + clean_utf8(name, 80, "?") + "' is not UTF-8; encode it, for example as base64");
    }
    attributes.emplace(name, value);
  }
  if (!attributes.empty()) {
    item.emplace(attribute::kAttributes, std::move(attributes));
  }
  return item;
}

Result<Item> encode_record(const NewMessage& message, const NewRecord& record) {
  if (!is_storable_id(record.id)) {
    return invalid(unstorable_id());
  }
  auto content = encode_content(message);
  if (!content) {
    return content;
  }
  Item& item = *content;
  const std::string now = format_timestamp(record.now);
  const bool delayed = record.delay > Duration::zero();
  const std::string due = delayed ? format_timestamp(later(record.now, record.delay)) : now;
  item.emplace(attribute::kId, record.id);
  item.emplace(attribute::kReceiveCount, AttributeValue::number(0));
  item.emplace(attribute::kQueueType, std::string(to_string(Half::standard)));
  item.emplace(attribute::kVersion, AttributeValue::number(1));
  item.emplace(attribute::kCreatedAt, now);
  item.emplace(attribute::kUpdatedAt, now);
  item.emplace(attribute::kSentAt, due);
  item.emplace(attribute::kReceivedAt, "");
  // Go consumers look at this one only, so that it, and not `sent_at` alone, makes them wait.
  item.emplace(attribute::kInvisibleUntilAt, delayed ? due : std::string());
  item.emplace(attribute::kNonce, record.nonce);
  const std::size_t bytes = item_bytes(item) + kClaimBytes;
  if (bytes > kMaxItemBytes) {
    return invalid("the message takes " + std::to_string(bytes) + " bytes as an item and DynamoDB holds " +
                   std::to_string(kMaxItemBytes) + "; keep the body elsewhere and send where it is");
  }
  return content;
}

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

std::string unstorable_id() {
  return "a message id must be 1 to " + std::to_string(kMaxIdBytes) + " bytes of UTF-8, and not begin with '" +
         std::string(kNoticePrefix) + "', '" + std::string(kKeyPrefix) + "', '" + std::string(kDedupPrefix) + "' or '" +
         std::string(kUniquePrefix) + "'";
}

bool is_storable_id(std::string_view id) {
  return !id.empty() && id.size() <= kMaxIdBytes && !is_notice_id(id) && !is_key_id(id) && !is_mark_id(id) &&
         is_utf8(id);
}

std::size_t value_bytes(const AttributeValue& value) { return std::visit(ValueBytes{}, value.variant()); }

std::size_t item_bytes(const Item& item) {
  std::size_t total = 0;
  for (const auto& [name, value] : item) {
    total += name.size() + value_bytes(value);
  }
  return total;
}

std::string nonce_of(const Item& item) { return text_of(item, attribute::kNonce); }

bool is_marked(const Item& item) { return whole_number(item, attribute::kSuspect).value_or(0) > 0; }

}  // namespace sluice::queue::dynamomq
