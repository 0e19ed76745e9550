#include <map>

#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/visible.hpp"
#include "host/cli/views/message_json.hpp"

namespace sluice::cli {

namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_visible_json(out, text);
  return out;
}

std::string sorted_value(JsonReader& reader);

std::string sorted_object(JsonReader& reader) {
  std::map<std::string, std::string> members;
  std::string_view name;
  reader.begin_object();
  while (reader.next_member(name)) {
    std::string key(name);
    members[std::move(key)] = sorted_value(reader);
  }
  std::string out = "{";
  for (const auto& [key, member] : members) {
    out += (out.size() > 1 ? "," : "") + quoted(key) + ":" + member;
  }
  return out + "}";
}

std::string sorted_array(JsonReader& reader) {
  std::string out = "[";
  reader.begin_array();
  while (reader.next_element()) {
    out += (out.size() > 1 ? "," : "") + sorted_value(reader);
  }
  return out + "]";
}

/// The next value of a text that is known to be JSON.
std::string sorted_value(JsonReader& reader) {
  switch (reader.peek()) {
    case JsonReader::Kind::object:
      return sorted_object(reader);
    case JsonReader::Kind::array:
      return sorted_array(reader);
    case JsonReader::Kind::string: {
      std::string text;
      reader.read_string(text);
      return quoted(text);
    }
    default: {
      std::string_view text;
      reader.read_raw(text);
      return std::string(text);
    }
  }
}

}  // namespace

std::string with_sorted_keys(std::string_view json) {
  JsonReader reader(json, kJsonDepth, JsonReader::BadText::refuse);
  return sorted_value(reader);
}

std::string escaped_as_go_does(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char byte = json[at];
    const std::string_view three = json.substr(at, 3);
    if (byte == '<' || byte == '>' || byte == '&') {
      out += byte == '<' ? "\\u003c" : byte == '>' ? "\\u003e" : "\\u0026";
    } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9") {
      out += three.back() == '\xa8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace sluice::cli
