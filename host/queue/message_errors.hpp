#pragma once

#include <cstdint>
#include <string>

#include "base/error.hpp"

/// What a store says of a message that is not as a caller believes; the same words whichever store it is.
namespace sluice::queue {

/// ErrorCode::not_found.
Error no_message(const std::string& queue, const std::string& id);

// ErrorCode::conflict.

Error changed_since(const std::string& queue, const std::string& id);
/// A change was tried often and came too late each time.
Error changed_all_the_time(const std::string& queue, const std::string& id);
Error not_in_dlq(const std::string& queue, const std::string& id);
Error in_flight_in_dlq(const std::string& queue, const std::string& id);

/// As many messages are in flight as the queue may have.
Error in_flight_limit(const std::string& queue, std::uint64_t limit);

}  // namespace sluice::queue
