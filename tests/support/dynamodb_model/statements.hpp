#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {

/// A statement with its parameters.
struct BoundStatement {
  std::shared_ptr<const PartiqlStatement> tree;
  std::vector<AttributeValue> parameters;
  bool consistent = false;
};

/// Reads {"Statement": ..., "Parameters": [...]}. Throws Failures.
BoundStatement bind(Context& context, const boost::json::value& spelled);
/// The write that it means; borrows from the statement. Throws Failures.
Write write_of(Context& context, const BoundStatement& statement);
/// "ConditionalCheckFailed" for "ConditionalCheckFailedException", and so on: how errors of statements and
/// cancellation reasons are named.
std::string statement_code(const std::string& exception);

}  // namespace sluice::test::model
