#include "host/queue/json_check.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <cstddef>
#include <cstdint>

namespace sluice::queue {

namespace {

namespace json = boost::json;

/// Takes every event and keeps nothing: what counts is whether the parser comes to the end. The names are the
/// library's.
struct Ignore {
  static constexpr std::size_t max_object_size = ~std::size_t{0};
  static constexpr std::size_t max_array_size = ~std::size_t{0};
  static constexpr std::size_t max_key_size = ~std::size_t{0};
  static constexpr std::size_t max_string_size = ~std::size_t{0};

  using Code = json::error_code;
  using Text = json::string_view;
  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t, Code&) { return true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t, Code&) { return true; }
  bool on_key_part(Text, std::size_t, Code&) { return true; }
  bool on_key(Text, std::size_t, Code&) { return true; }
  bool on_string_part(Text, std::size_t, Code&) { return true; }
  bool on_string(Text, std::size_t, Code&) { return true; }
  bool on_number_part(Text, Code&) { return true; }
  bool on_int64(std::int64_t, Text, Code&) { return true; }
  bool on_uint64(std::uint64_t, Text, Code&) { return true; }
  bool on_double(double, Text, Code&) { return true; }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }
};

json::parse_options parse_options() {
  json::parse_options options;
  options.max_depth = kJsonDepth;
  return options;
}

}  // namespace

class JsonChecker::Parser : public json::basic_parser<Ignore> {
 public:
  Parser() : json::basic_parser<Ignore>(parse_options()) {}
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

std::optional<std::string> json_problem(std::string_view text) { return JsonChecker().problem(text); }

std::string_view json_trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_json_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace sluice::queue
