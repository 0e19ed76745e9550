#include "host/work/claimer.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace sluice::work {
namespace {

constexpr Duration kFirstPoll = std::chrono::milliseconds(10);
constexpr Duration kLastPause = std::chrono::seconds(1);
constexpr Duration kFirstDue = std::chrono::milliseconds(1);
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLastRetry = std::chrono::seconds(10);
// So many messages given back in a row are worth a line in the log.
constexpr std::uint64_t kWorthALine = 100;

}  // namespace

Claimer::Claimer(const Settings& settings, Random& random, SteadyTime now)
    : random_(random),
      limiter_(settings.rate_limit, now),
      empty_backoff_(kFirstPoll, std::max(kFirstPoll, settings.poll_interval)),
      due_backoff_(kFirstDue, kLastPause),
      failure_backoff_(kFirstRetry, kLastRetry),
      given_back_backoff_(kFirstPoll, kLastPause),
      poll_at_(now) {}

Claimer::Order Claimer::next(const Room& room, SteadyTime now) {
  SLUICE_ASSERT(!claiming_);
  // A wake cuts the wait for new messages short, not the back-off from a store that fails or from a handler that gives
  // everything back, whose own releases would wake it.
  if (now < poll_at_ && (!woken_ || failures_.going_on() || given_back_ > 0)) {
    return {0, true, poll_at_};
  }
  waits_for_room_ = room.messages == 0;
  if (room.messages == 0) {
    return {};
  }
  const std::size_t count = std::min(room.messages, limiter_.available(now));
  if (count == 0) {
    return {0, true, limiter_.next(now)};
  }
  limiter_.take(count);
  claiming_ = true;
  woken_ = false;
  order_ = {count, room.suspects, now};
  return order_;
}

void Claimer::claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& notes) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  limiter_.refund(order_.count - std::min(order_.count, count));
  if (failures_.succeeded()) {
    failure_backoff_.reset();
    notes.line(observe::LogLevel::info, "claims work again");
  }
  found_nothing_ = count == 0 && order_.suspects;
  if (count > 0) {
    empty_backoff_.reset();
    due_backoff_.reset();
    poll_at_ = given_back_ > 0 ? now + given_back_backoff_.next(random_) : now;
    return;
  }
  Duration wait = empty_backoff_.next(random_);
  if (next_due && *next_due < wait) {
    // Exactly then; but what is said to be due and is not there must not be asked for without a pause.
    wait = std::max(*next_due, std::min(wait, due_backoff_.next(random_)));
  }
  poll_at_ = now + wait;
}

void Claimer::failed(const Error& error, SteadyTime now, StepEffects& notes) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  found_nothing_ = false;
  limiter_.refund(order_.count);
  poll_at_ = now + failure_backoff_.next(random_);
  ++notes.claim_failed;
  if (failures_.failed(error, now)) {
    notes.line(observe::LogLevel::error, "cannot claim messages, trying again", {}, error.message());
  }
}

void Claimer::wake(StepEffects& notes) {
  woken_ = true;
  empty_backoff_.reset();
  notes.poller = notes.poller || !claiming_;
}

void Claimer::room_made(StepEffects& notes) {
  waits_for_room_ = false;
  notes.poller = true;
}

void Claimer::lane_free(StepEffects& notes) {
  if (!order_.suspects) {
    // The last claim passed suspects over.
    order_.suspects = true;
    found_nothing_ = false;
    wake(notes);
  }
}

// What is given back is ready at once. Claimed again at once, it would go round as fast as the store allows.
void Claimer::attempt_ended(bool gave_back, StepEffects& notes) {
  if (!gave_back) {
    given_back_ = 0;
    given_back_backoff_.reset();
  } else if (++given_back_ == kWorthALine) {
    notes.line(observe::LogLevel::warn, "the handler gives back every message; claiming more slowly");
  }
}

}  // namespace sluice::work
