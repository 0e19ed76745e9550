#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/text/decimal.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "config/config.hpp"
#include "host/operate/filter.hpp"
#include "host/operate/filter_expression.hpp"

namespace sluice::operate {

namespace {

struct FilterToken {
  enum class Kind { end, word, text, number, duration, time, symbol };

  Kind kind = Kind::end;
  std::string text;  ///< as written; of a quoted text its characters
  WallTime time{};
  Duration duration{};
  std::size_t column = 1;  ///< of its first character, from 1
};

/// Cuts a filter's text into tokens.
class FilterLexer {
 public:
  explicit FilterLexer(std::string_view text) : text_(text) {}

  /// The next token; `end` again and again at the end.
  boost::system::result<FilterToken, FilterError> next();

 private:
  using Token = boost::system::result<FilterToken, FilterError>;

  Token quoted(FilterToken token);
  Token numeral(FilterToken token);
  Token symbol(FilterToken token);
  /// Takes so many bytes and returns them.
  std::string_view take(std::size_t bytes);

  std::string_view text_;  // what is left
  std::size_t column_ = 1;
};

// Longer ones first.
constexpr std::array<std::string_view, 19> kSymbols{"==", "!=", "<>", "<=", ">=", "&&", "||", "=", "<", ">",
                                                    "~",  "!",  "(",  ")",  "[",  "]",  ",",  ".", "*"};

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

bool begins_word(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

bool continues_word(char byte) { return begins_word(byte) || is_digit(byte) || byte == '-'; }

template <typename Predicate>
std::size_t length_of(std::string_view text, Predicate belongs) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), belongs) - text.begin());
}

/// 2026-01-31, with or without a time behind it.
bool begins_time(std::string_view text) { return length_of(text, is_digit) == 4 && text.substr(4).starts_with('-'); }

/// A number with whatever is glued to it, so that 10m and 3x are one word each.
std::size_t numeral_length(std::string_view text) {
  std::size_t length = text.starts_with('-') ? 1 : 0;
  while (length < text.size()) {
    const char byte = text[length];
    const char before = length > 0 ? text[length - 1] : ' ';
    const bool sign = (byte == '+' || byte == '-') && (before == 'e' || before == 'E');
    if (!sign && !is_digit(byte) && !begins_word(byte) && byte != '.') {
      break;
    }
    ++length;
  }
  return length;
}

std::string_view FilterLexer::take(std::size_t bytes) {
  const std::string_view taken = text_.substr(0, bytes);
  text_.remove_prefix(taken.size());
  column_ += count_utf8(taken);
  return taken;
}

FilterLexer::Token FilterLexer::next() {
  take(length_of(text_, is_space));
  FilterToken token;
  token.column = column_;
  if (text_.empty()) {
    return token;
  }
  const char first = text_.front();
  if (first == '"' || first == '\'') {
    return quoted(std::move(token));
  }
  if (is_digit(first) || (first == '-' && text_.size() > 1 && is_digit(text_[1]))) {
    return numeral(std::move(token));
  }
  if (begins_word(first)) {
    token.kind = FilterToken::Kind::word;
    token.text = take(length_of(text_, continues_word));
    return token;
  }
  return symbol(std::move(token));
}

FilterLexer::Token FilterLexer::quoted(FilterToken token) {
  token.kind = FilterToken::Kind::text;
  const char quote = take(1).front();
  while (!text_.empty() && text_.front() != quote) {
    if (text_.front() != '\\') {
      token.text += take(1);
      continue;
    }
    const std::size_t column = column_;
    take(1);
    const std::string_view escaped = take(1);
    if (escaped == "n" || escaped == "t") {
      token.text += escaped == "n" ? '\n' : '\t';
    } else if (escaped == "*") {
      token.text += "\\*";  // for `like` to tell from a wildcard; elsewhere the parser takes it away
    } else if (escaped == "\\" || escaped == "\"" || escaped == "'") {
      token.text += escaped == "\\" ? std::string_view("\\\\") : escaped;
    } else {
      return FilterError(column, R"(after \ in a text there may be n, t, *, \, " or ')");
    }
  }
  if (text_.empty()) {
    return FilterError(token.column, std::string("the text has no end; close it with ") + quote);
  }
  take(1);
  return token;
}

FilterLexer::Token FilterLexer::numeral(FilterToken token) {
  if (begins_time(text_)) {
    token.kind = FilterToken::Kind::time;
    token.text = take(
        length_of(text_, [](char byte) { return continues_word(byte) || byte == ':' || byte == '.' || byte == '+'; }));
    auto time = parse_timestamp(token.text);
    time = time ? time : parse_timestamp(token.text + "T00:00:00Z");
    if (!time) {
      return FilterError(token.column, token.text + " is no time; write one such as 2026-01-31T12:00:00Z");
    }
    token.time = *time;
    return token;
  }
  token.text = take(numeral_length(text_));
  if (is_json_number(token.text)) {
    token.kind = FilterToken::Kind::number;
    return token;
  }
  const auto duration = config::parse_duration(token.text);
  if (!duration) {
    return FilterError(token.column, "\"" + token.text + "\" is neither a number nor a duration such as 10m");
  }
  token.kind = FilterToken::Kind::duration;
  token.duration = *duration;
  return token;
}

FilterLexer::Token FilterLexer::symbol(FilterToken token) {
  token.kind = FilterToken::Kind::symbol;
  for (const std::string_view known : kSymbols) {
    if (text_.starts_with(known)) {
      token.text = take(known.size());
      return token;
    }
  }
  return FilterError(token.column, "\"" + std::string(take(1)) + "\" has no meaning here");
}

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxBytes = 64 * 1024;
constexpr std::string_view kValue = "a value";

using Kind = FilterToken::Kind;
using Node = FilterExpression;

/// The text without the escapes that only `like` tells apart.
std::string plain_text(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    at += text[at] == '\\' ? 1 : 0;
    plain += text[at];
  }
  return plain;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; });
  return text;
}

std::optional<FilterComparison> comparison_of(const FilterToken& token) {
  static const std::map<std::string, FilterComparison, std::less<>> kComparisons{
      {"=", FilterComparison::equal},    {"==", FilterComparison::equal},   {"!=", FilterComparison::unequal},
      {"<>", FilterComparison::unequal}, {"<", FilterComparison::less},     {"<=", FilterComparison::at_most},
      {">", FilterComparison::greater},  {">=", FilterComparison::at_least}};
  const auto found = token.kind == Kind::symbol ? kComparisons.find(token.text) : kComparisons.end();
  return found == kComparisons.end() ? std::nullopt : std::optional(found->second);
}

/// Recursive descent. A failed step leaves the error in `error_`, which stays the first one, and its caller gives up.
class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : lexer_(text) { advance(); }

  boost::system::result<FilterExpression, FilterError> parse() {
    std::optional<Node> whole = any(0);
    if (whole && !failed() && token_.kind != Kind::end) {
      fail("expected and, or, or the end, not " + shown(token_));
    }
    if (failed() || !whole) {
      return *error_;
    }
    return std::move(*whole);
  }

 private:
  bool failed() const { return error_.has_value(); }

  std::nullopt_t fail_at(std::size_t column, std::string message) {
    if (!error_) {
      error_.emplace(column, std::move(message));
    }
    return std::nullopt;
  }
  std::nullopt_t fail(std::string message) { return fail_at(token_.column, std::move(message)); }

  static std::string shown(const FilterToken& token) {
    if (token.kind == Kind::end) {
      return "the end";
    }
    return token.kind == Kind::text ? "a text" : "\"" + token.text + "\"";
  }

  void advance() {
    before_ = std::exchange(token_, {});
    auto next = lexer_.next();
    if (next.has_error()) {
      token_.column = next.error().column();
      fail_at(next.error().column(), next.error().message());
      return;
    }
    token_ = std::move(*next);
  }

  bool at_symbol(std::string_view symbol) const { return token_.kind == Kind::symbol && token_.text == symbol; }
  bool at_word(std::string_view word) const { return token_.kind == Kind::word && lower(token_.text) == word; }

  bool take_symbol(std::string_view symbol) {
    if (failed() || !at_symbol(symbol)) {
      return false;
    }
    advance();
    return true;
  }
  bool take_word(std::string_view word, std::string_view symbol = {}) {
    if (failed() || !(at_word(word) || (!symbol.empty() && at_symbol(symbol)))) {
      return false;
    }
    advance();
    return true;
  }
  bool need_symbol(std::string_view symbol, std::string_view after) {
    if (take_symbol(symbol)) {
      return true;
    }
    fail("expected \"" + std::string(symbol) + "\" " + std::string(after));
    return false;
  }

  std::optional<Node> any(std::size_t depth) { return chain(depth, Node::Kind::any_of); }

  std::optional<Node> chain(std::size_t depth, Node::Kind kind) {
    const bool is_any = kind == Node::Kind::any_of;
    Node node;
    node.kind = kind;
    do {
      auto part = is_any ? chain(depth, Node::Kind::all_of) : term(depth);
      if (!part) {
        return std::nullopt;
      }
      node.children.push_back(std::move(*part));
    } while (is_any ? take_word("or", "||") : take_word("and", "&&"));
    if (failed()) {
      return std::nullopt;
    }
    return node.children.size() == 1 ? std::move(node.children.front()) : std::move(node);
  }

  static Node negated(Node child) {
    Node node;
    node.kind = Node::Kind::negation;
    node.children.push_back(std::move(child));
    return node;
  }

  std::optional<Node> term(std::size_t depth) {
    if (depth >= kMaxDepth) {
      return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (take_word("not", "!")) {
      auto child = term(depth + 1);
      return child ? std::optional(negated(std::move(*child))) : std::nullopt;
    }
    if (take_symbol("(")) {
      auto inner = any(depth + 1);
      return inner && need_symbol(")", "to close the parenthesis") ? std::move(inner) : std::nullopt;
    }
    if (take_word("exists")) {
      return exists();
    }
    return comparison();
  }

  std::optional<Node> exists() {
    if (!need_symbol("(", "after exists")) {
      return std::nullopt;
    }
    if (token_.kind != Kind::word) {
      return fail("expected a field, not " + shown(token_));
    }
    auto place = path(false);
    if (!place || !need_symbol(")", "after the field")) {
      return std::nullopt;
    }
    Node node;
    node.kind = Node::Kind::exists;
    node.left = std::move(*place);
    return node;
  }

  std::optional<Node> comparison() {
    const std::size_t column = token_.column;
    auto left = operand("a condition");
    if (!left) {
      return std::nullopt;
    }
    Node node;
    node.left = std::move(*left);
    if (const auto operation = comparison_of(token_)) {
      node.kind = Node::Kind::compare;
      node.comparison = *operation;
      advance();
      return with_right(std::move(node), column);
    }
    const bool negative = take_word("not");
    std::optional<Node> whole;
    if (take_word("like", "~")) {
      whole = pattern(std::move(node));
    } else if (take_word("in")) {
      whole = list(std::move(node), column);
    } else {
      const std::string wanted = negative ? "expected like or in, not " : "expected a comparison such as = or >, not ";
      return fail(wanted + shown(token_));
    }
    return whole && negative ? std::optional(negated(std::move(*whole))) : std::move(whole);
  }

  std::optional<Node> with_right(Node node, std::size_t left_column) {
    const std::size_t column = token_.column;
    auto right = operand(kValue);
    if (!right || !fit(node.left, *right, column) || !fit(*right, node.left, left_column)) {
      return std::nullopt;
    }
    node.right.push_back(std::move(*right));
    return node;
  }

  std::optional<Node> pattern(Node node) {
    if (token_.kind != Kind::text) {
      return fail("expected a text in quotes after like, not " + shown(token_));
    }
    node.kind = Node::Kind::like;
    node.right.emplace_back(FilterValue(token_.text));
    advance();
    return failed() ? std::nullopt : std::optional(std::move(node));
  }

  std::optional<Node> list(Node node, std::size_t left_column) {
    node.kind = Node::Kind::one_of;
    if (!need_symbol("(", "after in")) {
      return std::nullopt;
    }
    do {
      auto with = with_right(std::move(node), left_column);
      if (!with) {
        return std::nullopt;
      }
      node = std::move(*with);
    } while (take_symbol(","));
    return need_symbol(")", "or \",\" after the value") ? std::optional(std::move(node)) : std::nullopt;
  }

  /// Fits `right`, if it is a literal, to the field that `left` is.
  bool fit(const FilterOperand& left, FilterOperand& right, std::size_t column) {
    const auto* place = std::get_if<FilterPath>(&left);
    auto* literal = std::get_if<FilterValue>(&right);
    if (place != nullptr && literal != nullptr) {
      if (auto wrong = fit_literal(*place->field, *literal)) {
        fail_at(column, std::move(*wrong));
      }
    }
    return !failed();
  }

  std::optional<FilterOperand> operand(std::string_view wanted) {
    if (failed()) {
      return std::nullopt;
    }
    std::optional<FilterValue> literal;
    if (token_.kind == Kind::text) {
      literal = plain_text(token_.text);
    } else if (token_.kind == Kind::number) {
      literal = FilterNumber{token_.text};
    } else if (token_.kind == Kind::duration) {
      literal = token_.duration;
    } else if (token_.kind == Kind::time) {
      literal = token_.time;
    } else if (at_word("true") || at_word("false")) {
      literal = at_word("true");
    } else if (at_word("null")) {
      literal = FilterNull{};
    } else if (token_.kind == Kind::word && !is_keyword(token_)) {
      auto place = path(wanted == kValue);
      return place ? std::optional<FilterOperand>(std::move(*place)) : std::nullopt;
    } else {
      return fail("expected " + std::string(wanted) + after());
    }
    advance();
    return failed() ? std::nullopt : std::optional<FilterOperand>(std::move(*literal));
  }

  static bool is_keyword(const FilterToken& token) {
    const std::string word = lower(token.text);
    return word == "and" || word == "or" || word == "not" || word == "in" || word == "like" || word == "exists";
  }

  std::string after() const { return before_.kind == Kind::end ? "" : " after " + shown(before_); }

  /// `as_value`: where a text may have been meant.
  std::optional<FilterPath> path(bool as_value) {
    const FilterField* field = find_filter_field(token_.text);
    if (field == nullptr) {
      return fail(as_value ? "\"" + token_.text + "\" is no field; a text stands in quotes: \"" + token_.text + "\""
                           : unknown_filter_field(token_.text));
    }
    FilterPath place{field};
    advance();
    while (!failed() && (at_symbol(".") || at_symbol("["))) {
      const std::size_t column = token_.column;
      auto step = take_symbol(".") ? named_step() : bracketed_step();
      if (!step || !descend(place, std::move(*step), column)) {
        return std::nullopt;
      }
    }
    if (!failed() && place.field->type == FilterField::Type::attributes && place.steps.empty() && !at_symbol(")")) {
      return fail("attributes needs a name: attributes.NAME");
    }
    return failed() ? std::nullopt : std::optional(std::move(place));
  }

  std::optional<queue::PathStep> named_step() {
    if (token_.kind != Kind::word) {
      return fail("expected a name after \".\"; an element is [0], and any other name [\"NAME\"]");
    }
    queue::PathStep step = token_.text;
    advance();
    return step;
  }

  std::optional<queue::PathStep> bracketed_step() {
    advance();
    std::optional<queue::PathStep> step;
    std::size_t index = 0;
    if (token_.kind == Kind::text) {
      step = plain_text(token_.text);
    } else if (token_.kind == Kind::number) {
      const char* const end = token_.text.data() + token_.text.size();
      const auto [rest, code] = std::from_chars(token_.text.data(), end, index);
      if (code == std::errc() && rest == end) {
        step = index;
      }
    }
    if (!step) {
      return fail("expected an index such as 0, or a name in quotes, after \"[\"");
    }
    advance();
    return need_symbol("]", "after the index") ? std::move(step) : std::nullopt;
  }

  bool descend(FilterPath& place, queue::PathStep step, std::size_t column) {
    const auto* name = std::get_if<std::string>(&step);
    if (place.field->type == FilterField::Type::failure && name != nullptr) {
      const FilterField* field = find_failure_field(*name);
      if (field == nullptr) {
        fail_at(column, unknown_failure_field(*name));
        return false;
      }
      place.field = field;
      return true;
    }
    const bool goes_deeper =
        place.field->type == FilterField::Type::data ||
        (place.field->type == FilterField::Type::attributes && place.steps.empty() && name != nullptr);
    if (!goes_deeper || place.steps.size() >= kMaxDepth) {
      fail_at(column, goes_deeper ? "the path is too long" : "nothing lies below this field");
      return false;
    }
    place.steps.push_back(std::move(step));
    return true;
  }

  FilterLexer lexer_;
  FilterToken token_;
  FilterToken before_;
  std::optional<FilterError> error_;
};

}  // namespace

boost::system::result<FilterExpression, FilterError> parse_filter_expression(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return FilterError(1, "it is longer than " + std::to_string(kMaxBytes / 1024) + " KiB");
  }
  return FilterParser(text).parse();
}

}  // namespace sluice::operate
