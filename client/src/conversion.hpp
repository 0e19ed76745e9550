#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/queue/source.hpp"
#include "host/queue/stored_message.hpp"
#include "sluice/client/error.hpp"
#include "sluice/client/message.hpp"

/// The library's words for the store's. Pure functions.
namespace sluice::client::detail {

/// What a call was about, as far as it decides what its failure is called.
enum class Asked { read, write_content };

/// `store` is what stands in place of "DynamoDB API"; empty: that.
Error to_error(const sluice::Error& error, Asked asked, std::string_view store);

queue::Half to_store(QueueType type);
queue::UniqueUntil to_store(UniqueUntil until);
queue::NewMessage to_store(NewMessage message);
/// `now` is the time of creation when the message names none.
queue::StoredMessage to_store(const Message& message, Time now);
queue::Receipt to_store(const Receipt& receipt);

Message to_public(queue::StoredMessage stored);
/// `visibility` is what the claim was made for: it tells when that was.
ReceivedMessage to_public(queue::Delivery delivery, QueueType type, Duration visibility);

/// Why this data is not what its content type says; empty when it is.
std::string objection(std::string_view data, std::string_view content_type);

}  // namespace sluice::client::detail
