#pragma once

#include <cstddef>
#include <string>

#include "host/queue/stored_message.hpp"

namespace sluice::operate {

// The bytes that DynamoDB counts for a message's item once somebody has changed it; the store's own small additions are
// estimated.

std::size_t dynamomq_item_bytes(const queue::StoredMessage& stored);
std::size_t leased_item_bytes(const queue::StoredMessage& stored, const std::string& queue);

}  // namespace sluice::operate
