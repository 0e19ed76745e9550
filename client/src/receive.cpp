#include <algorithm>
#include <array>
#include <utility>

#include "client/src/core.hpp"
#include "host/queue/arrivals.hpp"

namespace sluice::client {
namespace {

using detail::Asked;
using detail::Core;

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
      back.push_back({.receipt = detail::to_store(one.receipt), .action = queue::CompletionAction::release});
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

}  // namespace

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

}  // namespace sluice::client
