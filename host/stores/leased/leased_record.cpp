#include "host/stores/leased/leased_record.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::attribute_of;
using dynamo::AttributeValue;
using dynamo::Item;
using dynamo::whole_number;

/// An item's attributes by their names, which are one letter each. Found in one walk: a message is asked for a dozen of
/// them, most of which it does not have.
class Letters {
 public:
  explicit Letters(const Item& item) {
    for (const auto& [name, value] : item) {
      if (name.size() == 1 && is_letter(name.front())) {
        values_[static_cast<unsigned char>(name.front())] = &value;
      }
    }
  }

  /// Null: the item has none.
  const AttributeValue* operator[](std::string_view name) const {
    return values_[static_cast<unsigned char>(name.front())];
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  std::array<const AttributeValue*, 'z' + 1> values_{};
};

std::string text_of(const AttributeValue* value) {
  const auto* text = value == nullptr ? nullptr : value->get<std::string>();
  return text == nullptr ? std::string() : *text;
}

std::uint32_t count_of(const Letters& item) {
  const auto number = whole_number(item[attribute::kReceiveCount]).value_or(0);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max() - 1));
}

bool is_set(const AttributeValue* value) { return whole_number(value).value_or(0) > 0; }

std::optional<WallTime> time_in(const AttributeValue* value) {
  const auto millis = whole_number(value).value_or(0);
  return millis > 0 ? std::optional(time_of_millis(millis)) : std::nullopt;
}

Priority stored_priority(const Letters& item) {
  const auto number = whole_number(item[attribute::kPriority]);
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
bool is_number_or_absent(const AttributeValue* value) {
  return value == nullptr || whole_number(value).value_or(-1) >= 0;
}

// Read as it is written: 1 is spelt by its absence, so that a condition on it means one thing.
bool is_version(const AttributeValue* value) { return value == nullptr || whole_number(value).value_or(1) != 1; }

table::VersionMark version_in(const AttributeValue* stored) {
  if (stored == nullptr) {
    return version_mark(1);
  }
  return {*stored, is_version(stored) ? whole_number(stored).value_or(0) : 0};
}

/// Where an item lies, and what that says.
struct Where {
  explicit Where(const Letters& item)
      : place{text_of(item[attribute::kPartition]), text_of(item[attribute::kSort])},
        partition(parse_partition(place.partition)) {}

  Place place;
  std::optional<Partition> partition;  ///< nothing: none of messages
};

std::string id_in(const Letters& item, const Where& where) {
  const AttributeValue* own = item[attribute::kOwnId];
  if (own != nullptr && own->is<std::string>()) {
    return text_of(own);
  }
  return where.partition ? made_id(where.place.sort, where.partition->shard) : where.place.sort;
}

void note_oddities(StoredMessage& record, const Letters& item, const Where& where) {
  const Place& place = where.place;
  if (!where.partition || where.partition->half != record.half) {
    record.odd.emplace("queue_type", place.partition);
  }
  if (!is_sort_key(place.sort)) {
    record.odd.emplace("sent_at", place.sort);
  }
  for (const auto& [name, known_as] : kNumbers) {
    if (!is_number_or_absent(item[name])) {
      record.odd.insert_or_assign(std::string(known_as), as_text(*item[name]));
    }
  }
  if (!is_version(item[attribute::kVersion])) {
    record.odd.emplace("version", as_text(*item[attribute::kVersion]));
  }
}

void decode_body(Message& message, const Letters& item) {
  const AttributeValue* type = item[attribute::kContentType];
  const AttributeValue* body = item[attribute::kBody];
  const auto* text = body == nullptr ? nullptr : body->get<std::string>();
  if (text != nullptr) {
    message.body = *text;
  } else if (const auto* bytes = body == nullptr ? nullptr : body->get<dynamo::Binary>()) {
    message.body = bytes->bytes;
    message.content_type = kOctetStream;
  } else if (body != nullptr) {
    // Somebody else's: shown as the JSON that it stands for.
    message.body = dynamo::to_plain_json(*body);
    message.content_type = kJson;
  }
  if (type != nullptr && type->is<dynamo::Number>()) {
    message.content_type = kJson;
  } else if (const auto* named = type == nullptr ? nullptr : type->get<std::string>()) {
    message.content_type = *named;
  }
}

std::string oddity_in(const Letters& item, const Where& where) {
  if (!where.partition) {
    return "\"" + clean_utf8(where.place.partition, 80) + "\" is no partition of messages";
  }
  if (!is_sort_key(where.place.sort)) {
    return "its sort key \"" + clean_utf8(where.place.sort, 80) + "\" is none of a leased queue";
  }
  if (!is_version(item[attribute::kVersion])) {
    return "its version \"v\" is no whole number above 1, and 1 is spelt by leaving it out";
  }
  if (const auto* own = item[attribute::kOwnId]; own != nullptr && !own->is<std::string>()) {
    return "its id \"i\" is no text";
  }
  for (const auto& named : kNumbers) {
    if (!is_number_or_absent(item[named.attribute])) {
      return "its \"" + std::string(named.attribute) + "\" (" + std::string(named.name) + ") is no whole number";
    }
  }
  return {};
}

StoredMessage standing_in(const Letters& item, const Where& where, Half half) {
  StoredMessage record;
  record.message.id = id_in(item, where);
  record.message.attempt = count_of(item);
  record.message.priority = stored_priority(item);
  record.message.sent_at = time_in(item[attribute::kSentAt]).value_or(due_of(where.place.sort));
  record.half = half;
  record.version = version_in(item[attribute::kVersion]).number;
  record.created_at = time_in(item[attribute::kCreatedAt]).value_or(record.message.sent_at);
  record.updated_at = time_in(item[attribute::kUpdated]).value_or(record.created_at);
  record.received_at = time_in(item[attribute::kReceived]);
  record.invisible_until = time_in(item[attribute::kNotBefore]);
  record.failure = table::decode_failure(item[attribute::kFailure]);
  record.suspect = is_set(item[attribute::kSuspect]);
  return record;
}

}  // namespace

std::string id_of(const Item& item) {
  const Letters letters(item);
  return id_in(letters, Where(letters));
}

std::optional<WallTime> time_of(const Item& item, std::string_view name) { return time_in(attribute_of(item, name)); }

table::VersionMark version_of(const Item& item) { return version_in(attribute_of(item, attribute::kVersion)); }

table::VersionMark version_mark(std::int64_t version) {
  if (version == 1) {
    return {std::nullopt, 1};
  }
  return table::VersionMark::number_of(version);
}

std::int64_t next_version(const table::VersionMark& version) { return std::max<std::int64_t>(version.next(), 2); }

std::string version_condition(const table::VersionMark& version, std::map<std::string, std::string>& names,
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
  const Letters letters(item);
  Where where(letters);
  Candidate candidate;
  candidate.id = id_in(letters, where);
  candidate.odd = oddity_in(letters, where);
  candidate.place = std::move(where.place);
  candidate.due = due_of(candidate.place.sort);
  candidate.priority = stored_priority(letters);
  candidate.not_before = time_in(letters[attribute::kNotBefore]);
  candidate.version = version_in(letters[attribute::kVersion]).number;
  candidate.receive_count = count_of(letters);
  candidate.suspect = is_set(letters[attribute::kSuspect]);
  candidate.received = time_in(letters[attribute::kReceived]).has_value();
  candidate.group = text_of(letters[attribute::kGroup]);
  candidate.own_id = text_of(letters[attribute::kOwnId]);
  candidate.unique_token = text_of(letters[attribute::kUniqueToken]);
  candidate.nonce = text_of(letters[attribute::kNonce]);
  candidate.hold = is_set(letters[attribute::kHold]);
  return candidate;
}

StoredMessage decode_standing(const Item& item, Half half) {
  const Letters letters(item);
  return standing_in(letters, Where(letters), half);
}

StoredMessage decode_record(const Item& item, Half half) {
  const Letters letters(item);
  const Where where(letters);
  StoredMessage record = standing_in(letters, where, half);
  note_oddities(record, letters, where);
  decode_body(record.message, letters);
  record.message.attributes = table::decode_attributes(letters[attribute::kAttributes]);
  record.message.group = text_of(letters[attribute::kGroup]);
  return record;
}

std::string oddity_of(const Item& item) {
  const Letters letters(item);
  return oddity_in(letters, Where(letters));
}

}  // namespace sluice::queue::leased
