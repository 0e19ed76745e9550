#include "host/work/message_key.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/signing/digest.hpp"

namespace sluice::work {
namespace {

constexpr std::size_t kShownBytes = 64;

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

FoundKey read_value(JsonReader& reader, const std::string& pointer) {
  std::string text;
  std::string_view number;
  switch (reader.peek()) {
    case JsonReader::Kind::string:
      reader.read_string(text);
      break;
    case JsonReader::Kind::number:
      reader.read_number(number);
      text = number;
      break;
    default:
      return {.missing = "what the body has at '" + pointer + "' is neither a string nor a number"};
  }
  return {.key = std::move(text)};
}

}  // namespace

FoundKey key_in_json(const std::string& json, const std::string& pointer) {
  if (const auto problem = json_problem(json)) {
    return {.missing = "its body is no JSON: " + *problem};
  }
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  for (const std::string& part : parts_of(pointer)) {
    if (!step_into(reader, part)) {
      return {.missing = "its body has nothing at '" + pointer + "'"};
    }
  }
  FoundKey found = read_value(reader, pointer);
  if (reader.failed()) {
    return {.missing = "its body is no JSON: " + reader.reason()};
  }
  return found;
}

std::string kept_key(std::string key) {
  if (key.size() <= kLongestKey) {
    return key;
  }
  return std::string(cut_utf8(key, kShownBytes)) + "...sha256:" + dynamo::to_hex(dynamo::sha256(key));
}

FoundKey MessageKey::of(const queue::Message& message) const {
  using Kind = config::IdempotencyConfig::Kind;
  if (config_.kind == Kind::message) {
    return {.key = message.id};
  }
  FoundKey found;
  if (config_.kind == Kind::attribute) {
    const auto attribute = message.attributes.find(config_.path);
    if (attribute == message.attributes.end()) {
      return {.missing = "it has no attribute '" + config_.path + "'"};
    }
    found.key = attribute->second;
  } else {
    found = key_in_json(message.body, config_.path);
  }
  if (found.missing.empty() && found.key.empty()) {
    found.missing = "the key in it is empty";
  }
  found.key = kept_key(std::move(found.key));
  return found;
}

}  // namespace sluice::work
