#include "host/cli/json_text.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>

#include "host/observe/escape.hpp"

namespace sluice::cli {

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 128;
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Takes every event and keeps nothing. The names are the library's.
struct NullHandler {
  static constexpr std::size_t max_object_size = ~std::size_t{0};
  static constexpr std::size_t max_array_size = ~std::size_t{0};
  static constexpr std::size_t max_key_size = ~std::size_t{0};
  static constexpr std::size_t max_string_size = ~std::size_t{0};

  using Error = json::error_code;
  using Text = json::string_view;
  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return true; }
  bool on_object_end(std::size_t, Error&) { return true; }
  bool on_array_begin(Error&) { return true; }
  bool on_array_end(std::size_t, Error&) { return true; }
  bool on_key_part(Text, std::size_t, Error&) { return true; }
  bool on_key(Text, std::size_t, Error&) { return true; }
  bool on_string_part(Text, std::size_t, Error&) { return true; }
  bool on_string(Text, std::size_t, Error&) { return true; }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(std::int64_t, Text, Error&) { return true; }
  bool on_uint64(std::uint64_t, Text, Error&) { return true; }
  bool on_double(double, Text, Error&) { return true; }
  bool on_bool(bool, Error&) { return true; }
  bool on_null(Error&) { return true; }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }
};

json::parse_options parse_options() {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  return options;
}

bool is_json_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

/// The length of the string, number or word that `json` begins with.
std::size_t token_length(std::string_view json) {
  if (json.front() != '"') {
    return std::min(json.find_first_of(",:]} \t\r\n"), json.size());
  }
  std::size_t at = 1;
  while (json[at] != '"') {
    at += json[at] == '\\' ? 2 : 1;
  }
  return at + 1;
}

}  // namespace

void JsonText::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) {
    text_ += ',';
  }
  if (depth_ > 0) {
    new_line();
  }
  first_ = false;
}

void JsonText::new_line() {
  if (layout_ == Layout::indented) {
    text_ += '\n';
    text_.append(2 * depth_, ' ');
  }
}

void JsonText::open(char bracket) {
  before_value();
  text_ += bracket;
  ++depth_;
  first_ = true;
}

void JsonText::close(char bracket) {
  --depth_;
  if (!first_) {
    new_line();
  }
  text_ += bracket;
  first_ = false;
}

void JsonText::key(std::string_view name) {
  before_value();
  observe::append_json_string(text_, name);
  text_ += layout_ == Layout::indented ? ": " : ":";
  after_key_ = true;
}

void JsonText::value(std::string_view text) {
  before_value();
  observe::append_json_string(text_, text);
}

void JsonText::word(std::string_view text) {
  before_value();
  text_ += text;
}

void JsonText::raw(std::string_view text) {
  while (!text.empty()) {
    const char byte = text.front();
    if (byte == '{' || byte == '[') {
      open(byte);
    } else if (byte == '}' || byte == ']') {
      close(byte);
    } else if (byte == ':') {
      text_ += layout_ == Layout::indented ? ": " : ":";
      after_key_ = true;
    } else if (byte != ',' && !is_json_space(byte)) {
      const std::size_t length = token_length(text);
      word(text.substr(0, length));
      text.remove_prefix(length);
      continue;
    }
    text.remove_prefix(1);
  }
}

std::string JsonText::take_line() {
  std::string line = std::move(text_);
  line += '\n';
  *this = JsonText(layout_);
  return line;
}

class JsonChecker::Parser : public json::basic_parser<NullHandler> {
 public:
  Parser() : json::basic_parser<NullHandler>(parse_options()) {}
};

JsonChecker::JsonChecker() : parser_(std::make_unique<Parser>()) {}

JsonChecker::~JsonChecker() = default;

std::optional<std::string> JsonChecker::problem(std::string_view text) {
  parser_->reset();
  json::error_code failed;
  const std::size_t used = parser_->write_some(false, text.data(), text.size(), failed);
  if (!failed && used < text.size()) {
    failed = json::error::extra_data;
  }
  if (!failed) {
    return std::nullopt;
  }
  if (failed == json::error::incomplete) {
    return "it ends too early";
  }
  return failed.message() + " at character " + std::to_string(used + 1);
}

std::string json_string_characters(std::string_view text) {
  return std::string(json::parse(json::string_view(text.data(), text.size())).as_string());
}

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      group = group << 8U | (index < count ? static_cast<std::uint8_t>(bytes[at + index]) : 0U);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      out += index <= count ? kBase64[group >> (18 - 6 * index) & 0x3fU] : '=';
    }
  }
  return out;
}

}  // namespace sluice::cli
