#pragma once

#include <string>
#include <string_view>

namespace sluice::observe {

/// Appends `text` so that it can neither break a line nor steer a terminal: control characters become \n, \t or \u001b,
/// bytes that are not UTF-8 become \xff. Everything else stays as it is.
void append_visible(std::string& out, std::string_view text);

/// Appends `text` as a JSON string, quotes included, with bytes that are not UTF-8 shown as the characters \xff.
void append_json_string(std::string& out, std::string_view text);

}  // namespace sluice::observe
