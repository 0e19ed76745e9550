#include "host/stores/dynamomq/stored_record.hpp"

#include <array>
#include <tuple>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/failure_codec.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;

constexpr std::array kTimes{attribute::kCreatedAt, attribute::kUpdatedAt, attribute::kSentAt, attribute::kReceivedAt,
                            attribute::kInvisibleUntilAt};

std::string stored_time(const std::optional<WallTime>& time) { return time ? format_timestamp(*time) : std::string(); }

NewMessage content_of(const StoredMessage& record) {
  return {.id = {},
          .body = record.message.body,
          .content_type = record.message.content_type,
          .attributes = record.message.attributes,
          .group = record.message.group,
          .delay = {}};
}

// All that the fields say, written out anew.
Result<Item> written_anew(const StoredMessage& record) {
  auto content = encode_content(content_of(record));
  if (!content) {
    return content;
  }
  Item& item = *content;
  item.emplace(attribute::kId, record.message.id);
  item.emplace(attribute::kReceiveCount, AttributeValue::number(record.message.attempt));
  item.emplace(attribute::kQueueType, std::string(to_string(record.half)));
  item.emplace(attribute::kVersion, AttributeValue::number(record.version));
  item.emplace(attribute::kCreatedAt, format_timestamp(record.created_at));
  item.emplace(attribute::kUpdatedAt, format_timestamp(record.updated_at));
  item.emplace(attribute::kSentAt, format_timestamp(record.message.sent_at));
  item.emplace(attribute::kReceivedAt, stored_time(record.received_at));
  item.emplace(attribute::kInvisibleUntilAt, stored_time(record.invisible_until));
  if (!record.failure.empty()) {
    item.emplace(attribute::kFailure, table::encode_failure(record.failure));
  }
  if (record.suspect) {
    item.emplace(attribute::kSuspect, AttributeValue::number(1));
  }
  return content;
}

void take(Item& into, const Item& from, std::string_view name) {
  const auto found = from.find(name);
  if (found != from.end()) {
    into.insert_or_assign(std::string(name), found->second);
  } else if (const auto there = into.find(name); there != into.end()) {
    into.erase(there);
  }
}

bool same_failure(const Failure& a, const Failure& b) {
  return std::tie(a.error, a.handler, a.host, a.attempts, a.failed_at, a.wait, a.took, a.earlier) ==
         std::tie(b.error, b.handler, b.host, b.attempts, b.failed_at, b.wait, b.took, b.earlier);
}

// Puts into `native` what the record says otherwise than `native` does. The content goes as a whole, because a body and
// its type are read together.
void overrule(Item& native, const StoredMessage& record, const Item& anew) {
  const StoredMessage said = decode_record(native);
  const auto unless = [&](bool same, std::string_view name) {
    if (!same) {
      take(native, anew, name);
    }
  };
  const bool same_body =
      said.message.body == record.message.body && said.message.content_type == record.message.content_type;
  unless(same_body, attribute::kData);
  unless(same_body, attribute::kContentType);
  unless(said.message.attributes == record.message.attributes, attribute::kAttributes);
  unless(said.message.group == record.message.group, attribute::kGroup);
  unless(said.message.attempt == record.message.attempt, attribute::kReceiveCount);
  unless(said.half == record.half, attribute::kQueueType);
  unless(said.version == record.version, attribute::kVersion);
  unless(said.created_at == record.created_at, attribute::kCreatedAt);
  unless(said.updated_at == record.updated_at, attribute::kUpdatedAt);
  unless(said.message.sent_at == record.message.sent_at, attribute::kSentAt);
  unless(said.received_at == record.received_at, attribute::kReceivedAt);
  unless(said.invisible_until == record.invisible_until, attribute::kInvisibleUntilAt);
  unless(same_failure(said.failure, record.failure), attribute::kFailure);
  unless(said.suspect == record.suspect, attribute::kSuspect);
  take(native, anew, attribute::kId);
}

}  // namespace

Result<Item> encode_stored(const StoredMessage& record) {
  if (!is_storable_id(record.message.id)) {
    return Error(ErrorCode::invalid, unstorable_id());
  }
  auto anew = written_anew(record);
  if (!anew || record.native.empty()) {
    return anew;
  }
  auto native = dynamo::decode_item(record.native);
  if (!native) {
    return Error(ErrorCode::invalid,
                 "the native form of message '" + record.message.id + "' is no item: " + native.error().message);
  }
  overrule(*native, record, *anew);
  return std::move(*native);
}

bool says_all(const StoredMessage& record, const Item& item) {
  const auto anew = written_anew(record);
  if (!anew) {
    return false;
  }
  Item spelt = item;
  if (const auto nonce = spelt.find(attribute::kNonce); nonce != spelt.end()) {
    spelt.erase(nonce);
  }
  if (const auto mark = spelt.find(attribute::kSuspect); mark != spelt.end() && !record.suspect) {
    spelt.erase(mark);  // a mark that was taken away may have left its name behind
  }
  for (const std::string_view name : kTimes) {
    const auto found = spelt.find(name);
    const auto* text = found == spelt.end() ? nullptr : found->second.get<std::string>();
    if (const auto time = text == nullptr ? std::nullopt : parse_timestamp(*text)) {
      found->second = format_timestamp(*time);
    }
  }
  return spelt == *anew;
}

}  // namespace sluice::queue::dynamomq
