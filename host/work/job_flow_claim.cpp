// Claims and the hand-over to workers.
#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "host/work/job_flow.hpp"

namespace sluice::work {
namespace {

constexpr Duration kFirstPoll = std::chrono::milliseconds(10);
constexpr Duration kLastPoll = std::chrono::seconds(1);
constexpr Duration kFirstDue = std::chrono::milliseconds(1);
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLastRetry = std::chrono::seconds(10);

}  // namespace

JobFlow::JobFlow(const Settings& settings, FailurePolicy policy, std::vector<Hand*> hands, Random& random,
                 SteadyTime now)
    : settings_(settings),
      policy_(std::move(policy)),
      terms_(settings.visibility),
      hands_(std::move(hands)),
      random_(random),
      hand_states_(hands_.size()),
      free_hands_(hands_.size()),
      limiter_(settings.rate_limit, now),
      empty_backoff_(kFirstPoll, kLastPoll),
      due_backoff_(kFirstDue, kLastPoll),
      failure_backoff_(kFirstRetry, kLastRetry),
      given_back_backoff_(kFirstPoll, kLastPoll),
      poll_at_(now) {
  SLUICE_ASSERT(!hands_.empty());
}

std::size_t JobFlow::room(SteadyTime now) const {
  if (book_.size() >= kMaxHeld) {
    return 0;
  }
  ClaimSizer::Pool pool{.free = free_hands_, .active = free_hands_, .queued = queued_.size()};
  for (const HandState& hand : hand_states_) {
    pool.active += hand.busy && now - hand.dealt_at < kStartHorizon ? 1 : 0;
  }
  return std::min(sizer_.room(pool), kMaxHeld - book_.size());
}

JobFlow::ClaimOrder JobFlow::next_claim(SteadyTime now) {
  SLUICE_ASSERT(!claiming_);
  if (phase_ != Phase::running) {
    return {};
  }
  // A wake cuts the wait for new messages short, not the back-off from a store that fails or from a handler that gives
  // everything back, whose own releases would wake it.
  if (now < poll_at_ && (!woken_ || claim_failures_.going_on() || given_back_ > 0)) {
    return {0, poll_at_};
  }
  const std::size_t wanted = room(now);
  waits_for_room_ = wanted == 0;
  if (wanted == 0) {
    return {};
  }
  asked_ = std::min(wanted, limiter_.available(now));
  if (asked_ == 0) {
    return {0, limiter_.next(now)};
  }
  limiter_.take(asked_);
  claiming_ = true;
  woken_ = false;
  return {asked_, now};
}

void JobFlow::wake(Notes& notes) {
  woken_ = true;
  empty_backoff_.reset();
  notes.poller = !claiming_;
}

void JobFlow::taken_back(std::span<const queue::Receipt> receipts, Notes& notes) {
  std::set<std::pair<std::string_view, std::int64_t>> gone;
  for (const queue::Receipt& receipt : receipts) {
    gone.insert({receipt.id, receipt.version});
  }
  // Backwards, because a task that ends gives its place to the last one.
  for (std::size_t i = book_.size(); i-- > 0;) {
    Task& task = *book_.tasks()[i];
    if (!task.settling && gone.contains({task.lease.receipt.id, task.lease.receipt.version})) {
      lose(task, notes);
      book_.tidy(task);
    }
  }
  check_drained(notes);
}

void JobFlow::claimed(Result<queue::Claimed> result, SteadyTime now, Notes& notes) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  if (!result) {
    limiter_.refund(asked_);
    claim_failed(result.error(), now, notes);
    check_drained(notes);
    return;
  }
  std::vector<queue::Delivery>& deliveries = result->deliveries;
  limiter_.refund(asked_ - std::min(asked_, deliveries.size()));
  if (claim_failures_.succeeded()) {
    failure_backoff_.reset();
    notes.line(observe::LogLevel::info, "claims work again");
  }
  wait_for_more(*result, now);
  ledger_.claimed(deliveries.size());
  notes.claimed += deliveries.size();
  if (phase_ == Phase::ended) {
    // The answer came after the end: nobody is left to release them, they come back when their leases run out.
    ledger_.close();
    return;
  }
  std::size_t bytes = 0;
  for (queue::Delivery& delivery : deliveries) {
    bytes += delivery.message.body.size();
    admit(std::move(delivery), now, notes);
  }
  sizer_.received(bytes, deliveries.size());
  if (!deliveries.empty()) {
    call_workers(notes);
    call_settler(now, notes);
    note_held(notes);
  }
  check_drained(notes);
}

void JobFlow::wait_for_more(const queue::Claimed& claimed, SteadyTime now) {
  found_nothing_ = claimed.deliveries.empty();
  if (!found_nothing_) {
    empty_backoff_.reset();
    due_backoff_.reset();
    poll_at_ = given_back_ > 0 ? now + given_back_backoff_.next(random_) : now;
    return;
  }
  Duration wait = empty_backoff_.next(random_);
  if (claimed.next_due && *claimed.next_due < wait) {
    // Exactly then; but what is said to be due and is not there must not be asked for without a pause.
    wait = std::max(*claimed.next_due, std::min(wait, due_backoff_.next(random_)));
  }
  poll_at_ = now + wait;
}

void JobFlow::admit(queue::Delivery delivery, SteadyTime now, Notes& notes) {
  Task& task =
      book_.add(std::move(delivery.message), terms_.granted(std::move(delivery.receipt), delivery.leased_until));
  call_keeper(task.lease.extend_at, notes);
  const std::uint32_t attempt = task.message.attempt;
  if (phase_ != Phase::running) {
    // The call was under way when the drain began.
    settle(task, put_back(), now);
  } else if (policy_.retry.exhausted(attempt)) {
    ++notes.exhausted;
    Disposition disposition = dispose_exhausted(attempt, policy_);
    notes.line(observe::LogLevel::warn, "attempts are used up, the handler is not run again", task.message.id,
               disposition.failure.error);
    settle(task, std::move(disposition), now);
  } else {
    ++task.holds;
    queued_.push_back(&task);
  }
}

void JobFlow::claim_failed(const Error& error, SteadyTime now, Notes& notes) {
  found_nothing_ = false;
  poll_at_ = now + failure_backoff_.next(random_);
  ++notes.claim_failed;
  if (claim_failures_.failed(now)) {
    notes.line(observe::LogLevel::error, "cannot claim messages, trying again", {}, error.message());
  }
}

bool JobFlow::deal(std::uint32_t hand, SteadyTime now, Notes& notes) {
  HandState& state = hand_states_[hand];
  SLUICE_ASSERT(!state.busy);
  const std::size_t count = phase_ == Phase::running ? sizer_.handful(queued_.size(), hands_.size()) : 0;
  state.dealt = 0;
  while (state.dealt < count && !queued_.empty()) {
    Task& task = *queued_.front();
    queued_.pop_front();
    if (!task.open) {
      drop_hold(task);
      continue;
    }
    // The queue's hold becomes the hand's.
    task.state = TaskState::dealt;
    task.hand = hand;
    hands_[hand]->deal(task, terms_.usable_until(task.lease));
    ++state.dealt;
  }
  if (state.dealt > 0) {
    state.busy = true;
    state.dealt_at = now;
    --free_hands_;
    if (state.dealt > 1) {
      call_keeper(now + kLateHandful, notes);
    }
    if (settings_.timeout > Duration::zero()) {
      call_keeper(now + settings_.timeout + settings_.stuck_grace, notes);
    }
  }
  ask_for_claims(now, notes);
  return state.dealt > 0;
}

void JobFlow::collect(std::uint32_t hand, SteadyTime now, Notes& notes) {
  HandState& state = hand_states_[hand];
  if (std::exchange(state.busy, false)) {
    ++free_hands_;
  }
  collect_finished(hand, now, notes);
  call_settler(now, notes);
  check_drained(notes);
}

void JobFlow::ask_for_claims(SteadyTime now, Notes& notes) {
  if (waits_for_room_ && phase_ == Phase::running && room(now) > 0) {
    waits_for_room_ = false;
    notes.poller = true;
  }
}

void JobFlow::call_workers(Notes& notes) const {
  const std::size_t handful = std::max<std::size_t>(1, sizer_.handful(queued_.size(), hands_.size()));
  notes.workers = std::max(notes.workers, std::min(free_hands_, (queued_.size() + handful - 1) / handful));
}

bool JobFlow::quiescent() const {
  return phase_ == Phase::running && found_nothing_ && !claiming_ && !woken_ && ledger_.open() == 0;
}

void JobFlow::note_held(Notes& notes) const {
  notes.held_changed = true;
  notes.held = static_cast<std::int64_t>(book_.size());
}

}  // namespace sluice::work
