#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::queue::outbox {

/// %XX as the bytes that they stand for; nothing where a '%' stands before anything else.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace sluice::queue::outbox
