#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// How long the JSON value is that `text` begins with, white space before it included, where it is as most is: strings
/// of ASCII without escapes, at most 64 objects and arrays within one another, or `max_depth`. 0: it is not, or is no
/// JSON; JsonReader tells. Pure function, thread-safe.
std::size_t plain_json(std::string_view text, std::size_t max_depth);

}  // namespace sluice
