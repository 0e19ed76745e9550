#include "host/stores/leased/leased_record.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/body.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::text_of;
using dynamo::whole_number;

std::uint32_t count_of(const Item& item) {
  const auto number = whole_number(item, attribute::kReceiveCount).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max() - 1));
}

bool is_set(const Item& item, std::string_view name) { return whole_number(item, name).value_or(0) > 0; }

Priority stored_priority(const Item& item) {
  const auto number = whole_number(item, attribute::kPriority);
  const bool known = number && *number >= 0 && *number < static_cast<std::int64_t>(kPriorities);
  return known ? static_cast<Priority>(*number) : Priority::normal;
}

std::string as_text(const AttributeValue& value) {
  if (const auto* text = value.get<std::string>()) {
    return *text;
  }
  const auto* number = value.get<dynamo::Number>();
  return number == nullptr ? std::string() : number->text;
}

/// The attributes that hold times and counts, by the name that records of all layouts have for them.
struct Named {
  std::string_view attribute;
  std::string_view name;
};
constexpr std::array kNumbers{
    Named{attribute::kSentAt, "sent_at"},
    Named{attribute::kCreatedAt, "created_at"},
    Named{attribute::kUpdated, "updated_at"},
    Named{attribute::kReceived, "received_at"},
    Named{attribute::kNotBefore, "invisible_until_at"},
    Named{attribute::kReceiveCount, "receive_count"},
};

// Absent, or a whole number that is not negative.
bool is_number_or_absent(const Item& item, std::string_view name) {
  const AttributeValue* value = attribute_of(item, name);
  return value == nullptr || whole_number(value).value_or(-1) >= 0;
}

// Read as it is written: 1 is spelt by its absence, so that a condition on it means one thing.
bool has_version(const Item& item) {
  const AttributeValue* value = attribute_of(item, attribute::kVersion);
  return value == nullptr || whole_number(value).value_or(1) != 1;
}

void note_oddities(StoredMessage& record, const Item& item) {
  const Place place = Place::of(item);
  if (const auto partition = parse_partition(place.partition); !partition || partition->half != record.half) {
    record.odd.emplace("queue_type", place.partition);
  }
  if (!is_sort_key(place.sort)) {
    record.odd.emplace("sent_at", place.sort);
  }
  for (const auto& [name, known_as] : kNumbers) {
    if (!is_number_or_absent(item, name)) {
      record.odd.insert_or_assign(std::string(known_as), as_text(item.find(name)->second));
    }
  }
  if (!has_version(item)) {
    record.odd.emplace("version", as_text(item.find(attribute::kVersion)->second));
  }
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

Failure failure_of(const Item& item) {
  const AttributeValue* failure = attribute_of(item, attribute::kFailure);
  if (failure == nullptr) {
    return {};
  }
  return dynamomq::decode_standing({{std::string(dynamomq::attribute::kFailure), *failure}}).failure;
}

void decode_body(Message& message, const Item& item) {
  const AttributeValue* type = attribute_of(item, attribute::kContentType);
  const AttributeValue* body = attribute_of(item, attribute::kBody);
  const auto* text = body == nullptr ? nullptr : body->get<std::string>();
  if (text != nullptr) {
    message.body = *text;
  } else if (const auto* bytes = body == nullptr ? nullptr : body->get<dynamo::Binary>()) {
    message.body = bytes->bytes;
    message.content_type = kOctetStream;
  } else if (body != nullptr) {
    // Somebody else's: shown as the JSON that it stands for.
    const dynamomq::Body shown = dynamomq::read_body(body, {});
    message.body = shown.bytes;
    message.content_type = shown.content_type;
  }
  if (type != nullptr && type->is<dynamo::Number>()) {
    message.content_type = kJson;
  } else if (const auto* named = type == nullptr ? nullptr : type->get<std::string>()) {
    message.content_type = *named;
  }
}

}  // namespace

std::string id_of(const Item& item) {
  if (const auto* own = dynamo::find<std::string>(item, attribute::kOwnId)) {
    return *own;
  }
  const Place place = Place::of(item);
  const auto partition = parse_partition(place.partition);
  return partition ? made_id(place.sort, partition->shard) : place.sort;
}

std::optional<WallTime> time_of(const Item& item, std::string_view name) {
  const auto millis = whole_number(item, name).value_or(0);
  return millis > 0 ? std::optional(time_of_millis(millis)) : std::nullopt;
}

dynamomq::VersionMark version_of(const Item& item) {
  const AttributeValue* stored = attribute_of(item, attribute::kVersion);
  if (stored == nullptr) {
    return version_mark(1);
  }
  return {*stored, has_version(item) ? whole_number(stored).value_or(0) : 0};
}

dynamomq::VersionMark version_mark(std::int64_t version) {
  if (version == 1) {
    return {std::nullopt, 1};
  }
  return dynamomq::VersionMark::number_of(version);
}

std::int64_t next_version(const dynamomq::VersionMark& version) { return std::max<std::int64_t>(version.next(), 2); }

std::string version_condition(const dynamomq::VersionMark& version, std::map<std::string, std::string>& names,
                              Item& values) {
  names.emplace("#v", attribute::kVersion);
  if (version.stored) {
    values.emplace(":v", *version.stored);
    return "#v = :v";
  }
  names.emplace("#p", attribute::kPartition);
  return "attribute_exists(#p) AND attribute_not_exists(#v)";
}

Candidate Candidate::of(const Item& item) {
  Candidate candidate;
  candidate.id = id_of(item);
  candidate.place = Place::of(item);
  candidate.due = due_of(candidate.place.sort);
  candidate.priority = stored_priority(item);
  candidate.not_before = time_of(item, attribute::kNotBefore);
  candidate.version = version_of(item).number;
  candidate.receive_count = count_of(item);
  candidate.suspect = is_set(item, attribute::kSuspect);
  candidate.received = time_of(item, attribute::kReceived).has_value();
  candidate.group = text_of(item, attribute::kGroup);
  candidate.own_id = text_of(item, attribute::kOwnId);
  candidate.unique_token = text_of(item, attribute::kUniqueToken);
  candidate.nonce = text_of(item, attribute::kNonce);
  candidate.hold = is_set(item, attribute::kHold);
  candidate.odd = oddity_of(item);
  return candidate;
}

StoredMessage decode_standing(const Item& item, Half half) {
  StoredMessage record;
  const std::string sort = Place::of(item).sort;
  record.message.id = id_of(item);
  record.message.attempt = count_of(item);
  record.message.priority = stored_priority(item);
  record.message.sent_at = time_of(item, attribute::kSentAt).value_or(due_of(sort));
  record.half = half;
  record.version = version_of(item).number;
  record.created_at = time_of(item, attribute::kCreatedAt).value_or(record.message.sent_at);
  record.updated_at = time_of(item, attribute::kUpdated).value_or(record.created_at);
  record.received_at = time_of(item, attribute::kReceived);
  record.invisible_until = time_of(item, attribute::kNotBefore);
  record.failure = failure_of(item);
  record.suspect = is_set(item, attribute::kSuspect);
  return record;
}

StoredMessage decode_record(const Item& item, Half half) {
  StoredMessage record = decode_standing(item, half);
  note_oddities(record, item);
  decode_body(record.message, item);
  record.message.attributes = attributes_of(item);
  record.message.group = text_of(item, attribute::kGroup);
  return record;
}

std::string oddity_of(const Item& item) {
  const Place place = Place::of(item);
  const auto partition = parse_partition(place.partition);
  if (!partition) {
    return "\"" + clean_utf8(place.partition, 80) + "\" is no partition of messages";
  }
  if (!is_sort_key(place.sort)) {
    return "its sort key \"" + clean_utf8(place.sort, 80) + "\" is none of a leased queue";
  }
  if (!has_version(item)) {
    return "its version \"v\" is no whole number above 1, and 1 is spelt by leaving it out";
  }
  if (const auto* own = attribute_of(item, attribute::kOwnId); own != nullptr && !own->is<std::string>()) {
    return "its id \"i\" is no text";
  }
  for (const auto& named : kNumbers) {
    if (!is_number_or_absent(item, named.attribute)) {
      return "its \"" + std::string(named.attribute) + "\" (" + std::string(named.name) + ") is no whole number";
    }
  }
  return {};
}

}  // namespace sluice::queue::leased
