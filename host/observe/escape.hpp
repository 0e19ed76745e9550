#pragma once

#include <string>
#include <string_view>

namespace sluice::observe {

/// How many bytes the valid UTF-8 sequence at the start of `text` has; 0 when there is none. Overlong forms, surrogates
/// and code points beyond U+10FFFF are not valid.
std::size_t utf8_length(std::string_view text);

/// True when the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

/// Appends `text` so that it can neither break a line nor steer a terminal: control characters become \n, \t or \u001b,
/// bytes that are not UTF-8 become \xff. Everything else stays as it is.
void append_visible(std::string& out, std::string_view text);

/// Appends `text` as a JSON string, quotes included, with bytes that are not UTF-8 shown as the characters \xff.
void append_json_string(std::string& out, std::string_view text);

}  // namespace sluice::observe
