#pragma once

#include <string_view>

#include "tests/support/dynamodb_model/evaluate.hpp"

namespace sluice::test::model {

// What DynamoDB finds wrong with an expression and its values before it looks at any item. Throw Failures.
void check_operands(const Condition& condition, std::string_view language, const Bindings& bindings);
void check_operands(const Update& update, const Bindings& bindings);

}  // namespace sluice::test::model
