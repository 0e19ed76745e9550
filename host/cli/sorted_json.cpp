#include <algorithm>
#include <map>

#include "host/cli/json_text.hpp"
#include "host/observe/escape.hpp"

namespace sluice::cli {

namespace {

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

/// Copies one value after the other from a text that is known to be JSON, nested no deeper than the checker allows.
class Sorter {
 public:
  explicit Sorter(std::string_view text) : rest_(text) {}

  std::string value() {
    skip_space();
    switch (rest_.front()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return quoted(string());
      default:
        return take(std::min(rest_.find_first_of(",]} \t\r\n"), rest_.size()));
    }
  }

 private:
  std::string object() {
    std::map<std::string, std::string> members;
    for (take(1); next() != '}';) {
      std::string key = string();
      next();
      take(1);  // the colon
      members[std::move(key)] = value();
      skip_comma();
    }
    take(1);
    std::string out = "{";
    for (const auto& [key, member] : members) {
      out += (out.size() > 1 ? "," : "") + quoted(key) + ":" + member;
    }
    return out + "}";
  }

  std::string array() {
    std::string out = "[";
    for (take(1); next() != ']';) {
      out += (out.size() > 1 ? "," : "") + value();
      skip_comma();
    }
    take(1);
    return out + "]";
  }

  /// The characters of the string that comes next.
  std::string string() {
    std::size_t end = 1;
    while (rest_[end] != '"') {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    return json_string_characters(take(end + 1));
  }

  static std::string quoted(const std::string& text) {
    std::string out;
    observe::append_json_string(out, text);
    return out;
  }

  char next() {
    skip_space();
    return rest_.front();
  }

  void skip_comma() {
    if (next() == ',') {
      take(1);
    }
  }

  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) {
      rest_.remove_prefix(1);
    }
  }

  std::string take(std::size_t length) {
    std::string taken(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return taken;
  }

  std::string_view rest_;
};

}  // namespace

std::string with_sorted_keys(std::string_view json) { return Sorter(json).value(); }

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
