#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Appends `text` so that it can neither break a line, nor steer a terminal, nor look like another text: control
/// characters become \n, \t or \u001b, characters that show nothing or turn the order of others round \u202e, bytes
/// that are not UTF-8 \xff. Everything else stays as it is, the joiners (U+200C, U+200D) too, which words and pictures
/// are made with. Whatever others have written is shown to people by this and nothing else.
void append_visible(std::string& out, std::string_view text);
/// The same as a text of its own.
std::string visible(std::string_view text);

/// Appends `text` as a JSON string, quotes included, with the same characters escaped, and bytes that are not UTF-8
/// shown as the characters \xff.
void append_visible_json(std::string& out, std::string_view text);

}  // namespace sluice
