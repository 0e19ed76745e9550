#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::plugin {

/// The longest beginning of `text` within `limit` bytes that cuts no UTF-8 character in two.
std::string_view cut_text(std::string_view text, std::size_t limit);

/// The text as valid UTF-8 of at most `limit` bytes: bytes that are not UTF-8 become U+FFFD, then it is cut.
std::string clean_text(std::string_view text, std::size_t limit);

}  // namespace sluice::plugin
