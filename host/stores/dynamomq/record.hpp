#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/message_state.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::dynamomq {

/// A message's body as the `data` attribute holds it. DynamoMQ's Go programs know only `data`.
struct StoredBody {
  dynamo::AttributeValue data;
  std::string content_type;  ///< to be kept beside it; empty where the type of `data` implies it
};

/// A body as handlers see it.
struct Body {
  std::string bytes;
  std::string content_type;
};

/// text/plain becomes S (B when it is not UTF-8), application/octet-stream B, application/json the value it stands for;
/// anything else S or B with its content type kept. ErrorCode::invalid for JSON that DynamoDB cannot hold.
Result<StoredBody> store_body(std::string_view bytes, std::string_view content_type);

/// Never fails: S is its bytes (text/plain), B its bytes (application/octet-stream), everything else JSON; absent data
/// is JSON's null. `content_type` is what was kept beside it, or empty.
Body read_body(const dynamo::AttributeValue* data, std::string_view content_type);

// Items of the table to messages and back. Pure functions.

/// A record whose turn may have come: as much of it as a claim needs. The message itself comes with the claim's answer.
struct Candidate {
  std::string id;
  std::string sort_key;  ///< `sent_at` as written, which is how the index sorts; as a time the epoch where it is none
  table::VersionMark version;
  core::MessageState state;  ///< without its checkpoint, and with what else was read
  std::string nonce;

  static Candidate of(const dynamo::Item& item);
  /// When it may be claimed: strictly after the one, not before the other.
  bool due(WallTime now) const { return state.sent_at <= now && (!state.hidden_until || now > *state.hidden_until); }
  /// Once it is due: whether whoever had it may have ended because of it.
  bool suspect() const { return state.is_suspect(); }
  /// The last claim turned out to have reached nobody: the next one counts in its place.
  void never_arrived() {
    state.receives -= state.receives > 0 ? 1 : 0;
    state.received_at.reset();
  }
  /// The time after which it is due.
  WallTime due_at() const { return std::max(state.sent_at, state.hidden_until.value_or(state.sent_at)); }
};

/// A receipt's locator: a fingerprint of `sent_at` as it is spelt, which tells the message from a later one of the same
/// id.
std::int64_t make_locator(std::string_view sort_key);
/// Whether the receipt is of a message with that `sent_at`; of one without a fingerprint nobody can tell: true.
bool may_be_of(const Receipt& receipt, std::string_view sort_key);

/// Reads any item whatever; what is missing or of another type takes its default. Never fails.
StoredMessage decode_record(const dynamo::Item& item);

/// The same without the content, which is left empty and not even looked at.
StoredMessage decode_standing(const dynamo::Item& item);

/// Notes what the item holds in place of a half and of times, or lacks. For an item of which all of these were read.
void note_oddities(StoredMessage& record, const dynamo::Item& item);

/// What a sender determines: `data` and our attributes beside it. ErrorCode::invalid when it cannot be stored.
Result<dynamo::Item> encode_content(const NewMessage& message);

/// What the store determines of a new record.
struct NewRecord {
  std::string id;
  WallTime now{};
  std::string nonce;
};
/// The whole item of a new message. ErrorCode::invalid when it, or its later claim, would not fit into DynamoDB.
Result<dynamo::Item> encode_record(const NewMessage& message, const NewRecord& record);

/// Whether a message of this id can be there at all: 1 to kMaxIdBytes bytes of UTF-8, and not the id of a notice.
bool is_storable_id(std::string_view id);
/// What is wrong with one that cannot.
std::string unstorable_id();

/// What the record says of its message with yes or no.
Marks marks_of(const dynamo::Item& item);

/// Its version.
table::VersionMark version_of(const dynamo::Item& item);

/// The nonce of the last write by one of our hosts; empty: none.
std::string nonce_of(const dynamo::Item& item);

// Whole records to items, for those who copy queues. Pure functions.

/// The item of a record as it stands: times, counts, failure and version included. Where the record brings the item
/// that it was read from (`native`), this item is taken, but for what the record's fields say otherwise.
/// ErrorCode::invalid when the content cannot be stored or `native` is no item.
Result<dynamo::Item> encode_stored(const StoredMessage& record);

/// Whether the record's fields alone give this item back. Nonces and the way times are spelt do not count.
bool says_all(const StoredMessage& record, const dynamo::Item& item);

}  // namespace sluice::queue::dynamomq
