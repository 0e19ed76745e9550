#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "host/operate/filter_expression.hpp"

namespace sluice::operate {

/// The field of that name; `failure.error` and its like are known by their last part alone to the parser.
std::optional<FilterField> find_filter_field(std::string_view name);
std::optional<FilterField> find_failure_field(std::string_view name);

/// `unknown field "x"; did you mean y?`
std::string unknown_filter_field(std::string_view name);
std::string unknown_failure_field(std::string_view name);

/// Fits a literal to the field that it is compared with: text becomes a time where the field is one. What cannot be
/// compared is an error, said in one line.
std::optional<std::string> fit_literal(FilterField field, FilterLiteral& literal);

}  // namespace sluice::operate
