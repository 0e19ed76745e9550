#include "client/src/core.hpp"

#include <algorithm>
#include <utility>

#include "base/text/json_check.hpp"
#include "host/stores/dedup_sender.hpp"

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

queue::Half to_store(QueueType type) { return type == QueueType::dlq ? queue::Half::dlq : queue::Half::standard; }

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
          .unique_until =
              message.unique_until == UniqueUntil::claimed ? queue::UniqueUntil::claimed : queue::UniqueUntil::done};
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

Result<QueueClient> Core::client(const Seams& seams, Settings settings, std::shared_ptr<void> backing) {
  auto core = std::make_shared<Core>(seams, std::move(settings), std::move(backing));
  if (const auto opened = core->open(); !opened) {
    return core->error(opened.error(), Asked::read);
  }
  return QueueClient(std::move(core));
}

sluice::Result<void> Core::open() {
  const std::string& queue = settings_.queue;
  SLUICE_TRY(standard, seams_.queues.open_source({queue, queue::Half::standard}));
  SLUICE_TRY(dlq, seams_.queues.open_source({queue, queue::Half::dlq}));
  SLUICE_TRY(sender, seams_.queues.open_sender(queue));
  SLUICE_TRY(oper, seams_.queues.open_operator(queue));
  standard_ = *std::move(standard);
  dlq_ = *std::move(dlq);
  sender_ =
      queue::deduplicating(*std::move(sender), {settings_.options.dedup_by_content, settings_.options.dedup_window});
  operator_ = *std::move(oper);
  standard_arrivals_ = std::make_unique<queue::Arrivals>(*standard_, clock());
  dlq_arrivals_ = std::make_unique<queue::Arrivals>(*dlq_, clock());
  return {};
}

Error Core::error(const sluice::Error& failure, Asked asked) const {
  const bool transient = failure.transient() || failure.code() == ErrorCode::unknown_outcome;
  return Error(kind_of(failure.code(), asked), failure.message()).with(transient, settings_.store_name);
}

std::vector<Result<std::string>> Core::send(std::vector<queue::NewMessage> messages, Deadline deadline) const {
  std::vector<Result<std::string>> results;
  results.reserve(messages.size());
  std::vector<std::size_t> places;
  std::vector<queue::NewMessage> sound;
  sound.reserve(messages.size());
  for (queue::NewMessage& message : messages) {
    if (message.id.empty() && !settings_.store_makes_ids) {
      results.emplace_back(Error(ErrorKind::id_not_provided));
      continue;
    }
    if (std::string wrong = objection(message.body, message.content_type); !wrong.empty()) {
      results.emplace_back(Error(ErrorKind::marshaling_attribute, std::move(wrong)));
      continue;
    }
    places.push_back(results.size());
    results.emplace_back(message.id);
    sound.push_back(std::move(message));
  }
  if (sound.empty()) {
    return results;
  }
  const auto sent = sender().send(sound, deadline);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].status == queue::SendStatus::duplicate_id) {
      results[places[i]] = Error(ErrorKind::id_duplicated, sent[i].error.message());
    } else if (sent[i].status == queue::SendStatus::failed) {
      results[places[i]] = error(sent[i].error, Asked::write_content);
    } else {  // a deduplicated one has the id of the first, and a store may have made it
      results[places[i]] = sent[i].id;
    }
  }
  return results;
}

Result<void> Core::change(queue::Change change) const {
  if (change.id.empty()) {
    return Error(ErrorKind::id_not_provided);
  }
  const auto changed = oper().change(std::span(&change, 1), deadline()).front();
  switch (changed.status) {
    case queue::ChangeStatus::applied:
      return {};
    case queue::ChangeStatus::not_found:
      return Error(ErrorKind::id_not_found, changed.error.message());
    case queue::ChangeStatus::conflict:
      return Error(ErrorKind::conditional_check_failed, changed.error.message());
    case queue::ChangeStatus::failed:
      break;
  }
  return error(changed.error, Asked::read);
}

Result<Message> Core::changed(const queue::Change& wanted) const {
  const auto done = change(wanted);
  return done ? look(wanted.id) : Result<Message>(done.error());
}

Result<Message> Core::look(const std::string& id) const {
  if (id.empty()) {
    return Error(ErrorKind::id_not_provided);
  }
  auto stored = oper().get(id, deadline());
  if (!stored) {
    return error(stored.error(), Asked::read);
  }
  return to_public(std::move(*stored));
}

}  // namespace detail
}  // namespace sluice::client
