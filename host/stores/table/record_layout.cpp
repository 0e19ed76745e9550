#include "host/stores/table/record_layout.hpp"

#include <utility>

#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "host/stores/core/keys.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::table {
namespace {

// DynamoDB may remove a mark as soon as this has passed, by its own clock.
constexpr Duration kBeyond = std::chrono::hours(1);

Mark mark_in(const RecordLayout::Seen& seen, const std::string& id) {
  const auto found = seen.marks.find(id);
  return Mark::of(found == seen.marks.end() ? nullptr : &found->second);
}

}  // namespace

dynamo::TransactAction RecordLayout::put_mark(std::string id, const Mark& mark, WallTime until) const {
  dynamo::Item item = marks_.names.key(std::move(id));
  mark.put_into(item);
  const auto expires = std::chrono::floor<std::chrono::seconds>((until + kBeyond).time_since_epoch());
  item.emplace(marks_.names.expires, dynamo::AttributeValue::number(expires.count()));
  return put_message(place_.table, item, marks_.names);
}

std::vector<dynamo::TransactAction> RecordLayout::put_marks(const NewMessage& message, const std::string& id,
                                                            const std::string& token, const std::string& before,
                                                            WallTime now) const {
  std::vector<dynamo::TransactAction> marks;
  if (!message.dedup_id.empty()) {
    const WallTime until = now + message.dedup_window;
    dynamo::TransactAction& mark = marks.emplace_back(put_mark(
        marks_.dedup_id(message.dedup_id), {.first = id, .token = token, .until = format_timestamp(until)}, until));
    // Timestamps sort as their times do.
    mark.condition += " OR " + Placeholders(mark).compared(attribute::kMarkUntil, " <= ", format_timestamp(now));
  }
  if (!message.unique_key.empty()) {
    dynamo::TransactAction& mark = marks.emplace_back(put_mark(
        marks_.unique_id(message.unique_key),
        {.first = id, .token = unique_token(message, token), .mode = message.unique_until}, now + kUniqueLife));
    if (!before.empty()) {
      mark.condition += " OR " + Placeholders(mark).equal(attribute::kMarkToken, before);
    }
  }
  return marks;
}

dynamo::Result<RecordLayout::Seen> RecordLayout::see(std::span<const NewMessage* const> messages,
                                                     std::set<std::string> ids, Deadline deadline) const {
  std::set<std::string> wanted;
  for (const NewMessage* message : messages) {
    const auto marks = marks_.mark_ids(*message);
    wanted.insert(marks.begin(), marks.end());
  }
  Seen seen;
  // Where an id is a key, its message is read together with the marks.
  const bool ids_are_keys = marks_.names.range.empty();
  if (ids_are_keys) {
    for (const std::string& id : ids) {
      seen.records.try_emplace(id);
    }
    wanted.merge(ids);
    ids.clear();
  }
  const auto keys = mapped(wanted, [&](const std::string& id) { return marks_.names.key(id); });
  SLUICE_TRY(items, read_items(parts_.client, place_.table, keys, deadline));
  for (dynamo::Item& item : *items) {
    const std::string id = marks_.names.id_of(item);
    if (const auto record = seen.records.find(id); record != seen.records.end()) {
      record->second.item = std::move(item);
    } else {
      seen.marks.emplace(id, std::move(item));
    }
  }
  for (const NewMessage* message : messages) {
    const Mark unique = message->unique_key.empty() ? Mark() : mark_in(seen, marks_.unique_id(message->unique_key));
    if (unique.there()) {
      ids.insert(unique.first);
    }
  }
  if (!ids.empty()) {
    SLUICE_TRY(records, find(ids, deadline));
    seen.records.merge(*records);
  }
  return seen;
}

bool RecordLayout::holds_key(const dynamo::Item& item, const Mark& mark) const {
  return dynamo::text_of(item, names().unique_token) == mark.token &&
         core::holds_unique_key(core::MessageState::of(decode_state(item)), mark.mode);
}

RecordLayout::SentBefore RecordLayout::sent_before(const NewMessage& message, const Seen& seen) const {
  SentBefore before;
  if (!message.dedup_id.empty()) {
    before.dedup = mark_in(seen, marks_.dedup_id(message.dedup_id));
  }
  if (!message.unique_key.empty()) {
    before.unique = mark_in(seen, marks_.unique_id(message.unique_key));
  }
  const auto holder = before.unique.there() ? seen.records.find(before.unique.first) : seen.records.end();
  before.held = holder != seen.records.end() && holder->second.there() && holds_key(holder->second.item, before.unique);
  return before;
}

// With a number for the table, as DynamoDB knows tokens by account; 16 and 20 of the 36 characters that it takes.
std::string transaction_token(const QueueTable& table, NonceSource& nonces) {
  return nonces.next() + std::to_string(stable_hash(table.table));
}

Error duplicate_id(const QueueTable& place, const std::string& id) {
  return {ErrorCode::duplicate_id, "queue '" + place.queue + "' has a message '" + id + "' already"};
}

std::optional<Error> too_large(const dynamo::Item& item, std::size_t life_bytes) {
  const std::size_t bytes = item_bytes(item) + life_bytes;
  if (bytes <= kMaxItemBytes) {
    return std::nullopt;
  }
  return Error(ErrorCode::invalid, "the message takes " + std::to_string(bytes) +
                                       " bytes as an item and DynamoDB holds " + std::to_string(kMaxItemBytes) +
                                       "; keep the body elsewhere and send where it is");
}

NewMessage content_of(const Message& message) {
  return {.id = {},
          .body = message.body,
          .content_type = message.content_type,
          .attributes = message.attributes,
          .group = message.group,
          .delay = {}};
}

}  // namespace sluice::queue::table
