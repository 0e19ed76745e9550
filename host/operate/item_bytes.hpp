#pragma once

#include <cstddef>
#include <string>

#include "host/queue/stored_message.hpp"

namespace sluice::operate {

// The bytes that DynamoDB counts for a message's item once somebody has changed it; the store's own small additions are
// estimated.

std::size_t dynamomq_item_bytes(const queue::StoredMessage& stored);
std::size_t leased_item_bytes(const queue::StoredMessage& stored, const std::string& queue);

/// A leased table has given the message this id, so that no alias leads to it unless it was moved since.
bool made_by_leased_table(const std::string& id);
/// It may be read as a key and the number of a shard.
bool ends_in_a_shard(const std::string& id);

}  // namespace sluice::operate
