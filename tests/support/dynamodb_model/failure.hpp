#pragma once

#include <string>
#include <utility>

namespace sluice::test::model {

/// A request that DynamoDB refuses: thrown inside the model, and turned into an answer by its dispatcher.
struct Failure {
  std::string code;     ///< "ValidationException", ...
  std::string message;  ///< DynamoDB's text
  int status = 400;
  std::string extra;  ///< further members of the answer, each beginning with a comma
};

inline Failure validation(std::string message) { return {"ValidationException", std::move(message), 400, ""}; }
/// The same with the words that DynamoDB puts before most of its remarks on values.
inline Failure invalid_values(const std::string& message) {
  return validation("One or more parameter values were invalid: " + message);
}
inline Failure conditional_check_failed() {
  return {"ConditionalCheckFailedException", "The conditional request failed", 400, ""};
}

}  // namespace sluice::test::model
