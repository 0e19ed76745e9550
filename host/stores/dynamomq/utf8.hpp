#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::queue::dynamomq {

/// True for well-formed UTF-8 (no surrogates, nothing overlong), which is what DynamoDB takes as a string.
bool is_utf8(std::string_view text);

/// At most `limit` bytes of the text, cut between characters, with each byte that is no UTF-8 as '?'.
std::string clip_utf8(std::string_view text, std::size_t limit);

}  // namespace sluice::queue::dynamomq
