#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/operator.hpp"

/// What a filter's text becomes.
namespace sluice::operate {

enum class FilterField {
  id,
  receive_count,
  queue_type,
  version,
  state,
  age,
  created_at,
  updated_at,
  sent_at,
  received_at,
  invisible_until_at,
  content_type,
  group,
  priority,
  failure,
  failure_error,
  failure_fingerprint,
  failure_handler,
  failure_host,
  failure_attempts,
  failure_failed_at,
  attributes,
  data,
};

/// A place in a message.
struct FilterPath {
  FilterField field = FilterField::id;
  std::vector<queue::PathStep> steps;  ///< below attributes and data
};

struct FilterNull {};

/// A number in JSON's spelling.
struct FilterNumber {
  std::string text;
};

using FilterLiteral = std::variant<FilterNull, bool, FilterNumber, std::string, WallTime, Duration>;
using FilterOperand = std::variant<FilterPath, FilterLiteral>;

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

}  // namespace sluice::operate
