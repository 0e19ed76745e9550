#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/dynamodb_model/backend.hpp"

namespace sluice::test::model {

/// Where the emulator is known to differ from DynamoDB, and the model follows DynamoDB.
struct KnownDifference {
  std::string name;
  std::string reason;
  /// Shows it: the answers to the last of these differ.
  std::vector<Question> script;
  /// Whether two answers to a question differ by this and nothing else. Empty: it leaves the tables different too, and
  /// RandomRequests keeps away from it.
  std::function<bool(const Question& question, const Reaction& model, const Reaction& emulator)> matches;
};
const std::vector<KnownDifference>& known_differences();

/// Whether two answers are the same, as far as they should be: texts of errors and the order of unordered lists aside.
bool same(const Question& question, const Reaction& model, const Reaction& emulator);

}  // namespace sluice::test::model
