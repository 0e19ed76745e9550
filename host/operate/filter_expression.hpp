#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "host/operate/filter.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"

/// What a filter's text becomes.
namespace sluice::operate {

struct FilterNull {};

/// A number in JSON's spelling.
struct FilterNumber {
  std::string text;
};

/// An object or an array: there, and comparable with nothing.
struct FilterComposite {};

using FilterValue = std::variant<FilterNull, bool, FilterNumber, std::string, WallTime, Duration, FilterComposite>;

/// A field of a message.
struct FilterField {
  enum class Type { text, state, half, number, time, span, failure, attributes, data };
  /// What a message has there; nothing when it does not have it. Of attributes and data their parts are asked for.
  using Of = std::optional<FilterValue> (*)(const queue::StoredMessage& message, WallTime now);

  std::string_view name;
  Type type;
  Of of = nullptr;
};

/// A place in a message.
struct FilterPath {
  const FilterField* field = nullptr;
  std::vector<queue::PathStep> steps{};  ///< below attributes and data
};

using FilterOperand = std::variant<FilterPath, FilterValue>;

enum class FilterComparison { equal, unequal, less, at_most, greater, at_least };

struct FilterExpression {
  enum class Kind {
    all_of,    ///< children
    any_of,    ///< children
    negation,  ///< children[0]
    exists,    ///< left, a path
    compare,   ///< left, comparison, right[0]
    one_of,    ///< left, right
    like,      ///< left, right[0], a string
  };

  Kind kind = Kind::all_of;
  std::vector<FilterExpression> children;
  FilterComparison comparison = FilterComparison::equal;
  FilterOperand left;
  std::vector<FilterOperand> right;
};

/// The field of that name, null where there is none; `failure.error` and its like are known by their last part alone.
const FilterField* find_filter_field(std::string_view name);
const FilterField* find_failure_field(std::string_view name);

/// `unknown field "x"; did you mean y?`
std::string unknown_filter_field(std::string_view name);
std::string unknown_failure_field(std::string_view name);

/// Fits a literal to the field that it is compared with: text becomes a time where the field is one. What cannot be
/// compared is an error, said in one line.
std::optional<std::string> fit_literal(const FilterField& field, FilterValue& literal);

/// Reads
///
///     any        = all { "or" all }
///     all        = term { "and" term }
///     term       = "not" term | "(" any ")" | "exists" "(" path ")" | comparison
///     comparison = operand ( operator operand | ["not"] "like" text | ["not"] "in" "(" operand { "," operand } ")" )
///     operand    = path | text | number | duration | time | "true" | "false" | "null"
///     path       = field { "." name | "[" ( index | text ) "]" }
///
/// with at most 64 levels and 64 KiB. The error is the first one.
boost::system::result<FilterExpression, FilterError> parse_filter_expression(std::string_view text);

}  // namespace sluice::operate
