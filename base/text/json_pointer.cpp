#include "base/text/json_pointer.hpp"

#include <charconv>
#include <cstdint>
#include <vector>

#include "base/text/json_check.hpp"

namespace sluice {
namespace {

/// The parts of a pointer, unescaped.
std::vector<std::string> parts_of(std::string_view pointer) {
  std::vector<std::string> parts;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view escaped = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(escaped.size());
    std::string& part = parts.emplace_back();
    for (std::size_t at = 0; at < escaped.size(); ++at) {
      const bool escape = escaped[at] == '~' && at + 1 < escaped.size();
      part += escape ? (escaped[++at] == '0' ? '~' : '/') : escaped[at];
    }
  }
  return parts;
}

/// An element's number as RFC 6901 writes it: no sign, no leading zero.
std::optional<std::uint64_t> index_of(const std::string& part) {
  std::uint64_t index = 0;
  const char* const end = part.data() + part.size();
  const auto [rest, code] = std::from_chars(part.data(), end, index);
  const bool plain = part == "0" || (!part.empty() && part.front() != '0');
  return code == std::errc() && rest == end && plain ? std::optional(index) : std::nullopt;
}

/// Moves to the value that `part` names in the object or array that begins here; false: there is none.
bool step_into(JsonReader& reader, const std::string& part) {
  if (reader.peek() == JsonReader::Kind::object) {
    std::string_view name;
    reader.begin_object();
    while (reader.next_member(name)) {
      if (name == part) {
        return true;
      }
      reader.skip();
    }
    return false;
  }
  const auto index = index_of(part);
  if (reader.peek() != JsonReader::Kind::array || !index) {
    return false;
  }
  reader.begin_array();
  for (std::uint64_t at = 0; reader.next_element(); ++at) {
    if (at == *index) {
      return true;
    }
    reader.skip();
  }
  return false;
}

}  // namespace

std::optional<JsonScalar> json_at(std::string_view json, std::string_view pointer) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  for (const std::string& part : parts_of(pointer)) {
    if (!step_into(reader, part)) {
      return std::nullopt;
    }
  }
  JsonScalar found{reader.peek(), {}};
  std::string_view written;
  if (found.kind == JsonReader::Kind::string) {
    reader.read_string(found.text);
  } else if (found.kind == JsonReader::Kind::number || found.kind == JsonReader::Kind::boolean) {
    reader.read_raw(written);
    found.text = written;
  }
  return reader.failed() ? std::nullopt : std::optional(std::move(found));
}

}  // namespace sluice
