#include "sluice/client/error.hpp"

namespace sluice::client {

std::string_view Error::name() const {
  switch (kind_) {
    case ErrorKind::id_not_provided:
      return "IDNotProvidedError";
    case ErrorKind::id_not_found:
      return "IDNotFoundError";
    case ErrorKind::id_duplicated:
      return "IDDuplicatedError";
    case ErrorKind::conditional_check_failed:
      return "ConditionalCheckFailedError";
    case ErrorKind::empty_queue:
      return "EmptyQueueError";
    case ErrorKind::building_expression:
      return "BuildingExpressionError";
    case ErrorKind::dynamodb_api:
      return "DynamoDBAPIError";
    case ErrorKind::unmarshaling_attribute:
      return "UnmarshalingAttributeError";
    case ErrorKind::marshaling_attribute:
      return "MarshalingAttributeError";
    case ErrorKind::invalid_state_transition:
      return "InvalidStateTransitionError";
    case ErrorKind::queue_full:
      return "QueueFullError";
    case ErrorKind::producer_closed:
      return "ProducerClosedError";
    case ErrorKind::over_limit:
      return "OverLimitError";
    case ErrorKind::invalid_parameter_value:
      return "InvalidParameterValueError";
  }
  return "Error";
}

// The words are DynamoMQ's, so that what reads its logs reads ours.
std::string Error::message() const {
  switch (kind_) {
    case ErrorKind::id_not_provided:
      return "ID was not provided.";
    case ErrorKind::id_not_found:
      return "Provided ID was not found in the Dynamo DB.";
    case ErrorKind::id_duplicated:
      return "Provided ID was duplicated.";
    case ErrorKind::conditional_check_failed:
      return "Condition on the 'version' attribute has failed: " + cause_ + ".";
    case ErrorKind::empty_queue:
      return "Cannot proceed, queue is empty.";
    case ErrorKind::building_expression:
      return "Failed to build expression: " + cause_ + ".";
    case ErrorKind::dynamodb_api:
      return "Failed " + (store_.empty() ? std::string("DynamoDB API") : store_) + ": " + cause_ + ".";
    case ErrorKind::unmarshaling_attribute:
      return "Failed to unmarshal: " + cause_ + ".";
    case ErrorKind::marshaling_attribute:
      return "Failed to marshal: " + cause_ + ".";
    case ErrorKind::invalid_state_transition:
      return "operation " + operation_ + " failed for status " +
             std::string(to_string(current_.value_or(Status::ready))) + ": " + cause_ + ".";
    case ErrorKind::queue_full:
      return "The producer holds as many messages as it may.";
    case ErrorKind::producer_closed:
      return "The producer was closed before the message was sent.";
    // SQS's words.
    case ErrorKind::over_limit:
      return "The specified action violates a limit: " + cause_ + ".";
    case ErrorKind::invalid_parameter_value:
      return cause_;
  }
  return cause_;
}

}  // namespace sluice::client
