#include "host/cli/drop_in/dynamomq_operations.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <utility>

#include "base/text/base64.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/queue_report.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/operate/message_report.hpp"

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

/// As Go's RFC3339Nano: no zeros at the end of the fraction, and no fraction when it is zero.
std::string without_trailing_zeros(std::string time) {
  time.pop_back();
  time.erase(time.find_last_not_of('0') + 1);
  if (time.back() == '.') {
    time.pop_back();
  }
  return time + 'Z';
}

/// What `write` writes, as Go's encoder would have printed it.
template <typename Write>
std::string go_document(Write write) {
  JsonWriter json(JsonWriter::Layout::indented);
  write(json);
  return escaped_as_go_does(json.take_line());
}

void write_time(JsonWriter& json, const queue::StoredMessage& stored, std::string_view name,
                const std::optional<WallTime>& time) {
  const auto odd = stored.odd.find(name);
  json.member(name, odd != stored.odd.end() ? odd->second
                    : time                  ? without_trailing_zeros(format_timestamp(*time))
                                            : std::string());
}

void write_record(JsonWriter& json, const queue::StoredMessage& stored) {
  json.member("receive_count", stored.message.attempt);
  json.member("queue_type", operate::half_text(stored));
  json.member("version", stored.version);
  write_time(json, stored, "created_at", stored.created_at);
  write_time(json, stored, "updated_at", stored.updated_at);
  write_time(json, stored, "sent_at", stored.message.sent_at);
  write_time(json, stored, "received_at", stored.received_at);
  write_time(json, stored, "invisible_until_at", stored.invisible_until);
}

void write_data(JsonWriter& json, const queue::Message& message) {
  if (message.content_type == queue::kJson) {
    if (auto value = operate::parse_json(message.body)) {
      return operate::write(json, with_sorted_keys(std::move(*value)));
    }
  }
  // To Go's reader the type of `data` decides, whatever its bytes are.
  const bool binary = !is_utf8(message.body) || message.content_type == queue::kOctetStream;
  json.value(binary ? base64(message.body) : message.body);
}

void write_message(JsonWriter& json, const queue::StoredMessage& message) {
  put_object(
      json, "id", message.message.id, "data", [&](JsonWriter& member) { write_data(member, message.message); },
      [&](JsonWriter& members) { write_record(members, message); });
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
      outcome.failures.push_back({id, worded(sender.error())});
    }
    return outcome;
  }
  seams_.oper.begin({.what = "enqueue-test of queue " + seams_.queue});
  for (const std::string& id : ids) {
    if (const auto removed = remove(id); removed.has_error()) {
      outcome.failures.push_back({id, removed.error()});
      continue;
    }
    queue::NewMessage message{.id = id, .body = test_body(id), .content_type = std::string(queue::kJson)};
    const auto sent = (*sender)->send(std::span(&message, 1), deadline()).front();
    if (sent.status == queue::SendStatus::sent) {
      outcome.successes.push_back(id);
    } else {
      const Error duplicate(ErrorCode::duplicate_id, {});
      const bool taken = sent.status == queue::SendStatus::duplicate_id;
      outcome.failures.push_back({id, worded(taken ? duplicate : sent.error)});
    }
  }
  finish_deed(outcome, {});
  return outcome;
}

Result<BulkOutcome> DynamoMqOperations::purge(const Progress& progress) {
  BulkOutcome outcome;
  seams_.oper.begin({.what = "purge both halves of queue " + seams_.queue});
  std::string stopped_by;
  Result<bool> stopped = false;
  for (const Half half : {Half::standard, Half::dlq}) {
    stopped = purge_half(half, progress, outcome);
    stopped_by = !stopped ? stopped.error().message() : *stopped ? "interrupted" : "";
    if (!stopped_by.empty()) {
      break;
    }
  }
  finish_deed(outcome, stopped_by);
  SLUICE_PASS_ON(worded(std::move(stopped)));
  return outcome;
}

void DynamoMqOperations::finish_deed(const BulkOutcome& outcome, const std::string& stopped_by) {
  // It is done, whether or not that can be written.
  static_cast<void>(seams_.oper.finish({.changed = outcome.successes.size(), .failed = outcome.failures.size()},
                                       stopped_by, deadline()));
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
        outcome.failures.push_back({std::move(message.id), worded(message.error)});
      }
    }
    if (!step.outcomes.empty() && !progress(outcome.successes.size())) {
      return true;
    }
  }
  return false;
}

std::string dynamomq_message(const queue::StoredMessage& message) {
  return go_document([&](JsonWriter& json) { write_message(json, message); });
}

std::string dynamomq_redriven(const queue::StoredMessage& message) {
  const auto write = [&message](JsonWriter& json) { write_message(json, message); };
  return go_document([&write](JsonWriter& json) { put_object(json, "RedroveMessage", write); });
}

std::string dynamomq_system_info(const queue::StoredMessage& message, WallTime now) {
  return go_document([&](JsonWriter& json) {
    put_object(json, "id", message.message.id, "status", dynamomq_status(message, now),
               [&message](JsonWriter& members) { write_record(members, message); });
  });
}

std::string dynamomq_data(const queue::Message& message) {
  return go_document([&](JsonWriter& json) { write_data(json, message); });
}

std::string dynamomq_statuses(const std::vector<queue::StoredMessage>& messages, WallTime now) {
  const auto all = array_of(messages, [now](JsonWriter& each, const queue::StoredMessage& message) {
    put_object(each, "id", message.message.id, "status", dynamomq_status(message, now), "queue_type",
               operate::half_text(message));
  });
  return go_document([&](JsonWriter& json) { put_object(json, "statuses", or_null(!messages.empty(), all)); });
}

std::string dynamomq_stats(queue::Half half, const queue::QueueOverview& overview) {
  const auto write = half == queue::Half::dlq ? write_dlq_stats : write_queue_stats;
  return go_document(
      [&](JsonWriter& json) { put_object(json, [&](JsonWriter& members) { write(members, overview); }); });
}

std::string dynamomq_outcome(const BulkOutcome& outcome, bool always_failures) {
  return go_document([&](JsonWriter& json) { write_outcome(json, outcome, true, always_failures); });
}

void write_outcome(JsonWriter& json, const BulkOutcome& outcome, bool nulls, bool always_failures) {
  const auto failure = [](JsonWriter& each, const BulkOutcome::Failed& failed) {
    put_object(each, "ID", failed.id, "Error", failed.error.message());
  };
  const auto failures = or_null(!nulls || !outcome.failures.empty(), array_of(outcome.failures, failure));
  put_object(json, "successes", or_null(!nulls || !outcome.successes.empty(), outcome.successes),
             member_if(!outcome.failures.empty() || always_failures, "failures", failures));
}

std::string_view dynamomq_status(const queue::StoredMessage& message, WallTime now) {
  return message.invisible_until && now <= *message.invisible_until ? "PROCESSING" : "READY";
}

operate::JsonValue with_sorted_keys(operate::JsonValue value) {
  std::map<std::string, operate::JsonValue> members;
  for (std::size_t index = 0; index < value.items.size(); ++index) {
    operate::JsonValue item = with_sorted_keys(std::move(value.items[index]));
    if (value.kind == operate::JsonValue::Kind::object) {
      members[value.keys[index]] = std::move(item);
    } else {
      value.items[index] = std::move(item);
    }
  }
  if (value.kind == operate::JsonValue::Kind::object) {
    value.keys.clear();
    value.items.clear();
    for (auto& [key, member] : members) {
      value.add(key, std::move(member));
    }
  }
  return value;
}

std::string escaped_as_go_does(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char byte = json[at];
    const std::string_view three = json.substr(at, 3);
    if (byte == '<' || byte == '>' || byte == '&') {
      out += byte == '<' ? "\\u003c" : byte == '>' ? "\\u003e" : "\\u0026";
    } else if (three == "\xe2\x80\xa8" || three == "\xe2\x80\xa9") {
      out += three.back() == '\xa8' ? "\\u2028" : "\\u2029";
      at += 2;
    } else {
      out += byte;
    }
  }
  return out;
}

}  // namespace sluice::cli
