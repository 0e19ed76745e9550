#include "sluice/client/queue_client.hpp"

#include <algorithm>
#include <utility>

#include "client/src/core.hpp"

namespace sluice::client {
namespace {

using detail::Asked;
using detail::Core;

Error no_id() { return Error(ErrorKind::id_not_provided); }

Result<void> outcome(const Core& core, const queue::SettleResult& result) {
  switch (result.status) {
    case queue::SettleStatus::applied:
      return {};
    case queue::SettleStatus::lost:
      return Error(ErrorKind::conditional_check_failed, "somebody else has received or changed the message since");
    case queue::SettleStatus::refused:
    case queue::SettleStatus::failed:
      break;
  }
  return core.error(result.error, Asked::read);
}

Result<void> settle(const Core& core, const Receipt& receipt, queue::CompletionAction action, queue::Failure failure) {
  if (receipt.id.empty()) {
    return no_id();
  }
  const queue::Completion completion{
      .receipt = detail::to_store(receipt), .action = action, .failure = std::move(failure)};
  const auto results = core.source(receipt.queue_type).settle(std::span(&completion, 1), core.deadline());
  return outcome(core, results.front());
}

// SQS's words.
Error beyond_lease(Duration timeout, Duration lease) {
  const auto seconds = [](Duration span) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(span).count());
  };
  return Error(ErrorKind::invalid_parameter_value,
               "Value " + seconds(timeout) + " for parameter VisibilityTimeout is invalid. Reason: Total " +
                   "VisibilityTimeout for the message is beyond the limit [" + seconds(lease) + " seconds]");
}

queue::Failure failure_of(const Core& core, const std::string& reason) {
  if (reason.empty()) {
    return {};
  }
  return {.error = reason, .handler = {}, .host = {}, .attempts = 0, .failed_at = core.clock().wall_now()};
}

// DynamoMQ's words for a redrive that the message's state forbids. A state that allows it by now was another a moment
// ago: somebody is at work on the message.
Error redrive_refused(const Message& message, Time now, const Error& conflict) {
  constexpr const char* kOperation = "mark as restored from DLQ";
  const Status status = message.status(now);
  if (message.queue_type != QueueType::dlq) {
    return {"can only redrive messages from DLQ", kOperation, status};
  }
  if (status == Status::processing) {
    return {"can only redrive messages from READY", kOperation, status};
  }
  return conflict;
}

}  // namespace

QueueClient::QueueClient(std::shared_ptr<Core> core) : core_(std::move(core)) {}
QueueClient::QueueClient(QueueClient&&) noexcept = default;
QueueClient& QueueClient::operator=(QueueClient&&) noexcept = default;
QueueClient::~QueueClient() = default;

Result<std::string> QueueClient::send(const NewMessage& message) {
  return std::move(send(std::span(&message, 1)).front());
}

std::vector<Result<std::string>> QueueClient::send(std::span<const NewMessage> messages) {
  std::vector<queue::NewMessage> converted;
  converted.reserve(messages.size());
  for (const NewMessage& message : messages) {
    converted.push_back(detail::to_store(message));
  }
  return core_->send(std::move(converted), core_->deadline());
}

Result<Message> QueueClient::change_visibility(const std::string& id, Duration timeout) {
  if (id.empty()) {
    return no_id();
  }
  const auto changed = core_->change({.id = id, .action = queue::ChangeAction::set_visibility, .after = timeout});
  return changed ? core_->look(id) : Result<Message>(changed.error());
}

Result<Receipt> QueueClient::change_visibility(const Receipt& receipt, Duration timeout) {
  if (receipt.id.empty()) {
    return no_id();
  }
  if (timeout <= Duration::zero()) {
    const auto given_up = settle(*core_, receipt, queue::CompletionAction::retry, {});
    return given_up ? Result<Receipt>(receipt) : Result<Receipt>(given_up.error());
  }
  const Time now = core_->clock().wall_now();
  const bool known = receipt.received_at != Time{};
  const Duration lease = core_->settings().options.max_lease;
  if (timeout > lease || (known && now + timeout > receipt.received_at + lease)) {
    return beyond_lease(timeout, lease);
  }
  const queue::Receipt held = detail::to_store(receipt);
  const auto extended =
      core_->source(receipt.queue_type).extend(std::span(&held, 1), timeout, core_->deadline()).front();
  const auto fate = outcome(*core_, {extended.status, extended.error});
  if (!fate) {
    return fate.error();
  }
  return Receipt{extended.receipt.id, receipt.queue_type, extended.receipt.version, extended.receipt.locator,
                 receipt.received_at};
}

Result<void> QueueClient::delete_message(const std::string& id) {
  if (id.empty()) {
    return no_id();
  }
  auto removed = core_->change({.id = id, .action = queue::ChangeAction::remove});
  if (!removed && removed.error().kind() == ErrorKind::id_not_found) {
    return {};
  }
  return removed;
}

Result<void> QueueClient::delete_message(const std::string& id, std::int64_t version) {
  if (id.empty()) {
    return no_id();
  }
  return core_->change({.id = id, .action = queue::ChangeAction::remove, .version = version});
}

Result<void> QueueClient::delete_message(const Receipt& receipt) {
  return settle(*core_, receipt, queue::CompletionAction::remove, {});
}

std::vector<Result<void>> QueueClient::delete_messages(std::span<const Receipt> receipts) {
  std::vector<Result<void>> results(receipts.size(), Result<void>(no_id()));
  for (const QueueType half : {QueueType::standard, QueueType::dlq}) {
    std::vector<queue::Completion> completions;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < receipts.size(); ++i) {
      if (receipts[i].queue_type == half && !receipts[i].id.empty()) {
        completions.push_back({.receipt = detail::to_store(receipts[i])});
        places.push_back(i);
      }
    }
    if (completions.empty()) {
      continue;
    }
    const auto settled = core_->source(half).settle(completions, core_->deadline());
    for (std::size_t i = 0; i < settled.size(); ++i) {
      results[places[i]] = outcome(*core_, settled[i]);
    }
  }
  return results;
}

Result<Message> QueueClient::move_to_dlq(const std::string& id, const std::string& reason) {
  if (id.empty()) {
    return no_id();
  }
  const auto moved =
      core_->change({.id = id, .action = queue::ChangeAction::dead_letter, .failure = failure_of(*core_, reason)});
  return moved ? core_->look(id) : Result<Message>(moved.error());
}

Result<void> QueueClient::move_to_dlq(const Receipt& receipt, const std::string& reason) {
  return settle(*core_, receipt, queue::CompletionAction::dead_letter, failure_of(*core_, reason));
}

Result<Message> QueueClient::redrive(const std::string& id) {
  if (id.empty()) {
    return no_id();
  }
  const auto redriven = core_->change({.id = id, .action = queue::ChangeAction::redrive});
  if (redriven) {
    return core_->look(id);
  }
  if (redriven.error().kind() != ErrorKind::conditional_check_failed) {
    return redriven.error();
  }
  const auto found = core_->look(id);
  return found ? redrive_refused(*found, core_->clock().wall_now(), redriven.error()) : found.error();
}

Result<std::optional<Message>> QueueClient::get(const std::string& id) {
  if (id.empty()) {
    return no_id();
  }
  auto found = core_->look(id);
  if (found) {
    return std::optional(std::move(*found));
  }
  if (found.error().kind() == ErrorKind::id_not_found) {
    return std::optional<Message>();
  }
  return found.error();
}

Result<void> QueueClient::replace(const Message& message) {
  if (message.id.empty()) {
    return no_id();
  }
  if (std::string wrong = detail::objection(message.data, message.content_type); !wrong.empty()) {
    return Error(ErrorKind::marshaling_attribute, std::move(wrong));
  }
  const queue::StoredMessage record = detail::to_store(message, core_->clock().wall_now());
  const auto put = core_->oper().put(std::span(&record, 1), queue::PutMode::replace, core_->deadline()).front();
  return put.status == queue::PutStatus::written ? Result<void>()
                                                 : Result<void>(core_->error(put.error, Asked::write_content));
}

}  // namespace sluice::client
