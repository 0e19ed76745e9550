#pragma once

#include <cstddef>

#include "host/queue/change.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::operate {

/// What changes cost in a table of DynamoMQ's layout, by DynamoDB's published rules: a write unit for each begun KiB of
/// the item in the table and again in its index, and a second one in the index where an index key changes, because that
/// is a deletion and an insertion. A value; costs add up.
struct WriteCost {
  double requests = 0;  ///< a share of one where a request takes several
  double read_units = 0;
  double write_units = 0;

  WriteCost& operator+=(const WriteCost& other);
};

/// The bytes that DynamoDB counts for the message's item; the store's own small additions are estimated.
std::size_t item_bytes(const queue::StoredMessage& message);

/// One change of one message that was listed with its content.
WriteCost change_cost(const queue::StoredMessage& message, queue::ChangeAction action);
/// One edit of its content, which reads it first.
WriteCost edit_cost(const queue::StoredMessage& message);

}  // namespace sluice::operate
