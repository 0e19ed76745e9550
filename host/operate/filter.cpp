#include "host/operate/filter.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "base/ranges.hpp"
#include "base/text/decimal.hpp"
#include "base/text/joined.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "config/config.hpp"
#include "host/operate/describe.hpp"
#include "host/operate/json_value.hpp"
#include "host/operate/record_json.hpp"
#include "host/queue/error_groups.hpp"

namespace sluice::operate {

namespace {

using queue::StoredMessage;

/// A number in JSON's spelling.
struct Number {
  std::string text;
};

/// An object or an array: there, and comparable with nothing.
struct Composite {};

using Value = std::variant<std::monostate, bool, Number, std::string, WallTime, Duration, Composite>;
using Found = std::optional<Value>;

/// A field of a message.
struct Field {
  enum class Type { text, state, half, priority, number, time, span, failure, attributes, data };

  std::string_view name;
  Type type;
  /// What a message has there; nothing when it does not have it. Of attributes and data their parts are asked for.
  Found (*of)(const StoredMessage& message, WallTime now) = nullptr;
};
using Type = Field::Type;

/// A place in a message.
struct Path {
  const Field* field = nullptr;
  std::vector<queue::PathStep> steps{};  ///< below attributes and data

  bool is_content() const {
    return field->type == Type::data || field->type == Type::attributes || field->name == "content_type" ||
           field->name == "group";
  }
};

using Operand = std::variant<Path, Value>;

Value number(std::integral auto count) { return Number{std::to_string(count)}; }

Found unless_empty(const std::string& text) { return text.empty() ? std::nullopt : Found(text); }

/// Some stores do not know every time.
Found if_known(WallTime time) { return time == WallTime{} ? std::nullopt : Found(time); }

/// What `of` finds in a failure, where there is one.
template <auto of>
Found failure(const StoredMessage& stored, WallTime) {
  return stored.failure.empty() ? std::nullopt : Found(of(stored.failure));
}

constexpr auto kError = [](const queue::Failure& failure) -> Value { return failure.error; };

constexpr std::array kFields{
    Field{"id", Type::text, [](const StoredMessage& of, WallTime) -> Found { return of.message.id; }},
    Field{"receive_count", Type::number,
          [](const StoredMessage& of, WallTime) -> Found { return number(receives_of(of)); }},
    Field{"queue_type", Type::half,
          [](const StoredMessage& of, WallTime) -> Found { return std::string(to_string(of.half)); }},
    Field{"version", Type::number, [](const StoredMessage& of, WallTime) -> Found { return number(of.version); }},
    Field{"state", Type::state,
          [](const StoredMessage& of, WallTime now) -> Found { return std::string(to_string(of.state(now))); }},
    Field{"age", Type::span,
          [](const StoredMessage& of, WallTime now) {
            return of.created_at == WallTime{} ? std::nullopt : Found(now - of.created_at);
          }},
    Field{"created_at", Type::time, [](const StoredMessage& of, WallTime) { return if_known(of.created_at); }},
    Field{"updated_at", Type::time, [](const StoredMessage& of, WallTime) { return if_known(of.updated_at); }},
    Field{"sent_at", Type::time, [](const StoredMessage& of, WallTime) { return if_known(of.message.sent_at); }},
    Field{"received_at", Type::time, [](const StoredMessage& of, WallTime) -> Found { return of.received_at; }},
    Field{"invisible_until_at", Type::time,
          [](const StoredMessage& of, WallTime) -> Found { return of.invisible_until; }},
    Field{"content_type", Type::text,
          [](const StoredMessage& of, WallTime) -> Found { return of.message.content_type; }},
    Field{"group", Type::text, [](const StoredMessage& of, WallTime) { return unless_empty(of.message.group); }},
    Field{"priority", Type::priority,
          [](const StoredMessage& of, WallTime) -> Found { return std::string(to_string(of.message.priority)); }},
    Field{"error", Type::text, failure<kError>},
    Field{"failure", Type::failure, failure<[](const queue::Failure&) -> Value { return Composite{}; }>},
    Field{"attributes", Type::attributes},
    Field{"data", Type::data},
};

constexpr std::array kFailureFields{
    Field{"error", Type::text, failure<kError>},
    Field{"fingerprint", Type::text,
          failure<[](const queue::Failure& failure) -> Value { return queue::fingerprint_of(failure.error); }>},
    Field{"handler", Type::text, failure<[](const queue::Failure& failure) -> Value { return failure.handler; }>},
    Field{"host", Type::text, failure<[](const queue::Failure& failure) -> Value { return failure.host; }>},
    Field{"attempts", Type::number, failure<[](const queue::Failure& failure) { return number(failure.attempts); }>},
    Field{"failed_at", Type::time, failure<[](const queue::Failure& failure) { return if_known(failure.failed_at); }>},
};

const Field* find(std::span<const Field> fields, std::string_view name) {
  return find_where(fields, [name](const Field& field) { return field.name == name; });
}

/// `unknown field "x"; did you mean y?`
std::string unknown(std::span<const Field> fields, std::string_view name, std::string_view what) {
  const auto names = mapped(fields, [](const Field& field) { return std::string(field.name); });
  const auto meant = config::nearest(std::string(name), names);
  return std::string(what) + " \"" + std::string(name) + "\"; " +
         (meant ? "did you mean " + *meant + "?" : "there are " + joined(names) + "; a text stands in quotes");
}

/// A day alone is its beginning.
std::optional<WallTime> read_time(const std::string& text) {
  const auto time = parse_timestamp(text);
  return time ? time : parse_timestamp(text + "T00:00:00Z");
}

std::optional<std::string> fit_word(std::string_view field, const Value& literal,
                                    const std::vector<std::string>& words) {
  const auto* text = std::get_if<std::string>(&literal);
  if (text != nullptr && contains(words, *text)) {
    return std::nullopt;
  }
  const std::string known = joined(mapped(words, [](const std::string& word) { return "\"" + word + "\""; }));
  const auto meant = text != nullptr ? config::nearest(*text, words) : std::nullopt;
  return std::string(field) + " is one of " + known + (meant ? "; did you mean \"" + *meant + "\"?" : "");
}

/// Fits a literal to the field that it is compared with: text becomes a time where the field is one. What cannot be
/// compared is an error, said in one line.
std::optional<std::string> fit_literal(const Field& field, Value& literal) {
  const auto unless = [&field](bool fits, const char* what) {
    return fits ? std::nullopt : std::optional(std::string(field.name) + " is " + what);
  };
  switch (field.type) {
    case Type::text:
      return unless(std::holds_alternative<std::string>(literal), "text; write it in quotes");
    case Type::number:
      return unless(std::holds_alternative<Number>(literal), "a number; write one such as 3");
    case Type::span:
      return unless(std::holds_alternative<Duration>(literal), "a duration; write one such as 10m");
    case Type::time: {
      const auto* text = std::get_if<std::string>(&literal);
      if (const auto time = text != nullptr ? read_time(*text) : std::nullopt) {
        literal = *time;
      }
      return unless(std::holds_alternative<WallTime>(literal), "a time; write one such as 2026-01-31T12:00:00Z");
    }
    case Type::state:
      return fit_word(field.name, literal, {"ready", "in_flight", "delayed"});
    case Type::half:
      return fit_word(field.name, literal, {"STANDARD", "DLQ"});
    case Type::priority:
      return fit_word(field.name, literal, {"critical", "high", "normal", "low"});
    case Type::failure:
      return "a failure as a whole cannot be compared; write failure.error, or exists(failure)";
    case Type::attributes:
    case Type::data:
      break;
  }
  return std::nullopt;
}

Value value_of(const JsonValue& json) {
  switch (json.kind) {
    case JsonValue::Kind::null:
    case JsonValue::Kind::nothing:
      return {};
    case JsonValue::Kind::boolean:
      return json.truth;
    case JsonValue::Kind::number:
      return Number{json.text};
    case JsonValue::Kind::string:
      return json.text;
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  return Composite{};
}

}  // namespace

/// The body is read when it is first asked for.
class FilterView {
 public:
  FilterView(const StoredMessage& stored, WallTime now) : stored_(stored), now_(now) {}

  Found find(const Operand& operand) {
    const auto* literal = std::get_if<Value>(&operand);
    return literal != nullptr ? *literal : find(std::get<Path>(operand));
  }

 private:
  Found find(const Path& path) {
    return path.field->type == Type::attributes ? attribute(path)
           : path.field->type == Type::data     ? body(path)
                                                : path.field->of(stored_, now_);
  }

  Found attribute(const Path& path) const {
    const queue::Attributes& attributes = stored_.message.attributes;
    if (path.steps.empty()) {
      return attributes.empty() ? std::nullopt : Found(Composite{});
    }
    const auto found = attributes.find(std::get<std::string>(path.steps.front()));
    return found == attributes.end() ? std::nullopt : Found(found->second);
  }

  /// Of a message that is not JSON, `data` is its text.
  Found body(const Path& path) {
    if (!body_) {
      body_ = json_or_text(stored_.message);
    }
    const JsonValue* found = body_->at(path.steps);
    return found == nullptr ? std::nullopt : Found(value_of(*found));
  }

  const StoredMessage& stored_;
  const WallTime now_;
  std::optional<JsonValue> body_;
};

namespace {

/// Values of one kind.
struct Ordering {
  template <typename T>
  std::partial_ordering operator()(const T& left, const T& right) const {
    return left <=> right;
  }
  std::partial_ordering operator()(const Number& left, const Number& right) const {
    return compare_decimals(left.text, right.text);
  }
  std::partial_ordering operator()(bool left, bool right) const {
    return left == right ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
  }
  // Text in a body may be a time.
  std::partial_ordering operator()(const std::string& left, WallTime right) const {
    const auto time = parse_timestamp(left);
    return time ? *time <=> right : std::partial_ordering::unordered;
  }
  std::partial_ordering operator()(WallTime left, const std::string& right) const { return 0 <=> (*this)(right, left); }
  std::partial_ordering operator()(const Composite&, const Composite&) const {
    return std::partial_ordering::unordered;
  }
  template <typename Left, typename Right>
  std::partial_ordering operator()(const Left&, const Right&) const {
    return std::partial_ordering::unordered;
  }
};

using Comparison = bool (*)(std::partial_ordering);
constexpr Comparison kEqual = [](std::partial_ordering order) { return order == 0; };
constexpr Comparison kGreater = [](std::partial_ordering order) { return order > 0; };

/// The texts between the wildcards of a pattern, without its escapes.
std::vector<std::string> pieces_of(std::string_view pattern) {
  std::vector<std::string> pieces(1);
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] == '*') {
      pieces.emplace_back();
      continue;
    }
    at += pattern[at] == '\\' && at + 1 < pattern.size() ? 1 : 0;
    pieces.back() += pattern[at];
  }
  return pieces;
}

/// Whether the text has these pieces in this order, the first at its beginning and the last at its end.
bool is_like(std::string_view text, const std::vector<std::string>& pieces) {
  const std::string& first = pieces.front();
  const std::string& last = pieces.back();
  if (pieces.size() == 1) {
    return text == first;
  }
  if (text.size() < first.size() + last.size() || !text.starts_with(first) || !text.ends_with(last)) {
    return false;
  }
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  return std::all_of(pieces.begin() + 1, pieces.end() - 1, [&text](const std::string& piece) {
    const std::size_t at = text.find(piece);
    text.remove_prefix(at == std::string_view::npos ? 0 : at + piece.size());
    return at != std::string_view::npos;
  });
}

// Conditions.

using Condition = FilterCondition;

/// With one of those on the right.
Condition comparison(Operand left, Comparison how, std::vector<Operand> right) {
  return [left = std::move(left), how, right = std::move(right)](FilterView& view) {
    const Found value = view.find(left);
    return value && std::any_of(right.begin(), right.end(), [&](const Operand& operand) {
             const Found other = view.find(operand);
             return other && how(std::visit(Ordering(), *value, *other));
           });
  };
}

Condition likeness(Operand left, std::string_view pattern) {
  return [left = std::move(left), pieces = pieces_of(pattern)](FilterView& view) {
    const Found value = view.find(left);
    const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
    return text != nullptr && is_like(*text, pieces);
  };
}

Condition negation(Condition inner) {
  return [inner = std::move(inner)](FilterView& view) { return !inner(view); };
}

Condition all_of(std::vector<Condition> parts) {
  return [parts = std::move(parts)](FilterView& view) {
    return std::all_of(parts.begin(), parts.end(), [&view](const Condition& part) { return part(view); });
  };
}

Condition any_of(std::vector<Condition> parts) {
  return [parts = std::move(parts)](FilterView& view) {
    return std::any_of(parts.begin(), parts.end(), [&view](const Condition& part) { return part(view); });
  };
}

struct Token {
  /// `wrong`: no token can begin there; its text says why.
  enum class Kind { end, word, text, literal, symbol, wrong };

  Kind kind = Kind::end;
  std::string text;        ///< as written; of a quoted text its characters
  Value value;             ///< of a literal: a number, a duration or a time
  std::size_t column = 1;  ///< of its first character, from 1
};
using Kind = Token::Kind;

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

/// Cuts a filter's text into tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token; `end` again and again at the end.
  Token next() {
    take(length_of(text_, is_space));
    const std::size_t column = column_;
    if (text_.empty()) {
      return {.column = column};
    }
    const char first = text_.front();
    if (first == '"' || first == '\'') {
      return quoted(column);
    }
    if (is_digit(first) || (first == '-' && text_.size() > 1 && is_digit(text_[1]))) {
      return numeral(column);
    }
    if (begins_word(first)) {
      return {.kind = Kind::word, .text = std::string(take(length_of(text_, continues_word))), .column = column};
    }
    for (const std::string_view known : kSymbols) {
      if (text_.starts_with(known)) {
        return {.kind = Kind::symbol, .text = std::string(take(known.size())), .column = column};
      }
    }
    return wrong(column, "\"" + std::string(take(1)) + "\" has no meaning here");
  }

 private:
  static Token wrong(std::size_t column, std::string why) {
    return {.kind = Kind::wrong, .text = std::move(why), .column = column};
  }

  Token quoted(std::size_t begin) {
    std::string text;
    const char quote = take(1).front();
    while (!text_.empty() && text_.front() != quote) {
      if (text_.front() != '\\') {
        text += take(1);
        continue;
      }
      const std::size_t column = column_;
      take(1);
      const std::string_view escaped = take(1);
      if (escaped == "n" || escaped == "t") {
        text += escaped == "n" ? '\n' : '\t';
      } else if (escaped == "*") {
        text += "\\*";  // for `like` to tell from a wildcard; elsewhere the parser takes it away
      } else if (escaped == "\\" || escaped == "\"" || escaped == "'") {
        text += escaped == "\\" ? std::string_view("\\\\") : escaped;
      } else {
        return wrong(column, R"(after \ in a text there may be n, t, *, \, " or ')");
      }
    }
    if (text_.empty()) {
      return wrong(begin, std::string("the text has no end; close it with ") + quote);
    }
    take(1);
    return {.kind = Kind::text, .text = std::move(text), .column = begin};
  }

  Token numeral(std::size_t column) {
    Token token{.kind = Kind::literal, .column = column};
    // 2026-01-31, with or without a time behind it.
    if (length_of(text_, is_digit) == 4 && text_.substr(4).starts_with('-')) {
      token.text = take(length_of(
          text_, [](char byte) { return continues_word(byte) || byte == ':' || byte == '.' || byte == '+'; }));
      const auto time = read_time(token.text);
      if (!time) {
        return wrong(column, token.text + " is no time; write one such as 2026-01-31T12:00:00Z");
      }
      token.value = *time;
      return token;
    }
    token.text = take(numeral_length(text_));
    if (is_json_number(token.text)) {
      token.value = Number{token.text};
      return token;
    }
    const auto duration = config::parse_duration(token.text);
    if (!duration) {
      return wrong(column, "\"" + token.text + "\" is neither a number nor a duration such as 10m");
    }
    token.value = *duration;
    return token;
  }

  /// Takes so many bytes and returns them.
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = text_.substr(0, bytes);
    text_.remove_prefix(taken.size());
    column_ += count_utf8(taken);
    return taken;
  }

  std::string_view text_;  // what is left
  std::size_t column_ = 1;
};

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxBytes = 64 * 1024;
constexpr std::string_view kValue = "a value";

/// The text without the escapes that only `like` tells apart.
std::string plain_text(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    at += text[at] == '\\' ? 1 : 0;
    plain += text[at];
  }
  return plain;
}

/// Null for what is no comparison.
Comparison comparison_of(const Token& token) {
  constexpr Comparison kUnequal = [](std::partial_ordering order) { return order != 0; };
  static const std::map<std::string, Comparison, std::less<>> kComparisons{
      {"=", kEqual},
      {"==", kEqual},
      {"!=", kUnequal},
      {"<>", kUnequal},
      {"<", [](std::partial_ordering order) { return order < 0; }},
      {"<=", [](std::partial_ordering order) { return order <= 0; }},
      {">", kGreater},
      {">=", [](std::partial_ordering order) { return order >= 0; }}};
  const auto found = token.kind == Kind::symbol ? kComparisons.find(token.text) : kComparisons.end();
  return found == kComparisons.end() ? nullptr : found->second;
}

template <typename T>
using Parsed = boost::system::result<T, FilterError>;

/// Reads, by recursive descent,
///
///     any        = all { "or" all }
///     all        = term { "and" term }
///     term       = "not" term | "(" any ")" | "exists" "(" path ")" | comparison
///     comparison = operand ( operator operand | ["not"] "like" text | ["not"] "in" "(" operand { "," operand } ")" )
///     operand    = path | text | number | duration | time | "true" | "false" | "null"
///     path       = field { "." name | "[" ( index | text ) "]" }
///
/// with at most 64 levels and 64 KiB. The error is the first one.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) { advance(); }

  Parsed<Condition> parse() {
    SLUICE_TRY(whole, any(0));
    if (token_.kind != Kind::end) {
      return fail("expected and, or, or the end, not " + shown(token_));
    }
    return whole;
  }

  /// Whether what was read looks at what its sender has put into a message.
  bool reads_content() const { return reads_content_; }

 private:
  FilterError fail(const std::string& message) const {
    return {token_.column, token_.kind == Kind::wrong ? token_.text : message};
  }

  static std::string shown(const Token& token) {
    if (token.kind == Kind::end) {
      return "the end";
    }
    return token.kind == Kind::text ? "a text" : "\"" + token.text + "\"";
  }

  void advance() { before_ = std::exchange(token_, lexer_.next()); }

  bool at_symbol(std::string_view symbol) const { return token_.kind == Kind::symbol && token_.text == symbol; }
  bool at_word(std::string_view word) const { return token_.kind == Kind::word && lower_case(token_.text) == word; }

  bool take_if(bool there) {
    if (there) {
      advance();
    }
    return there;
  }
  bool take_symbol(std::string_view symbol) { return take_if(at_symbol(symbol)); }
  bool take_word(std::string_view word) { return take_if(at_word(word)); }
  bool take_word(std::string_view word, std::string_view symbol) { return take_if(at_word(word) || at_symbol(symbol)); }

  Parsed<void> need_symbol(std::string_view symbol, std::string_view after) {
    if (!take_symbol(symbol)) {
      return fail("expected \"" + std::string(symbol) + "\" " + std::string(after));
    }
    return {};
  }

  Parsed<Condition> any(std::size_t depth) {
    std::vector<Condition> parts;
    do {
      SLUICE_TRY(part, all(depth));
      parts.push_back(std::move(*part));
    } while (take_word("or", "||"));
    return parts.size() == 1 ? std::move(parts.front()) : any_of(std::move(parts));
  }

  Parsed<Condition> all(std::size_t depth) {
    std::vector<Condition> parts;
    do {
      SLUICE_TRY(part, term(depth));
      parts.push_back(std::move(*part));
    } while (take_word("and", "&&"));
    return parts.size() == 1 ? std::move(parts.front()) : all_of(std::move(parts));
  }

  Parsed<Condition> term(std::size_t depth) {
    if (depth >= kMaxDepth) {
      return fail("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    if (take_word("not", "!")) {
      SLUICE_TRY(inner, term(depth + 1));
      return negation(std::move(*inner));
    }
    if (take_symbol("(")) {
      SLUICE_TRY(inner, any(depth + 1));
      SLUICE_PASS_ON(need_symbol(")", "to close the parenthesis"));
      return inner;
    }
    return take_word("exists") ? existence() : compared();
  }

  Parsed<Condition> existence() {
    SLUICE_PASS_ON(need_symbol("(", "after exists"));
    if (token_.kind != Kind::word) {
      return fail("expected a field, not " + shown(token_));
    }
    SLUICE_TRY(place, path(false));
    SLUICE_PASS_ON(need_symbol(")", "after the field"));
    return Condition([place = Operand(std::move(*place))](FilterView& view) { return view.find(place).has_value(); });
  }

  Parsed<Condition> compared() {
    const std::size_t column = token_.column;
    SLUICE_TRY(left, operand("a condition"));
    if (const Comparison how = comparison_of(token_)) {
      advance();
      std::vector<Operand> right;
      SLUICE_PASS_ON(add_right(right, *left, column));
      return comparison(std::move(*left), how, std::move(right));
    }
    const bool negative = take_word("not");
    if (!at_word("like") && !at_symbol("~") && !at_word("in")) {
      return fail((negative ? "expected like or in, not " : "expected a comparison such as = or >, not ") +
                  shown(token_));
    }
    SLUICE_TRY(whole, take_word("in") ? list(std::move(*left), column) : pattern(std::move(*left)));
    return negative ? negation(std::move(*whole)) : std::move(*whole);
  }

  /// Adds what stands on the right of an operator.
  Parsed<void> add_right(std::vector<Operand>& all, Operand& left, std::size_t left_column) {
    const std::size_t column = token_.column;
    SLUICE_TRY(right, operand(kValue));
    SLUICE_PASS_ON(fit(left, *right, column));
    SLUICE_PASS_ON(fit(*right, left, left_column));
    all.push_back(std::move(*right));
    return {};
  }

  Parsed<Condition> pattern(Operand left) {
    advance();
    if (token_.kind != Kind::text) {
      return fail("expected a text in quotes after like, not " + shown(token_));
    }
    advance();
    return likeness(std::move(left), before_.text);
  }

  Parsed<Condition> list(Operand left, std::size_t left_column) {
    SLUICE_PASS_ON(need_symbol("(", "after in"));
    std::vector<Operand> right;
    do {
      SLUICE_PASS_ON(add_right(right, left, left_column));
    } while (take_symbol(","));
    SLUICE_PASS_ON(need_symbol(")", "or \",\" after the value"));
    return comparison(std::move(left), kEqual, std::move(right));
  }

  /// Fits `right`, if it is a literal, to the field that `left` is.
  static Parsed<void> fit(const Operand& left, Operand& right, std::size_t column) {
    const auto* place = std::get_if<Path>(&left);
    auto* literal = std::get_if<Value>(&right);
    if (place != nullptr && literal != nullptr) {
      if (auto wrong = fit_literal(*place->field, *literal)) {
        return FilterError{column, std::move(*wrong)};
      }
    }
    return {};
  }

  Parsed<Operand> operand(std::string_view wanted) {
    if (token_.kind == Kind::text) {
      advance();
      return Operand(Value(plain_text(before_.text)));
    }
    if (token_.kind == Kind::literal) {
      advance();
      return Operand(before_.value);
    }
    if (take_word("true") || take_word("false")) {
      return Operand(Value(lower_case(before_.text) == "true"));
    }
    if (take_word("null")) {
      return Operand(Value());
    }
    if (token_.kind != Kind::word || is_keyword(token_)) {
      return fail("expected " + std::string(wanted) + (before_.kind == Kind::end ? "" : " after " + shown(before_)));
    }
    SLUICE_TRY(place, path(wanted == kValue));
    return Operand(std::move(*place));
  }

  static bool is_keyword(const Token& token) {
    const std::string word = lower_case(token.text);
    return word == "and" || word == "or" || word == "not" || word == "in" || word == "like" || word == "exists";
  }

  /// `as_value`: where a text may have been meant.
  Parsed<Path> path(bool as_value) {
    // DynamoMQ's word for it.
    Path place{find(kFields, token_.text == "status" ? "state" : token_.text)};
    if (place.field == nullptr) {
      return fail(as_value ? "\"" + token_.text + "\" is no field; a text stands in quotes: \"" + token_.text + "\""
                           : unknown(kFields, token_.text, "unknown field"));
    }
    advance();
    while (at_symbol(".") || at_symbol("[")) {
      const std::size_t column = token_.column;
      advance();
      SLUICE_TRY(step, before_.text == "." ? named_step() : bracketed_step());
      SLUICE_PASS_ON(descend(place, std::move(*step), column));
    }
    if (place.field->type == Type::attributes && place.steps.empty() && !at_symbol(")")) {
      return fail("attributes needs a name: attributes.NAME");
    }
    reads_content_ = reads_content_ || place.is_content();
    return place;
  }

  Parsed<queue::PathStep> named_step() {
    if (token_.kind != Kind::word) {
      return fail("expected a name after \".\"; an element is [0], and any other name [\"NAME\"]");
    }
    advance();
    return queue::PathStep(before_.text);
  }

  Parsed<queue::PathStep> bracketed_step() {
    std::optional<queue::PathStep> step;
    if (token_.kind == Kind::text) {
      step = plain_text(token_.text);
    } else if (const auto index = parse_number<std::size_t>(token_.text); index && token_.kind == Kind::literal) {
      step = *index;
    }
    if (!step) {
      return fail("expected an index such as 0, or a name in quotes, after \"[\"");
    }
    advance();
    SLUICE_PASS_ON(need_symbol("]", "after the index"));
    return std::move(*step);
  }

  static Parsed<void> descend(Path& place, queue::PathStep step, std::size_t column) {
    const auto* name = std::get_if<std::string>(&step);
    if (place.field->type == Type::failure && name != nullptr) {
      place.field = find(kFailureFields, *name);
      return place.field != nullptr ? Parsed<void>()
                                    : FilterError{column, unknown(kFailureFields, *name, "a failure has no field")};
    }
    const bool goes_deeper = place.field->type == Type::data ||
                             (place.field->type == Type::attributes && place.steps.empty() && name != nullptr);
    if (!goes_deeper || place.steps.size() >= kMaxDepth) {
      return FilterError{column, goes_deeper ? "the path is too long" : "nothing lies below this field"};
    }
    place.steps.push_back(std::move(step));
    return {};
  }

  Lexer lexer_;
  Token token_;
  Token before_;
  bool reads_content_ = false;
};

}  // namespace

Parsed<Filter> Filter::parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return FilterError{1, "it is longer than " + std::to_string(kMaxBytes / 1024) + " KiB"};
  }
  Parser parser(text);
  SLUICE_TRY(condition, parser.parse());
  return Filter(std::move(*condition), parser.reads_content());
}

Filter Filter::older_than(Duration age) {
  return {comparison(Path{find(kFields, "age")}, kGreater, {Value(age)}), false};
}

Filter Filter::error_like(std::string_view text) {
  return {likeness(Path{find(kFields, "error")}, "*" + std::string(text) + "*"), false};
}

Filter Filter::error_of(std::string_view cause) {
  const Value fingerprint = queue::is_fingerprint(cause) ? std::string(cause) : queue::fingerprint_of(cause);
  return {comparison(Path{find(kFailureFields, "fingerprint")}, kEqual, {fingerprint}), false};
}

Filter Filter::also(const Filter& other) const {
  if (empty() || other.empty()) {
    return empty() ? other : *this;
  }
  return {all_of({condition_, other.condition_}), reads_content_ || other.reads_content_};
}

bool Filter::matches(const StoredMessage& message, WallTime now) const {
  FilterView view(message, now);
  return empty() || condition_(view);
}

}  // namespace sluice::operate
