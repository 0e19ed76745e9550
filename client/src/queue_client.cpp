#include "sluice/client/queue_client.hpp"

#include <algorithm>
#include <array>
#include <iterator>
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

constexpr Duration kDefaultVisibility = std::chrono::seconds(30);
// Short of the last time that a store can write, so that what is written is the time of the claim and this.
constexpr Duration kLongestVisibility = std::chrono::hours(24 * 365 * 100);
// How many messages are claimed to find the first one among them.
constexpr std::array<std::size_t, 3> kFifoLooks{1, 25, 25};

struct Wish {
  QueueType type;
  std::size_t max;
  Duration visibility;
};

/// What a look has brought, and when there may be more.
struct Taken {
  std::vector<ReceivedMessage> received{};
  std::optional<Duration> next_due{};
};

constexpr Duration kLongestWait = std::chrono::seconds(20);

// A source hands out alone what its last holder has said nothing of, so that it takes several claims to fill a hand.
Result<Taken> claim(const Core& core, const Wish& wish, Deadline deadline) {
  Taken taken;
  std::vector<ReceivedMessage>& received = taken.received;
  while (received.size() < wish.max) {
    queue::ClaimRequest request{.max = wish.max - received.size(), .visibility = wish.visibility, .counts = true};
    request.rules.max_in_flight = core.settings().options.max_in_flight;
    auto claimed = core.source(wish.type).claim(request, deadline);
    if (!claimed && received.empty()) {
      return core.error(claimed.error(), Asked::read);
    }
    if (!claimed || claimed->deliveries.empty()) {
      taken.next_due = claimed ? claimed->next_due : std::nullopt;
      break;
    }
    const bool alone = claimed->deliveries.front().suspect;
    for (queue::Delivery& one : claimed->deliveries) {
      received.push_back(detail::to_public(std::move(one), wish.type, wish.visibility));
    }
    if (!alone) {
      break;
    }
  }
  return taken;
}

// Puts all but one back as if nobody had touched them. A release that fails leaves a message hidden until its time is
// over, as a receiver that died would.
void release_others(const Core& core, QueueType type, const std::vector<ReceivedMessage>& received,
                    const std::string& kept) {
  std::vector<queue::Completion> back;
  for (const ReceivedMessage& one : received) {
    if (one.message.id != kept) {
      back.push_back({.receipt = detail::to_store(one.receipt),
                      .action = queue::CompletionAction::release,
                      .marks = std::nullopt});
    }
  }
  if (!back.empty()) {
    (void)core.source(type).settle(back, core.deadline());
  }
}

// The first message of the queue, and only if it is that one which is due. A store that remembers what it has seen may
// claim others first, when messages come back out of their order; those are held until it has come, or is not to be
// had.
Result<Taken> claim_first(const Core& core, const Wish& wish, Deadline deadline) {
  const auto head = core.oper().list({.half = detail::to_store(wish.type), .limit = 1, .content = false}, deadline);
  if (!head) {
    return core.error(head.error(), Asked::read);
  }
  if (head->messages.empty() || head->messages.front().state(core.clock().wall_now()) != queue::MessageState::ready) {
    return Taken();
  }
  const std::string& id = head->messages.front().message.id;
  const auto is_head = [&](const ReceivedMessage& one) { return one.message.id == id; };
  std::vector<ReceivedMessage> held;
  for (const std::size_t count : kFifoLooks) {
    auto received = claim(core, {wish.type, count, wish.visibility}, deadline);
    if (!received) {
      release_others(core, wish.type, held, {});
      return received;
    }
    std::move(received->received.begin(), received->received.end(), std::back_inserter(held));
    if (received->received.empty() || std::any_of(held.begin(), held.end(), is_head)) {
      break;
    }
  }
  release_others(core, wish.type, held, id);
  std::erase_if(held, [&](const ReceivedMessage& one) { return !is_head(one); });
  return Taken{std::move(held), {}};
}

constexpr std::size_t kStatsIds = 100;
constexpr std::size_t kErrorGroups = 10;
constexpr std::size_t kDefaultListSize = 10;
// What a list's cursor begins with: the half that it stands in.
constexpr char kStandardMark = 'S';
constexpr char kDlqMark = 'D';

/// A place in a walk over one half or both.
struct Place {
  QueueType type = QueueType::standard;
  std::string cursor;
};

std::optional<Place> place_of(const ListOptions& options) {
  if (options.cursor.empty()) {
    return Place{options.queue_type.value_or(QueueType::standard), {}};
  }
  const char mark = options.cursor.front();
  const QueueType type = mark == kDlqMark ? QueueType::dlq : QueueType::standard;
  if ((mark != kStandardMark && mark != kDlqMark) || (options.queue_type && *options.queue_type != type)) {
    return std::nullopt;
  }
  return Place{type, options.cursor.substr(1)};
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
  return core_->changed({.id = id, .action = queue::ChangeAction::set_visibility, .after = timeout});
}

Result<Receipt> QueueClient::change_visibility(const Receipt& receipt, Duration timeout) {
  if (receipt.id.empty()) {
    return no_id();
  }
  if (timeout <= Duration::zero()) {
    const auto given_up = settle(*core_, receipt, queue::CompletionAction::retry, {});
    return given_up ? Result<Receipt>(receipt) : Result<Receipt>(given_up.error());
  }
  const bool known = receipt.received_at != Time{};
  const Duration held = known ? core_->clock().wall_now() - receipt.received_at : Duration::zero();
  const Duration lease = core_->settings().options.max_lease;
  // Compared so that no sum can overflow, however long a lease may be.
  if (timeout > lease || held > lease - timeout) {
    return beyond_lease(timeout, lease);
  }
  const queue::Receipt mine = detail::to_store(receipt);
  const auto extended = core_->source(receipt.queue_type)
                            .extend(std::span(&mine, 1), std::min(timeout, kLongestVisibility), core_->deadline())
                            .front();
  const auto fate = outcome(*core_, {extended.status, extended.error});
  if (!fate) {
    return fate.error();
  }
  return Receipt{extended.receipt.id, receipt.queue_type, extended.receipt.version, extended.receipt.locator,
                 receipt.received_at};
}

Result<void> QueueClient::delete_message(const std::string& id) {
  auto removed = core_->change({.id = id, .action = queue::ChangeAction::remove});
  if (!removed && removed.error().kind() == ErrorKind::id_not_found) {
    return {};
  }
  return removed;
}

Result<void> QueueClient::delete_message(const std::string& id, std::int64_t version) {
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
  return core_->changed({.id = id, .action = queue::ChangeAction::dead_letter, .failure = failure_of(*core_, reason)});
}

Result<void> QueueClient::move_to_dlq(const Receipt& receipt, const std::string& reason) {
  return settle(*core_, receipt, queue::CompletionAction::dead_letter, failure_of(*core_, reason));
}

Result<Message> QueueClient::redrive(const std::string& id) {
  auto redriven = core_->changed({.id = id, .action = queue::ChangeAction::redrive});
  if (redriven || redriven.error().kind() != ErrorKind::conditional_check_failed) {
    return redriven;
  }
  const auto found = core_->look(id);
  return found ? redrive_refused(*found, core_->clock().wall_now(), redriven.error()) : found.error();
}

Result<std::optional<Message>> QueueClient::get(const std::string& id) {
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

Result<std::vector<ReceivedMessage>> QueueClient::receive(std::size_t max, const ReceiveOptions& options) {
  const Duration visibility =
      options.visibility_timeout > Duration::zero() ? options.visibility_timeout : kDefaultVisibility;
  const Wish wish{options.queue_type, max, std::min(visibility, kLongestVisibility)};
  if (max == 0) {
    return std::vector<ReceivedMessage>();
  }
  if (options.wait_time < Duration::zero() || options.wait_time > kLongestWait) {
    const auto given = std::chrono::duration_cast<std::chrono::seconds>(options.wait_time).count();
    return Error(ErrorKind::invalid_parameter_value, "Value " + std::to_string(given) +
                                                         " for parameter WaitTimeSeconds is invalid. Reason: Must be "
                                                         ">= 0 and <= 20, if provided.");
  }
  const SteadyTime end = core_->clock().steady_now() + options.wait_time;
  queue::LookPace pace;
  while (true) {
    // Only who waits makes the source listen.
    const bool waits = options.wait_time > Duration::zero();
    const std::uint64_t heard = waits ? core_->arrivals(wish.type).heard() : 0;
    auto taken = core_->settings().options.use_fifo ? claim_first(*core_, wish, core_->deadline())
                                                    : claim(*core_, wish, core_->deadline());
    const SteadyTime now = core_->clock().steady_now();
    if (!taken || !taken->received.empty() || now >= end || options.stop.stop_requested()) {
      return taken ? Result<std::vector<ReceivedMessage>>(std::move(taken->received)) : taken.error();
    }
    core_->arrivals(wish.type).wait(heard, pace.next(now, end, taken->next_due), options.stop);
  }
}

Result<ReceivedMessage> QueueClient::receive(const ReceiveOptions& options) {
  auto received = receive(1, options);
  if (!received) {
    return received.error();
  }
  if (received->empty()) {
    return Error(ErrorKind::empty_queue);
  }
  return std::move(received->front());
}

Result<QueueStats> QueueClient::queue_stats() {
  auto seen =
      core_->oper().overview({.half = queue::Half::standard, .ids = kStatsIds, .exact = true}, core_->deadline());
  if (!seen) {
    return core_->error(seen.error(), Asked::read);
  }
  QueueStats stats;
  stats.first_100_ids_in_queue = std::move(seen->first_ids);
  stats.first_100_ids_in_queue_processing = std::move(seen->first_in_flight_ids);
  stats.total_messages_in_queue = seen->counts.total();
  stats.total_messages_in_queue_processing = seen->counts.hidden();
  stats.total_messages_in_queue_ready = seen->counts.total() - seen->counts.hidden();
  stats.total_messages_in_queue_delayed = seen->counts.delayed;
  return stats;
}

Result<DlqStats> QueueClient::dlq_stats() {
  auto seen = core_->oper().overview(
      {.half = queue::Half::dlq, .ids = kStatsIds, .errors = kErrorGroups, .exact = true}, core_->deadline());
  if (!seen) {
    return core_->error(seen.error(), Asked::read);
  }
  DlqStats stats;
  stats.first_100_ids_in_queue = std::move(seen->first_ids);
  stats.total_messages_in_dlq = seen->counts.total();
  for (queue::ErrorGroup& group : seen->errors) {
    stats.errors.push_back({std::move(group.error), group.count, std::move(group.example)});
  }
  return stats;
}

Result<MessageList> QueueClient::list(const ListOptions& options) {
  auto place = place_of(options);
  if (!place) {
    return Error(ErrorKind::building_expression, "the cursor '" + options.cursor + "' is none of this list");
  }
  const std::size_t size = options.size > 0 ? static_cast<std::size_t>(options.size) : kDefaultListSize;
  const Deadline deadline = core_->deadline();
  MessageList list;
  while (list.messages.size() < size) {
    auto page = core_->oper().list(
        {.half = detail::to_store(place->type), .limit = size - list.messages.size(), .cursor = place->cursor},
        deadline);
    if (!page) {
      return core_->error(page.error(), Asked::read);
    }
    for (queue::StoredMessage& stored : page->messages) {
      list.messages.push_back(detail::to_public(std::move(stored)));
    }
    place->cursor = std::move(page->next);
    if (!place->cursor.empty()) {
      list.next = (place->type == QueueType::dlq ? kDlqMark : kStandardMark) + place->cursor;
    } else if (place->type == QueueType::standard && !options.queue_type) {
      place->type = QueueType::dlq;
      list.next = kDlqMark;
    } else {
      list.next.clear();
      break;
    }
  }
  std::stable_sort(list.messages.begin(), list.messages.end(),
                   [](const Message& a, const Message& b) { return a.updated_at < b.updated_at; });
  return list;
}

}  // namespace sluice::client
