#include "host/cli/drop_in/dynamomq_operations.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/bulk_run.hpp"

namespace sluice::cli {

namespace {

using queue::ChangeAction;
using queue::Half;
using queue::StoredMessage;

constexpr std::size_t kListSize = 10;
constexpr std::size_t kPurgeBatch = 500;
constexpr Duration kVisibility = std::chrono::seconds(30);
constexpr Duration kRequestTime = std::chrono::seconds(30);
/// A look at a long half is many requests; each has its own time-out in the store.
constexpr Deadline kNoDeadline = Deadline::never();

Error id_not_provided() { return {ErrorCode::invalid, "ID was not provided."}; }

/// Content that DynamoMQ's own `enqueue-test` sends.
std::string test_body(const std::string& id) {
  constexpr std::array kItems{"Item-1", "Item-2", "Item-3"};
  JsonWriter json(JsonWriter::Layout::compact);
  const auto write = [](JsonWriter& each, const char* sku) { put_object(each, "SKU", sku, "is_packed", true); };
  put_object(json, "id", id, "items", array_of(kItems, write), "data_1", "Data 1", "data_2", "Data 2", "data_3",
             "Data 3");
  return json.take_text();
}

Error wrong_state(std::string_view why, const StoredMessage& message, WallTime now) {
  return {ErrorCode::conflict, "operation mark as restored from DLQ failed for status " +
                                   std::string(dynamomq_status(message, now)) + ": " + std::string(why) + "."};
}

}  // namespace

Error dynamomq_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::not_found:
      return {error.code(), "Provided ID was not found in the Dynamo DB."};
    case ErrorCode::duplicate_id:
      return {error.code(), "Provided ID was duplicated."};
    case ErrorCode::conflict:
      return {error.code(), "Condition on the 'version' attribute has failed: " + error.message() + "."};
    default:
      return {error.code(), "Failed DynamoDB API: " + error.message() + "."};
  }
}

DynamoMqOperations::DynamoMqOperations(QueueSession& session)
    : DynamoMqOperations({.queues = session.queues(),
                          .oper = session.oper(),
                          .queue = session.queue(),
                          .clock = session.clock(),
                          .mend = [&session](const Error& error) { return session.mend(error); }}) {}

Error DynamoMqOperations::worded(const Error& error) const {
  Error worded = dynamomq_error(error);
  constexpr std::string_view kJoint = "; ";
  std::string mend = seams_.mend(error);
  if (mend.size() <= kJoint.size()) {
    return worded;
  }
  mend.erase(0, kJoint.size());
  mend.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(mend.front())));
  return {error.code(), worded.message() + " " + mend};
}

void DynamoMqOperations::note_failure(BulkOutcome& outcome, const std::string& id, const Error& error) const {
  outcome.failures.push_back({id, error.message()});
  if (error.code() == ErrorCode::denied && !outcome.denied) {
    outcome.denied = error;
  }
}

Deadline DynamoMqOperations::deadline() const { return Deadline::after(seams_.clock, kRequestTime); }

Result<StoredMessage> DynamoMqOperations::get(const std::string& id) {
  if (id.empty()) {
    return id_not_provided();
  }
  return worded(seams_.oper.get(id, deadline()));
}

Result<void> DynamoMqOperations::change(const std::string& id, ChangeAction action) {
  if (id.empty()) {
    return id_not_provided();
  }
  const queue::Change change{.id = id, .action = action};
  const auto results = seams_.oper.change(std::span(&change, 1), deadline());
  if (results.front().status != queue::ChangeStatus::applied) {
    return worded(results.front().error);
  }
  return {};
}

Result<StoredMessage> DynamoMqOperations::change_and_get(const std::string& id, ChangeAction action) {
  SLUICE_PASS_ON(change(id, action));
  return get(id);
}

Result<void> DynamoMqOperations::remove(const std::string& id) {
  auto removed = change(id, ChangeAction::remove);
  if (removed.has_error() && removed.error().code() == ErrorCode::not_found) {
    return {};
  }
  return removed;
}

Result<StoredMessage> DynamoMqOperations::receive() {
  SLUICE_TRY(source, worded(seams_.queues.open_source({seams_.queue, Half::standard})));
  SLUICE_TRY(claimed, worded((*source)->claim({.max = 1, .visibility = kVisibility, .counts = true}, deadline())));
  if (claimed->deliveries.empty()) {
    return Error(ErrorCode::not_found, "Cannot proceed, queue is empty.");
  }
  return get(claimed->deliveries.front().message.id);
}

Result<StoredMessage> DynamoMqOperations::fail(const std::string& id) {
  return change_and_get(id, ChangeAction::set_visibility);
}

Result<void> DynamoMqOperations::invalid(const std::string& id) { return change(id, ChangeAction::dead_letter); }

Result<StoredMessage> DynamoMqOperations::redrive(const std::string& id) {
  auto found = get(id);
  if (found.has_error()) {
    return found;
  }
  const WallTime now = seams_.clock.wall_now();
  if (found->half != Half::dlq) {
    return wrong_state("can only redrive messages from DLQ", *found, now);
  }
  if (dynamomq_status(*found, now) != "READY") {
    return wrong_state("can only redrive messages from READY", *found, now);
  }
  return change_and_get(id, ChangeAction::redrive);
}

Result<StoredMessage> DynamoMqOperations::reset(const std::string& id) {
  auto message = change_and_get(id, ChangeAction::reset);
  if (message.has_error() && message.error().code() == ErrorCode::not_found) {
    return Error(ErrorCode::not_found, "not found message: " + id);
  }
  return message;
}

Result<queue::QueueOverview> DynamoMqOperations::overview(Half half) {
  return worded(seams_.oper.overview({.half = half, .exact = true}, kNoDeadline));
}

Result<std::vector<StoredMessage>> DynamoMqOperations::list() {
  std::vector<StoredMessage> messages;
  for (const Half half : {Half::standard, Half::dlq}) {
    if (messages.size() >= kListSize) {
      break;
    }
    SLUICE_TRY(page,
               worded(seams_.oper.list(
                   {.half = half, .limit = kListSize - messages.size(), .cursor = {}, .content = false}, deadline())));
    std::move(page->messages.begin(), page->messages.end(), std::back_inserter(messages));
  }
  std::stable_sort(messages.begin(), messages.end(), [](const StoredMessage& left, const StoredMessage& right) {
    return left.updated_at < right.updated_at;
  });
  return messages;
}

BulkOutcome DynamoMqOperations::enqueue_test() {
  const std::vector<std::string> ids{"A-101", "A-202", "A-303", "A-404"};
  BulkOutcome outcome;
  auto sender = seams_.queues.open_sender(seams_.queue);
  if (sender.has_error()) {
    for (const std::string& id : ids) {
      note_failure(outcome, id, worded(sender.error()));
    }
    return outcome;
  }
  for (const std::string& id : ids) {
    if (const auto removed = remove(id); removed.has_error()) {
      note_failure(outcome, id, removed.error());
      continue;
    }
    queue::NewMessage message{.id = id, .body = test_body(id), .content_type = std::string(queue::kJson)};
    const auto sent = (*sender)->send(std::span(&message, 1), deadline()).front();
    if (sent.status == queue::SendStatus::sent) {
      outcome.successes.push_back(id);
    } else {
      const Error duplicate(ErrorCode::duplicate_id, {});
      const bool taken = sent.status == queue::SendStatus::duplicate_id;
      note_failure(outcome, id, worded(taken ? duplicate : sent.error));
    }
  }
  return outcome;
}

Result<BulkOutcome> DynamoMqOperations::purge(const Progress& progress) {
  BulkOutcome outcome;
  for (const Half half : {Half::standard, Half::dlq}) {
    SLUICE_TRY(stopped, worded(purge_half(half, progress, outcome)));
    if (*stopped) {
      break;
    }
  }
  return outcome;
}

Result<bool> DynamoMqOperations::purge_half(Half half, const Progress& progress, BulkOutcome& outcome) {
  using Fate = operate::BulkOutcome::Fate;
  using State = operate::BulkRun::Step::State;
  operate::BulkPlan plan = operate::BulkPlan::removal_of_all(half);
  plan.page = kPurgeBatch;
  plan.batch = kPurgeBatch;
  operate::BulkRun run(seams_.oper, seams_.clock, std::move(plan));
  for (auto step = run.step(); step.state != State::finished; step = run.step()) {
    if (step.state == State::failed) {
      return step.error;
    }
    for (operate::BulkOutcome& message : step.outcomes) {
      if (message.fate == Fate::done || message.error.code() == ErrorCode::not_found) {
        outcome.successes.push_back(std::move(message.id));
      } else if (message.fate == Fate::failed || half == Half::dlq) {
        // What moved to the DLQ from the other half is removed there.
        note_failure(outcome, message.id, worded(message.error));
      }
    }
    if (!step.outcomes.empty() && !progress(outcome.successes.size())) {
      return true;
    }
  }
  return false;
}

}  // namespace sluice::cli
