#include "base/text/json_check.hpp"

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
  while (!text.empty() && JsonCursor::is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && JsonCursor::is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace sluice
