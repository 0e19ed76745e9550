#include "client/src/conversion.hpp"

#include <algorithm>
#include <utility>

#include "base/text/json_check.hpp"

namespace sluice::client {

std::string_view to_string(QueueType type) { return type == QueueType::dlq ? "DLQ" : "STANDARD"; }
std::string_view to_string(Status status) { return status == Status::processing ? "PROCESSING" : "READY"; }

namespace detail {
namespace {

ErrorKind kind_of(ErrorCode code, Asked asked) {
  switch (code) {
    case ErrorCode::not_found:
      return ErrorKind::id_not_found;
    case ErrorCode::duplicate_id:
      return ErrorKind::id_duplicated;
    case ErrorCode::conflict:
      return ErrorKind::conditional_check_failed;
    case ErrorCode::over_limit:
      return ErrorKind::over_limit;
    case ErrorCode::internal:
    case ErrorCode::corrupt:
      return ErrorKind::unmarshaling_attribute;
    case ErrorCode::invalid:
      return asked == Asked::write_content ? ErrorKind::marshaling_attribute : ErrorKind::building_expression;
    default:
      return ErrorKind::dynamodb_api;
  }
}

/// What the sender has said, and how often it was received.
Message to_public(queue::Message stored) {
  Message message;
  message.id = std::move(stored.id);
  message.data = std::move(stored.body);
  message.content_type = std::move(stored.content_type);
  message.attributes = std::move(stored.attributes);
  message.group = std::move(stored.group);
  message.receive_count = stored.attempt;
  message.sent_at = stored.sent_at;
  message.priority = static_cast<Priority>(stored.priority);
  return message;
}

static_assert(static_cast<int>(Priority::low) == static_cast<int>(queue::Priority::low));

}  // namespace

Error to_error(const sluice::Error& error, Asked asked, std::string_view store) {
  const bool transient = error.transient() || error.code() == ErrorCode::unknown_outcome;
  return Error(kind_of(error.code(), asked), error.message()).with(transient, store);
}

queue::Half to_store(QueueType type) { return type == QueueType::dlq ? queue::Half::dlq : queue::Half::standard; }

queue::UniqueUntil to_store(UniqueUntil until) {
  return until == UniqueUntil::claimed ? queue::UniqueUntil::claimed : queue::UniqueUntil::done;
}

queue::NewMessage to_store(NewMessage message) {
  return {.id = std::move(message.id),
          .body = std::move(message.data),
          .content_type = std::move(message.content_type),
          .attributes = std::move(message.attributes),
          .group = std::move(message.group),
          .delay = std::max(message.delay, Duration::zero()),
          .priority = static_cast<queue::Priority>(message.priority),
          .dedup_id = std::move(message.dedup_id),
          .dedup_window = message.dedup_window,
          .unique_key = std::move(message.unique_key),
          .unique_until = to_store(message.unique_until)};
}

queue::StoredMessage to_store(const Message& message, Time now) {
  queue::StoredMessage stored;
  stored.message = {.id = message.id,
                    .body = message.data,
                    .content_type = message.content_type,
                    .attributes = message.attributes,
                    .group = message.group,
                    .priority = static_cast<queue::Priority>(message.priority),
                    .attempt = message.receive_count,
                    .sent_at = message.sent_at};
  stored.half = to_store(message.queue_type);
  stored.version = message.version;
  stored.created_at = message.created_at.value_or(now);
  stored.updated_at = message.updated_at;
  stored.received_at = message.received_at;
  stored.invisible_until = message.invisible_until_at;
  if (message.failure) {
    stored.failure = {.error = message.failure->error,
                      .handler = message.failure->handler,
                      .host = message.failure->host,
                      .attempts = message.failure->attempts,
                      .failed_at = message.failure->failed_at};
  }
  return stored;
}

queue::Receipt to_store(const Receipt& receipt) { return {receipt.id, receipt.version, receipt.locator}; }

Message to_public(queue::StoredMessage stored) {
  Message message = to_public(std::move(stored.message));
  message.queue_type = stored.half == queue::Half::dlq ? QueueType::dlq : QueueType::standard;
  message.version = stored.version;
  message.created_at = stored.created_at;
  message.updated_at = stored.updated_at;
  message.received_at = stored.received_at;
  message.invisible_until_at = stored.invisible_until;
  if (!stored.failure.empty()) {
    message.failure = {.error = std::move(stored.failure.error),
                       .handler = std::move(stored.failure.handler),
                       .host = std::move(stored.failure.host),
                       .attempts = stored.failure.attempts,
                       .failed_at = stored.failure.failed_at};
  }
  return message;
}

ReceivedMessage to_public(queue::Delivery delivery, QueueType type, Duration visibility) {
  ReceivedMessage received;
  received.receipt = {delivery.receipt.id, type, delivery.receipt.version, delivery.receipt.locator};
  received.message = to_public(std::move(delivery.message));
  Message& message = received.message;
  message.queue_type = type;
  message.version = delivery.receipt.version;
  message.invisible_until_at = delivery.invisible_until;
  message.updated_at = delivery.invisible_until - visibility;
  message.received_at = message.updated_at;
  received.receipt.received_at = message.updated_at;
  return received;
}

std::string objection(std::string_view data, std::string_view content_type) {
  if (content_type != kJson) {
    return {};
  }
  const auto problem = json_problem(data);
  return problem ? "the data is not JSON: " + *problem : std::string();
}

}  // namespace detail
}  // namespace sluice::client
