#include "host/operate/json_value.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <variant>

#include "host/operate/decimal.hpp"

namespace sluice::operate {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 128;

/// Builds the document out of the parser's events, whose names are the library's.
struct DocumentBuilder {
  static constexpr std::size_t max_object_size = ~std::size_t{0};
  static constexpr std::size_t max_array_size = ~std::size_t{0};
  static constexpr std::size_t max_key_size = ~std::size_t{0};
  static constexpr std::size_t max_string_size = ~std::size_t{0};

  using Code = json::error_code;
  using Text = json::string_view;

  std::vector<JsonValue> open;    // arrays and objects, the innermost last
  std::vector<std::string> keys;  // of the members that are under way
  std::string part;               // of a text that comes in pieces
  JsonValue document;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return begin(JsonValue::Kind::object); }
  bool on_array_begin(Code&) { return begin(JsonValue::Kind::array); }
  bool on_object_end(std::size_t, Code&) { return end(); }
  bool on_array_end(std::size_t, Code&) { return end(); }
  bool on_key_part(Text text, std::size_t, Code&) { return collect(text); }
  bool on_key(Text text, std::size_t, Code&) {
    collect(text);
    keys.push_back(std::exchange(part, {}));
    return true;
  }
  bool on_string_part(Text text, std::size_t, Code&) { return collect(text); }
  bool on_string(Text text, std::size_t, Code&) { return finish(JsonValue::Kind::string, text); }
  bool on_number_part(Text text, Code&) { return collect(text); }
  bool on_int64(std::int64_t, Text text, Code&) { return finish(JsonValue::Kind::number, text); }
  bool on_uint64(std::uint64_t, Text text, Code&) { return finish(JsonValue::Kind::number, text); }
  bool on_double(double, Text text, Code&) { return finish(JsonValue::Kind::number, text); }
  bool on_bool(bool truth, Code&) {
    JsonValue value;
    value.kind = JsonValue::Kind::boolean;
    value.truth = truth;
    return put(std::move(value));
  }
  bool on_null(Code&) { return put({}); }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }

 private:
  bool collect(Text text) {
    part.append(text.data(), text.size());
    return true;
  }
  bool finish(JsonValue::Kind kind, Text text) {
    collect(text);
    JsonValue value;
    value.kind = kind;
    value.text = std::exchange(part, {});
    return put(std::move(value));
  }
  bool begin(JsonValue::Kind kind) {
    open.emplace_back().kind = kind;
    return true;
  }
  bool end() {
    JsonValue value = std::move(open.back());
    open.pop_back();
    return put(std::move(value));
  }
  bool put(JsonValue value) {
    if (open.empty()) {
      document = std::move(value);
    } else if (open.back().kind == JsonValue::Kind::object) {
      open.back().add(std::move(keys.back()), std::move(value));
      keys.pop_back();
    } else {
      open.back().items.push_back(std::move(value));
    }
    return true;
  }
};

json::parse_options parse_options() {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  return options;
}

class Parser : public json::basic_parser<DocumentBuilder> {
 public:
  Parser() : json::basic_parser<DocumentBuilder>(parse_options()) {}
  JsonValue take() { return std::move(handler().document); }
};

Error not_json(std::string_view text, std::size_t used, const json::error_code& failed) {
  if (failed == json::error::incomplete) {
    return {ErrorCode::invalid, "no JSON: it ends too early"};
  }
  const std::string_view before = text.substr(0, used);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n') + 1;  // 0 on the first line, as npos is the largest number
  return {ErrorCode::invalid, "no JSON: " + failed.message() + " at line " + std::to_string(line) + ", column " +
                                  std::to_string(used - begin + 1)};
}

bool same_members(const JsonValue& left, const JsonValue& right) {
  return std::all_of(left.keys.begin(), left.keys.end(), [&](const std::string& key) {
    const JsonValue* other = right.member(key);
    return other != nullptr && same_json(*left.member(key), *other);
  });
}

void break_line(std::string& out, std::size_t depth, JsonLayout layout) {
  if (layout == JsonLayout::indented) {
    out += '\n';
    out.append(2 * depth, ' ');
  }
}

void append_quoted(std::string& out, std::string_view text) {
  out += json::serialize(json::string_view(text.data(), text.size()));
}

void append(std::string& out, const JsonValue& value, JsonLayout layout, std::size_t depth) {
  using Kind = JsonValue::Kind;
  switch (value.kind) {
    case Kind::null:
      out += "null";
      return;
    case Kind::boolean:
      out += value.truth ? "true" : "false";
      return;
    case Kind::number:
      out += value.text;
      return;
    case Kind::string:
      append_quoted(out, value.text);
      return;
    case Kind::array:
    case Kind::object:
      break;
  }
  const bool object = value.kind == Kind::object;
  out += object ? '{' : '[';
  for (std::size_t index = 0; index < value.items.size(); ++index) {
    out += index > 0 ? "," : "";
    break_line(out, depth + 1, layout);
    if (object) {
      append_quoted(out, value.keys[index]);
      out += layout == JsonLayout::indented ? ": " : ":";
    }
    append(out, value.items[index], layout, depth + 1);
  }
  if (!value.items.empty()) {
    break_line(out, depth, layout);
  }
  out += object ? '}' : ']';
}

}  // namespace

JsonValue JsonValue::of_string(std::string text) {
  JsonValue value;
  value.kind = Kind::string;
  value.text = std::move(text);
  return value;
}

const JsonValue* JsonValue::member(std::string_view name) const {
  for (std::size_t index = keys.size(); index > 0; --index) {
    if (keys[index - 1] == name) {
      return &items[index - 1];
    }
  }
  return nullptr;
}

const JsonValue* JsonValue::at(std::span<const queue::PathStep> path) const {
  const JsonValue* value = this;
  for (const queue::PathStep& step : path) {
    if (const auto* key = std::get_if<std::string>(&step)) {
      value = value->member(*key);
    } else {
      const std::size_t index = std::get<std::size_t>(step);
      value = value->kind == Kind::array && index < value->items.size() ? &value->items[index] : nullptr;
    }
    if (value == nullptr) {
      return nullptr;
    }
  }
  return value;
}

void JsonValue::add(std::string key, JsonValue value) {
  kind = Kind::object;
  keys.push_back(std::move(key));
  items.push_back(std::move(value));
}

bool same_json(const JsonValue& left, const JsonValue& right) {
  if (left.kind != right.kind) {
    return false;
  }
  switch (left.kind) {
    case JsonValue::Kind::null:
      return true;
    case JsonValue::Kind::boolean:
      return left.truth == right.truth;
    case JsonValue::Kind::number:
      return left.text == right.text || compare_decimals(left.text, right.text) == 0;
    case JsonValue::Kind::string:
      return left.text == right.text;
    case JsonValue::Kind::array:
      return std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(), same_json);
    case JsonValue::Kind::object:
      break;
  }
  return same_members(left, right) && same_members(right, left);
}

Result<JsonValue> parse_json(std::string_view text) {
  Parser parser;
  json::error_code failed;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), failed);
  if (!failed && used < text.size()) {
    failed = json::error::extra_data;
  }
  if (failed) {
    return not_json(text, used, failed);
  }
  return parser.take();
}

std::string to_json(const JsonValue& value, JsonLayout layout) {
  std::string out;
  append(out, value, layout, 0);
  return out;
}

}  // namespace sluice::operate
