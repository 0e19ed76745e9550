#pragma once

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/stored_message.hpp"

/// Whole records to items, for those who copy queues. Pure functions.
namespace sluice::queue::dynamomq {

/// The item of a record as it stands: times, counts, failure and version included. Where the record brings the item
/// that it was read from (`native`), this item is taken, but for what the record's fields say otherwise.
/// ErrorCode::invalid when the content cannot be stored or `native` is no item.
Result<dynamo::Item> encode_stored(const StoredMessage& record);

/// Whether the record's fields alone give this item back. Nonces and the way times are spelt do not count.
bool says_all(const StoredMessage& record, const dynamo::Item& item);

}  // namespace sluice::queue::dynamomq
