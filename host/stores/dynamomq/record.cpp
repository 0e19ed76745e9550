#include "host/stores/dynamomq/record.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamomq {
namespace {

Result<StoredBody> store_json(std::string_view json) {
  auto value = dynamo::from_plain_json(json);
  if (!value) {
    return Error(ErrorCode::invalid, "the body is not JSON that DynamoDB can hold: " + value.error().message +
                                         "; mend it, or send it as text/plain");
  }
  // A JSON text that is one string is stored as that string, which is what a Go reader expects; the kept content type
  // tells it from plain text.
  const bool is_string = value->is<std::string>();
  return StoredBody{std::move(*value), is_string ? std::string(kJson) : std::string()};
}

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::text_of;
using dynamo::whole_number;

Error invalid(std::string message) { return {ErrorCode::invalid, std::move(message)}; }

constexpr std::array kTimes{attribute::kCreatedAt, attribute::kUpdatedAt, attribute::kSentAt, attribute::kReceivedAt,
                            attribute::kInvisibleUntilAt};

// All that the fields say, but for the content.
void put_state(Item& item, const StoredMessage& record) {
  item.emplace(attribute::kId, record.message.id);
  item.emplace(attribute::kVersion, AttributeValue::number(record.version));
  item.emplace(attribute::kUpdatedAt, format_timestamp(record.updated_at));
  auto state = attributes_of(kNames,
                             {.half = record.half,
                              .sent_at = record.message.sent_at,
                              .hidden_until = record.invisible_until,
                              .received_at = record.received_at,
                              .receives = record.message.attempt,
                              .marks = record.marks,
                              .failure = record.failure,
                              .created_at = record.created_at,
                              .checkpoint = record.message.checkpoint},
                             {.marks = false, .failure = false, .checkpoint = false});
  for (auto& [name, value] : state.set) {
    item.emplace(name, std::move(value));
  }
}

// All that the fields say, written out anew.
Result<Item> written_anew(const StoredMessage& record) {
  SLUICE_TRY(item, encode_content(table::content_of(record.message)));
  put_state(*item, record);
  return std::move(*item);
}

// Puts into `native` what the record says otherwise than `native` does. The content goes as a whole, because a body and
// its type are read together.
Result<void> overrule(Item& native, const Item& anew) {
  SLUICE_TRY(said, written_anew(decode_record(native)));
  const auto differs = [&](std::string_view name) {
    const auto* before = attribute_of(*said, name);
    const auto* after = attribute_of(anew, name);
    return before == nullptr ? after != nullptr : after == nullptr || !(*before == *after);
  };
  const bool other_body = differs(attribute::kData) || differs(attribute::kContentType);
  Item all = *said;
  all.insert(anew.begin(), anew.end());
  for (const auto& [name, value] : all) {
    if (differs(name)) {
      table::take_over(native, anew, name);
    }
  }
  if (other_body) {
    table::take_over(native, anew, attribute::kData);
    table::take_over(native, anew, attribute::kContentType);
  }
  return {};
}

}  // namespace

Result<StoredBody> store_body(std::string_view bytes, std::string_view content_type) {
  if (content_type.empty()) {
    content_type = kTextPlain;
  }
  if (content_type == kJson) {
    return store_json(bytes);
  }
  if (content_type == kOctetStream) {
    return StoredBody{dynamo::Binary{std::string(bytes)}, {}};
  }
  const bool text = is_utf8(bytes);
  StoredBody stored;
  stored.data = text ? dynamo::AttributeValue(std::string(bytes)) : dynamo::Binary{std::string(bytes)};
  if (content_type != kTextPlain || !text) {
    stored.content_type = content_type;
  }
  return stored;
}

Body read_body(const dynamo::AttributeValue* data, std::string_view content_type) {
  const auto kept = [&](std::string_view implied) {
    return std::string(content_type.empty() ? implied : content_type);
  };
  if (data == nullptr) {
    return {"null", std::string(kJson)};
  }
  if (const auto* text = data->get<std::string>(); text != nullptr && content_type != kJson) {
    return {*text, kept(kTextPlain)};
  }
  if (const auto* binary = data->get<dynamo::Binary>()) {
    return {binary->bytes, kept(kOctetStream)};
  }
  return {dynamo::to_plain_json(*data), std::string(kJson)};
}

Candidate Candidate::of(const Item& item) {
  Candidate candidate;
  candidate.id = text_of(item, attribute::kId);
  candidate.sort_key = text_of(item, attribute::kSentAt);
  candidate.version = version_of(item);
  candidate.state = core::MessageState::of(decode_standing(item));
  candidate.state.checkpoint.clear();
  if (!candidate.state.hidden_until) {
    candidate.state.received_at.reset();  // Go's redrive leaves it with a message that nobody has
  }
  candidate.nonce = nonce_of(item);
  return candidate;
}

// Not negative, and never zero.
std::int64_t make_locator(std::string_view sort_key) {
  return static_cast<std::int64_t>(table::stable_hash(sort_key) >> 1U) | 1;
}

bool may_be_of(const Receipt& receipt, std::string_view sort_key) {
  return receipt.locator == 0 || receipt.locator == make_locator(sort_key);
}

StoredMessage decode_standing(const Item& item) {
  StoredMessage record;
  record.message.id = text_of(item, attribute::kId);
  record.message.attempt = table::count_of(attribute_of(item, attribute::kReceiveCount));
  record.message.sent_at = table::time_of(item, attribute::kSentAt).value_or(WallTime{});
  record.half = text_of(item, attribute::kQueueType) == to_string(Half::dlq) ? Half::dlq : Half::standard;
  record.version = version_of(item).number;
  record.created_at = table::time_of(item, attribute::kCreatedAt).value_or(WallTime{});
  record.updated_at = table::time_of(item, attribute::kUpdatedAt).value_or(WallTime{});
  record.received_at = table::time_of(item, attribute::kReceivedAt);
  record.invisible_until = table::time_of(item, attribute::kInvisibleUntilAt);
  record.failure = table::decode_failure(attribute_of(item, attribute::kFailure));
  record.marks = marks_of(item);
  record.message.checkpoint = table::bytes_of(item, attribute::kCheckpoint);
  return record;
}

void note_oddities(StoredMessage& record, const Item& item) {
  const std::string half = text_of(item, attribute::kQueueType);
  if (half != to_string(Half::standard) && half != to_string(Half::dlq)) {
    record.odd.emplace(attribute::kQueueType, half);
  }
  for (const std::string_view name : {attribute::kCreatedAt, attribute::kUpdatedAt, attribute::kSentAt}) {
    if (!table::time_of(item, name)) {
      record.odd.emplace(name, text_of(item, name));
    }
  }
  // These may be absent, which is spelt as the empty text.
  for (const std::string_view name : {attribute::kReceivedAt, attribute::kInvisibleUntilAt}) {
    if (std::string text = text_of(item, name); !text.empty() && !table::time_of(item, name)) {
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
  record.message.attributes = table::decode_attributes(attribute_of(item, attribute::kAttributes));
  record.message.group = text_of(item, attribute::kGroup);
  return record;
}

Result<Item> encode_content(const NewMessage& message) {
  SLUICE_TRY(body, store_body(message.body, message.content_type));
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
  SLUICE_TRY(attributes, table::encode_attributes(message.attributes));
  if (!attributes->empty()) {
    item.emplace(attribute::kAttributes, std::move(*attributes));
  }
  return item;
}

Result<Item> encode_record(const NewMessage& message, const NewRecord& record) {
  if (!is_storable_id(record.id)) {
    return invalid(unstorable_id());
  }
  SLUICE_TRY(item, encode_content(message));
  StoredMessage stored;
  // Go consumers look at `invisible_until` only, so that it, and not `sent_at` alone, makes them wait.
  core::sent(message, record.now).put_into(stored);
  stored.created_at = stored.updated_at = record.now;
  stored.message.id = record.id;
  put_state(*item, stored);
  item->emplace(attribute::kNonce, record.nonce);
  if (auto error = table::too_large(*item, kClaimBytes)) {
    return std::move(*error);
  }
  return std::move(*item);
}

std::string unstorable_id() {
  return "a message id must be 1 to " + std::to_string(table::kMaxIdBytes) + " bytes of UTF-8, and not begin with '" +
         std::string(table::kNoticePrefix) + "', '" + std::string(table::kKeyPrefix) + "', '" +
         std::string(table::kDedupPrefix) + "' or '" + std::string(table::kUniquePrefix) + "'";
}

bool is_storable_id(std::string_view id) {
  return !id.empty() && id.size() <= table::kMaxIdBytes && !table::is_metadata_id(id) && is_utf8(id);
}

std::string nonce_of(const Item& item) { return text_of(item, attribute::kNonce); }

table::VersionMark version_of(const Item& item) {
  return table::VersionMark::of(attribute_of(item, attribute::kVersion));
}

Marks marks_of(const Item& item) { return table::count_of(attribute_of(item, attribute::kMarks)); }

Result<Item> encode_stored(const StoredMessage& record) {
  if (!is_storable_id(record.message.id)) {
    return Error(ErrorCode::invalid, unstorable_id());
  }
  auto anew = written_anew(record);
  if (!anew || record.native.empty()) {
    return anew;
  }
  const std::string what = "the native form of message '" + record.message.id + "' ";
  auto native = dynamo::decode_item(record.native);
  if (!native) {
    return invalid(what + "is no item: " + native.error().message);
  }
  if (const auto overruled = overrule(*native, *anew); !overruled) {
    return invalid(what + "says what cannot be stored: " + overruled.error().message());
  }
  return std::move(*native);
}

bool says_all(const StoredMessage& record, const Item& item) {
  const auto anew = written_anew(record);
  if (!anew) {
    return false;
  }
  Item spelt = item;
  spelt.erase(std::string(attribute::kNonce));
  if (record.marks == 0) {
    spelt.erase(std::string(attribute::kMarks));  // a mark that was taken away may have left its name behind
  }
  if (record.message.checkpoint.empty()) {
    spelt.erase(std::string(attribute::kCheckpoint));  // so may a checkpoint
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
