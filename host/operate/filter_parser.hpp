#pragma once

#include <string_view>

#include "host/operate/filter.hpp"
#include "host/operate/filter_expression.hpp"

namespace sluice::operate {

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
