#include "base/text/json_check.hpp"

#include <algorithm>

#include "base/text/json_reader.hpp"

namespace sluice {

std::optional<std::string> json_problem(std::string_view text) {
  JsonReader reader(text, kJsonDepth, JsonReader::BadText::refuse);
  if (reader.skip() && reader.finish()) {
    return std::nullopt;
  }
  if (reader.offset() >= text.size()) {
    return "it ends too early";
  }
  return reader.reason() + " at character " + std::to_string(reader.offset() + 1);
}

std::optional<std::string> json_string(std::string_view text) {
  std::string characters;
  JsonReader reader(text, 1, JsonReader::BadText::refuse);
  return reader.read_string(characters) && reader.finish() ? std::optional(std::move(characters)) : std::nullopt;
}

std::string_view json_trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \n\t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);  // npos + 1 is 0
}

}  // namespace sluice
