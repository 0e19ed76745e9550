#include "host/operate/filter.hpp"

#include <algorithm>
#include <compare>
#include <optional>
#include <utility>

#include "base/text/decimal.hpp"
#include "base/timestamp.hpp"
#include "host/operate/filter_expression.hpp"
#include "host/operate/filter_parser.hpp"
#include "host/operate/json_value.hpp"
#include "host/queue/error_groups.hpp"

namespace sluice::operate {

namespace {

using Node = FilterExpression;

/// An object or an array: there, and comparable with nothing.
struct Composite {};

/// What an operand stands for in one message; nothing when the message does not have it.
using Value = std::variant<Composite, FilterNull, bool, FilterNumber, std::string, WallTime, Duration>;
using Found = std::optional<Value>;

Value value_of(const FilterLiteral& literal) {
  return std::visit([](const auto& content) { return Value(content); }, literal);
}

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
  return Composite{};
}

Value number(std::uint64_t count) { return FilterNumber{std::to_string(count)}; }

/// One message under a filter's eyes. The body is read when it is first asked for.
class MessageView {
 public:
  MessageView(const queue::StoredMessage& stored, WallTime now) : stored_(stored), now_(now) {}

  Found find(const FilterOperand& operand) {
    if (const auto* literal = std::get_if<FilterLiteral>(&operand)) {
      return value_of(*literal);
    }
    return find(std::get<FilterPath>(operand));
  }

 private:
  static Found time(const std::optional<WallTime>& time) { return time ? Found(*time) : std::nullopt; }

  Found find(const FilterPath& path) {
    const queue::Message& message = stored_.message;
    switch (path.field) {
      case FilterField::id:
        return message.id;
      case FilterField::receive_count:
        return number(message.attempt);
      case FilterField::queue_type:
        return std::string(queue::to_string(stored_.half));
      case FilterField::version:
        return FilterNumber{std::to_string(stored_.version)};
      case FilterField::state:
        return std::string(queue::to_string(stored_.state(now_)));
      case FilterField::age:
        return stored_.created_at == WallTime{} ? std::nullopt : Found(now_ - stored_.created_at);
      case FilterField::created_at:
        return stored_.created_at;
      case FilterField::updated_at:
        return stored_.updated_at;
      case FilterField::sent_at:
        return message.sent_at;
      case FilterField::received_at:
        return time(stored_.received_at);
      case FilterField::invisible_until_at:
        return time(stored_.invisible_until);
      case FilterField::content_type:
        return message.content_type;
      case FilterField::group:
        return message.group.empty() ? std::nullopt : Found(message.group);
      case FilterField::priority:
        return std::string(to_string(message.priority));
      case FilterField::attributes:
        return attribute(path);
      case FilterField::data:
        return body(path);
      default:
        return stored_.failure.empty() ? std::nullopt : failure(path.field);
    }
  }

  Found failure(FilterField field) const {
    const queue::Failure& failure = stored_.failure;
    switch (field) {
      case FilterField::failure_error:
        return failure.error;
      case FilterField::failure_fingerprint:
        return queue::fingerprint_of(failure.error);
      case FilterField::failure_handler:
        return failure.handler;
      case FilterField::failure_host:
        return failure.host;
      case FilterField::failure_attempts:
        return number(failure.attempts);
      case FilterField::failure_failed_at:
        return failure.failed_at;
      default:
        return Composite{};
    }
  }

  Found attribute(const FilterPath& path) const {
    const queue::Attributes& attributes = stored_.message.attributes;
    if (path.steps.empty()) {
      return attributes.empty() ? std::nullopt : Found(Composite{});
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
  return text != nullptr && is_like(*text, std::get<std::string>(std::get<FilterLiteral>(node.right.front())));
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
  return path != nullptr && (path->field == FilterField::data || path->field == FilterField::attributes ||
                             path->field == FilterField::content_type || path->field == FilterField::group);
}

bool reads_content_of(const Node& node) {
  return is_content(node.left) || std::any_of(node.right.begin(), node.right.end(), is_content) ||
         std::any_of(node.children.begin(), node.children.end(), reads_content_of);
}

}  // namespace

Filter::Filter(FilterExpression expression)
    : expression_(std::make_shared<const FilterExpression>(std::move(expression))) {}

boost::system::result<Filter, FilterError> Filter::parse(std::string_view text) {
  SLUICE_TRY(expression, parse_filter_expression(text));
  return Filter(std::move(*expression));
}

Filter Filter::older_than(Duration age) {
  Node node;
  node.kind = Node::Kind::compare;
  node.left = FilterPath{FilterField::age, {}};
  node.comparison = FilterComparison::greater;
  node.right.emplace_back(FilterLiteral(age));
  return Filter(std::move(node));
}

Filter Filter::error_like(std::string_view text) {
  Node node;
  node.kind = Node::Kind::like;
  node.left = FilterPath{FilterField::failure_error, {}};
  node.right.emplace_back(FilterLiteral("*" + std::string(text) + "*"));
  return Filter(std::move(node));
}

Filter Filter::error_of(std::string_view cause) {
  Node node;
  node.kind = Node::Kind::compare;
  node.left = FilterPath{FilterField::failure_fingerprint, {}};
  node.right.emplace_back(
      FilterLiteral(queue::is_fingerprint(cause) ? std::string(cause) : queue::fingerprint_of(cause)));
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
