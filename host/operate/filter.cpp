#include "host/operate/filter.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/text/decimal.hpp"
#include "base/timestamp.hpp"
#include "config/config.hpp"
#include "host/operate/filter_expression.hpp"
#include "host/operate/json_value.hpp"
#include "host/queue/error_groups.hpp"

namespace sluice::operate {

namespace {

using queue::StoredMessage;
using Type = FilterField::Type;
using Value = FilterValue;
using Found = std::optional<FilterValue>;

Value number(std::integral auto count) { return FilterNumber{std::to_string(count)}; }

Found time(const std::optional<WallTime>& time) { return time ? Found(*time) : std::nullopt; }

Found unless_empty(const std::string& text) { return text.empty() ? std::nullopt : Found(text); }

/// What `of` finds in a failure, where there is one.
template <auto of>
Found failure(const StoredMessage& stored, WallTime) {
  return stored.failure.empty() ? std::nullopt : Found(of(stored.failure));
}

constexpr auto kError = [](const queue::Failure& failure) -> Value { return failure.error; };

constexpr std::array kFields{
    FilterField{"id", Type::text, [](const StoredMessage& of, WallTime) -> Found { return of.message.id; }},
    FilterField{"receive_count", Type::number,
                [](const StoredMessage& of, WallTime) -> Found { return number(of.message.attempt); }},
    FilterField{"queue_type", Type::half,
                [](const StoredMessage& of, WallTime) -> Found { return std::string(to_string(of.half)); }},
    FilterField{"version", Type::number, [](const StoredMessage& of, WallTime) -> Found { return number(of.version); }},
    FilterField{"state", Type::state,
                [](const StoredMessage& of, WallTime now) -> Found { return std::string(to_string(of.state(now))); }},
    FilterField{"age", Type::span,
                [](const StoredMessage& of, WallTime now) {
                  return of.created_at == WallTime{} ? std::nullopt : Found(now - of.created_at);
                }},
    FilterField{"created_at", Type::time, [](const StoredMessage& of, WallTime) -> Found { return of.created_at; }},
    FilterField{"updated_at", Type::time, [](const StoredMessage& of, WallTime) -> Found { return of.updated_at; }},
    FilterField{"sent_at", Type::time, [](const StoredMessage& of, WallTime) -> Found { return of.message.sent_at; }},
    FilterField{"received_at", Type::time, [](const StoredMessage& of, WallTime) { return time(of.received_at); }},
    FilterField{"invisible_until_at", Type::time,
                [](const StoredMessage& of, WallTime) { return time(of.invisible_until); }},
    FilterField{"content_type", Type::text,
                [](const StoredMessage& of, WallTime) -> Found { return of.message.content_type; }},
    FilterField{"group", Type::text, [](const StoredMessage& of, WallTime) { return unless_empty(of.message.group); }},
    FilterField{"priority", Type::text,
                [](const StoredMessage& of, WallTime) -> Found { return std::string(to_string(of.message.priority)); }},
    FilterField{"error", Type::text, failure<kError>},
    FilterField{"failure", Type::failure, failure<[](const queue::Failure&) -> Value { return FilterComposite{}; }>},
    FilterField{"attributes", Type::attributes},
    FilterField{"data", Type::data},
};

constexpr std::array kFailureFields{
    FilterField{"error", Type::text, failure<kError>},
    FilterField{"fingerprint", Type::text,
                failure<[](const queue::Failure& failure) -> Value { return queue::fingerprint_of(failure.error); }>},
    FilterField{"handler", Type::text, failure<[](const queue::Failure& failure) -> Value { return failure.handler; }>},
    FilterField{"host", Type::text, failure<[](const queue::Failure& failure) -> Value { return failure.host; }>},
    FilterField{"attempts", Type::number,
                failure<[](const queue::Failure& failure) { return number(failure.attempts); }>},
    FilterField{"failed_at", Type::time,
                failure<[](const queue::Failure& failure) -> Value { return failure.failed_at; }>},
};

const FilterField* find(std::span<const FilterField> fields, std::string_view name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [name](const auto& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::string unknown(std::span<const FilterField> fields, std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  std::string all;
  for (const FilterField& field : fields) {
    names.emplace_back(field.name);
    all += (all.empty() ? "" : ", ") + std::string(field.name);
  }
  const auto meant = config::nearest(std::string(name), names);
  return std::string(what) + " \"" + std::string(name) + "\"; " +
         (meant ? "did you mean " + *meant + "?" : "there are " + all + "; a text stands in quotes");
}

std::optional<WallTime> read_time(const std::string& text) {
  if (const auto time = parse_timestamp(text)) {
    return time;
  }
  return parse_timestamp(text + "T00:00:00Z");
}

std::optional<std::string> fit_word(std::string_view field, const FilterValue& literal,
                                    const std::vector<std::string>& words) {
  const auto* text = std::get_if<std::string>(&literal);
  std::string listed;
  for (const std::string& word : words) {
    if (text != nullptr && *text == word) {
      return std::nullopt;
    }
    listed += (listed.empty() ? "\"" : ", \"") + word + "\"";
  }
  const auto meant = text != nullptr ? config::nearest(*text, words) : std::nullopt;
  return std::string(field) + " is one of " + listed + (meant ? "; did you mean \"" + *meant + "\"?" : "");
}

using Node = FilterExpression;

Value value_of(const JsonValue& json) {
  switch (json.kind) {
    case JsonValue::Kind::null:
      return FilterNull{};
    case JsonValue::Kind::boolean:
      return json.truth;
    case JsonValue::Kind::number:
      return FilterNumber{json.text};
    case JsonValue::Kind::string:
      return json.text;
    case JsonValue::Kind::array:
    case JsonValue::Kind::object:
      break;
  }
  return FilterComposite{};
}

/// One message under a filter's eyes. The body is read when it is first asked for.
class MessageView {
 public:
  MessageView(const queue::StoredMessage& stored, WallTime now) : stored_(stored), now_(now) {}

  Found find(const FilterOperand& operand) {
    if (const auto* literal = std::get_if<FilterValue>(&operand)) {
      return *literal;
    }
    return find(std::get<FilterPath>(operand));
  }

 private:
  Found find(const FilterPath& path) {
    return path.field->type == Type::attributes ? attribute(path)
           : path.field->type == Type::data     ? body(path)
                                                : path.field->of(stored_, now_);
  }

  Found attribute(const FilterPath& path) const {
    const queue::Attributes& attributes = stored_.message.attributes;
    if (path.steps.empty()) {
      return attributes.empty() ? std::nullopt : Found(FilterComposite{});
    }
    const auto found = attributes.find(std::get<std::string>(path.steps.front()));
    return found == attributes.end() ? std::nullopt : Found(found->second);
  }

  /// Of a message that is not JSON, `data` is its text.
  Found body(const FilterPath& path) {
    if (!body_) {
      auto parsed = stored_.message.content_type == queue::kJson
                        ? parse_json(stored_.message.body)
                        : Result<JsonValue>(Error(ErrorCode::invalid, "no JSON"));
      body_ = parsed ? std::move(*parsed) : JsonValue::of_string(stored_.message.body);
    }
    const JsonValue* found = body_->at(path.steps);
    return found == nullptr ? std::nullopt : Found(value_of(*found));
  }

  const queue::StoredMessage& stored_;
  WallTime now_;
  std::optional<JsonValue> body_;
};

std::partial_ordering ordering(Duration left, Duration right) { return left.count() <=> right.count(); }

std::partial_ordering compare(const Value& left, const Value& right) {
  if (left.index() != right.index()) {
    // Text in a body may be a time.
    if (const auto* text = std::get_if<std::string>(&left);
        text != nullptr && std::holds_alternative<WallTime>(right)) {
      const auto time = parse_timestamp(*text);
      return time ? compare(*time, right) : std::partial_ordering::unordered;
    }
    if (std::holds_alternative<WallTime>(left) && std::holds_alternative<std::string>(right)) {
      return 0 <=> compare(right, left);
    }
    return std::partial_ordering::unordered;
  }
  if (const auto* text = std::get_if<std::string>(&left)) {
    return text->compare(std::get<std::string>(right)) <=> 0;
  }
  if (const auto* number = std::get_if<FilterNumber>(&left)) {
    return compare_decimals(number->text, std::get<FilterNumber>(right).text);
  }
  if (const auto* time = std::get_if<WallTime>(&left)) {
    return ordering(time->time_since_epoch(), std::get<WallTime>(right).time_since_epoch());
  }
  if (const auto* span = std::get_if<Duration>(&left)) {
    return ordering(*span, std::get<Duration>(right));
  }
  if (const auto* truth = std::get_if<bool>(&left)) {
    return *truth == std::get<bool>(right) ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
  }
  return std::holds_alternative<FilterNull>(left) ? std::partial_ordering::equivalent
                                                  : std::partial_ordering::unordered;
}

bool holds(FilterComparison comparison, std::partial_ordering order) {
  switch (comparison) {
    case FilterComparison::equal:
      return order == 0;
    case FilterComparison::unequal:
      return order != 0;
    case FilterComparison::less:
      return order < 0;
    case FilterComparison::at_most:
      return order <= 0;
    case FilterComparison::greater:
      return order > 0;
    case FilterComparison::at_least:
      break;
  }
  return order >= 0;
}

/// A pattern's characters one by one: a wildcard, or one to be met.
struct PatternStep {
  bool wildcard = false;
  char byte = 0;
  std::size_t length = 1;  ///< bytes of the pattern
};

PatternStep step_at(std::string_view pattern, std::size_t at) {
  if (pattern[at] == '\\' && at + 1 < pattern.size()) {
    return {.wildcard = false, .byte = pattern[at + 1], .length = 2};
  }
  return {.wildcard = pattern[at] == '*', .byte = pattern[at], .length = 1};
}

/// Linear in the text for each wildcard: on a mismatch only the last wildcard takes one byte more.
bool is_like(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::optional<std::pair<std::size_t, std::size_t>> retry;  // places behind the last wildcard
  while (true) {
    if (in_pattern < pattern.size()) {
      const PatternStep step = step_at(pattern, in_pattern);
      if (step.wildcard) {
        in_pattern += step.length;
        retry = {at, in_pattern};
        continue;
      }
      if (at < text.size() && text[at] == step.byte) {
        ++at;
        in_pattern += step.length;
        continue;
      }
    } else if (at == text.size()) {
      return true;
    }
    if (!retry || retry->first >= text.size()) {
      return false;
    }
    at = ++retry->first;
    in_pattern = retry->second;
  }
}

bool matches(const Node& node, MessageView& view);

bool holds_any(const Node& node, MessageView& view) {
  const Found left = view.find(node.left);
  return left && std::any_of(node.right.begin(), node.right.end(), [&](const FilterOperand& operand) {
           const Found right = view.find(operand);
           return right && holds(node.comparison, compare(*left, *right));
         });
}

bool is_like(const Node& node, MessageView& view) {
  const Found left = view.find(node.left);
  const auto* text = left ? std::get_if<std::string>(&*left) : nullptr;
  return text != nullptr && is_like(*text, std::get<std::string>(std::get<FilterValue>(node.right.front())));
}

bool matches(const Node& node, MessageView& view) {
  const auto matches_one = [&view](const Node& child) { return matches(child, view); };
  switch (node.kind) {
    case Node::Kind::all_of:
      return std::all_of(node.children.begin(), node.children.end(), matches_one);
    case Node::Kind::any_of:
      return std::any_of(node.children.begin(), node.children.end(), matches_one);
    case Node::Kind::negation:
      return !matches(node.children.front(), view);
    case Node::Kind::exists:
      return view.find(node.left).has_value();
    case Node::Kind::compare:
    case Node::Kind::one_of:
      return holds_any(node, view);
    case Node::Kind::like:
      break;
  }
  return is_like(node, view);
}

bool is_content(const FilterOperand& operand) {
  const auto* path = std::get_if<FilterPath>(&operand);
  return path != nullptr && path->field != nullptr &&
         (path->field->type == Type::data || path->field->type == Type::attributes ||
          path->field->name == "content_type" || path->field->name == "group");
}

bool reads_content_of(const Node& node) {
  return is_content(node.left) || std::any_of(node.right.begin(), node.right.end(), is_content) ||
         std::any_of(node.children.begin(), node.children.end(), reads_content_of);
}

}  // namespace

const FilterField* find_filter_field(std::string_view name) {
  // DynamoMQ's word for it.
  return find(kFields, name == "status" ? "state" : name);
}

const FilterField* find_failure_field(std::string_view name) { return find(kFailureFields, name); }

std::string unknown_filter_field(std::string_view name) { return unknown(kFields, name, "unknown field"); }

std::string unknown_failure_field(std::string_view name) {
  return unknown(kFailureFields, name, "a failure has no field");
}

std::optional<std::string> fit_literal(const FilterField& field, FilterValue& literal) {
  const std::string is = std::string(field.name) + " is ";
  switch (field.type) {
    case Type::text:
      return std::holds_alternative<std::string>(literal) ? std::nullopt
                                                          : std::optional(is + "text; write it in quotes");
    case Type::number:
      return std::holds_alternative<FilterNumber>(literal) ? std::nullopt
                                                           : std::optional(is + "a number; write one such as 3");
    case Type::span:
      return std::holds_alternative<Duration>(literal) ? std::nullopt
                                                       : std::optional(is + "a duration; write one such as 10m");
    case Type::time:
      if (const auto* text = std::get_if<std::string>(&literal)) {
        const auto time = read_time(*text);
        if (time) {
          literal = *time;
        }
      }
      return std::holds_alternative<WallTime>(literal)
                 ? std::nullopt
                 : std::optional(is + "a time; write one such as 2026-01-31T12:00:00Z");
    case Type::state:
      return fit_word(field.name, literal, {"ready", "in_flight", "delayed"});
    case Type::half:
      return fit_word(field.name, literal, {"STANDARD", "DLQ"});
    case Type::failure:
      return "a failure as a whole cannot be compared; write failure.error, or exists(failure)";
    case Type::attributes:
    case Type::data:
      break;
  }
  return std::nullopt;
}

Filter::Filter(FilterExpression expression)
    : expression_(std::make_shared<const FilterExpression>(std::move(expression))) {}

boost::system::result<Filter, FilterError> Filter::parse(std::string_view text) {
  SLUICE_TRY(expression, parse_filter_expression(text));
  return Filter(std::move(*expression));
}

Filter Filter::older_than(Duration age) {
  Node node;
  node.kind = Node::Kind::compare;
  node.left = FilterPath{find_filter_field("age")};
  node.comparison = FilterComparison::greater;
  node.right.emplace_back(FilterValue(age));
  return Filter(std::move(node));
}

Filter Filter::error_like(std::string_view text) {
  Node node;
  node.kind = Node::Kind::like;
  node.left = FilterPath{find_filter_field("error")};
  node.right.emplace_back(FilterValue("*" + std::string(text) + "*"));
  return Filter(std::move(node));
}

Filter Filter::error_of(std::string_view cause) {
  Node node;
  node.kind = Node::Kind::compare;
  node.left = FilterPath{find_failure_field("fingerprint")};
  node.right.emplace_back(
      FilterValue(queue::is_fingerprint(cause) ? std::string(cause) : queue::fingerprint_of(cause)));
  return Filter(std::move(node));
}

Filter Filter::also(const Filter& other) const {
  if (empty() || other.empty()) {
    return empty() ? other : *this;
  }
  Node node;
  node.kind = Node::Kind::all_of;
  node.children = {*expression_, *other.expression_};
  return Filter(std::move(node));
}

bool Filter::matches(const queue::StoredMessage& message, WallTime now) const {
  MessageView view(message, now);
  return empty() || operate::matches(*expression_, view);
}

bool Filter::reads_content() const { return !empty() && reads_content_of(*expression_); }

}  // namespace sluice::operate
