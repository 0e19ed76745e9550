#include "sluice/client/error.hpp"

#include <array>

namespace sluice::client {
namespace {

struct Words {
  std::string_view name;
  std::string_view text;
  bool with_cause = false;  ///< which follows the text
};

// By kind. The words are DynamoMQ's, so that what reads its logs reads ours; the last two are SQS's.
constexpr std::array<Words, 14> kWords{{
    {"IDNotProvidedError", "ID was not provided."},
    {"IDNotFoundError", "Provided ID was not found in the Dynamo DB."},
    {"IDDuplicatedError", "Provided ID was duplicated."},
    {"ConditionalCheckFailedError", "Condition on the 'version' attribute has failed: ", true},
    {"EmptyQueueError", "Cannot proceed, queue is empty."},
    {"BuildingExpressionError", "Failed to build expression: ", true},
    {"DynamoDBAPIError", "Failed ", true},
    {"UnmarshalingAttributeError", "Failed to unmarshal: ", true},
    {"MarshalingAttributeError", "Failed to marshal: ", true},
    {"InvalidStateTransitionError", "operation ", true},
    {"QueueFullError", "The producer holds as many messages as it may."},
    {"ProducerClosedError", "The producer was closed before the message was sent."},
    {"OverLimitError", "The specified action violates a limit: ", true},
    {"InvalidParameterValueError", ""},
}};
static_assert(static_cast<std::size_t>(ErrorKind::invalid_parameter_value) == kWords.size() - 1);

}  // namespace

std::string_view Error::name() const { return kWords.at(static_cast<std::size_t>(kind_)).name; }

std::string Error::message() const {
  if (kind_ == ErrorKind::invalid_parameter_value) {
    return cause_;
  }
  const Words& words = kWords.at(static_cast<std::size_t>(kind_));
  std::string text(words.text);
  if (kind_ == ErrorKind::dynamodb_api) {
    text += (store_.empty() ? "DynamoDB API" : store_) + ": ";
  } else if (kind_ == ErrorKind::invalid_state_transition) {
    text += operation_ + " failed for status " + std::string(to_string(current_.value_or(Status::ready))) + ": ";
  }
  return words.with_cause ? text + cause_ + "." : text;
}

}  // namespace sluice::client
