// Outcomes and their settlement.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "host/work/job_flow.hpp"

namespace sluice::work {
namespace {

// Handlers faster than this come back while a settlement lingers.
constexpr Duration kQuick = std::chrono::microseconds(200);
// Attempts shorter than this are counted as one mean for each handful.
constexpr Duration kCountedAlone = std::chrono::milliseconds(1);
// A settlement that the store refuses for good is not worth more tries.
constexpr std::uint32_t kMaxRefusals = 10;

// So many messages given back in a row are worth a line in the log.
constexpr std::uint64_t kWorthALine = 100;

// What an attempt that failed is logged as; whether there is another one is what a reader wants to know first.
void note_failed(const Task& task, const plugin::Outcome& outcome, Notes& notes) {
  const Ending ending = task.disposition.ending;
  const bool fault = outcome.status == plugin::OutcomeStatus::fault;
  auto level = observe::LogLevel::warn;
  std::string_view text;
  if (ending == Ending::rejected) {
    text = fault ? "the handler failed in the last attempt, the message goes to the DLQ"
                 : "not retried after the last attempt, the message goes to the DLQ";
  } else if (ending == Ending::discarded) {
    text = fault ? "the handler failed in the last attempt, the message is discarded"
                 : "not retried after the last attempt, the message is discarded";
  } else {
    level = fault ? observe::LogLevel::warn : observe::LogLevel::info;
    text = fault ? "the handler failed" : "to be retried";
  }
  notes.line(level, text, task.message.id, outcome.reason);
}

bool may_have_happened(const Error& error) {
  return error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
}

}  // namespace

void JobFlow::collect_finished(std::uint32_t hand, SteadyTime now, Notes& notes) {
  std::vector<Hand::Finished> finished = std::move(finished_scratch_);
  finished.clear();
  hands_[hand]->collect(finished);
  Duration quick{};
  std::size_t quick_count = 0;
  for (Hand::Finished& one : finished) {
    if (!one.expired && one.took < kCountedAlone) {
      quick += one.took;
      ++quick_count;
    } else if (!one.expired) {
      sizer_.handled(one.took, 1);
      notes.handler_times.emplace_back(one.took, 1);
    }
    take_over(one, now, notes);
  }
  if (quick_count > 0) {
    sizer_.handled(quick, quick_count);
    notes.handler_times.emplace_back(quick / static_cast<Duration::rep>(quick_count), quick_count);
  }
  finished_scratch_ = std::move(finished);
}

// What is given back is ready at once. Claimed again at once, it would go round as fast as the store allows.
void JobFlow::note_given_back(const plugin::Outcome& outcome, Notes& notes) {
  if (outcome.status != plugin::OutcomeStatus::release) {
    given_back_ = 0;
    given_back_backoff_.reset();
  } else if (++given_back_ == kWorthALine) {
    notes.line(observe::LogLevel::warn, "the handler gives back every message; claiming more slowly");
  }
}

void JobFlow::take_over(Hand::Finished& finished, SteadyTime now, Notes& notes) {
  Task& task = *finished.task;
  if (!task.abandoned && task.open && phase_ != Phase::ended) {
    settle(task, dispose(finished.outcome, task.message.attempt, policy_, random_), now);
  }
  if (!finished.expired) {
    notes.outcome(finished.outcome.status);
    note_given_back(finished.outcome, notes);
    log_outcome(task, finished.outcome, notes);
  }
  // Nobody reads the body any more, and it may be large.
  task.message.body = {};
  drop_hold(task);
}

void JobFlow::log_outcome(const Task& task, const plugin::Outcome& outcome, Notes& notes) const {
  using observe::LogLevel;
  using plugin::OutcomeStatus;
  if (task.stuck) {
    notes.line(LogLevel::warn, "a stuck handler has returned", task.message.id, outcome.reason);
  }
  switch (outcome.status) {
    case OutcomeStatus::reject:
      notes.line(LogLevel::warn, "rejected", task.message.id, outcome.reason);
      break;
    case OutcomeStatus::fault:
    case OutcomeStatus::crashed:
    case OutcomeStatus::retry:
      note_failed(task, outcome, notes);
      break;
    case OutcomeStatus::discard:
      notes.line(LogLevel::info, "discarded", task.message.id, outcome.reason);
      break;
    case OutcomeStatus::done:
    case OutcomeStatus::snooze:
    case OutcomeStatus::release:
      break;
  }
}

void JobFlow::settle(Task& task, Disposition disposition, SteadyTime now) {
  task.state = TaskState::finished;
  task.disposition = std::move(disposition);
  task.finished_at = now;
  settle_queue_.add(task, now);
}

bool JobFlow::more_is_coming() const {
  return phase_ == Phase::running && sizer_.handler_time() < kQuick &&
         (!queued_.empty() || free_hands_ < hands_.size());
}

void JobFlow::call_settler(SteadyTime now, Notes& notes) {
  const SteadyTime due = settle_queue_.due(now, more_is_coming());
  if (due < settler_wake_) {
    settler_wake_ = due;
    notes.settler = true;
  }
}

bool JobFlow::may_settle(Task& task, SteadyTime now, Notes& notes) {
  if (!task.open || phase_ == Phase::ended) {
    return false;
  }
  if (task.extending) {
    task.parked = true;
    return false;
  }
  if (!terms_.usable(task.lease, now)) {
    lose(task, notes);
    return false;
  }
  return true;
}

JobFlow::SettleOrder JobFlow::next_settlement(SteadyTime now, WallTime wall, Notes& notes) {
  SLUICE_ASSERT(!settling_);
  SettleOrder order;
  order.deadline = now + kStoreTimeout;
  order.wake = settle_queue_.due(now, more_is_coming());
  while (order.tasks.empty() && order.wake <= now) {
    for (Task* task : settle_queue_.take(now)) {
      if (!may_settle(*task, now, notes)) {
        drop_hold(*task);
        continue;
      }
      task->settling = true;
      Disposition& disposition = task->disposition;
      if (!disposition.failure.empty()) {
        disposition.failure.failed_at = wall;
      }
      order.deadline = std::min(order.deadline, task->lease.ends_at);
      order.tasks.push_back(task);
      order.completions.push_back({.receipt = std::move(task->lease.receipt),
                                   .action = disposition.action,
                                   .delay = disposition.delay,
                                   .failure = std::move(disposition.failure),
                                   .suspect = false});
    }
    order.wake = settle_queue_.due(now, more_is_coming());
  }
  settling_ = !order.tasks.empty();
  // While a call is under way the settler comes back by itself and needs no wake.
  settler_wake_ = settling_ ? SteadyTime::min() : order.wake;
  check_drained(notes);
  return order;
}

void JobFlow::settled(SettleOrder order, std::vector<queue::SettleResult> results, SteadyTime now, Notes& notes) {
  SLUICE_ASSERT(settling_);
  settling_ = false;
  const Error* failure = nullptr;
  static const Error kNoAnswer(ErrorCode::internal, "the store gave no result for a settlement");
  for (std::size_t i = 0; i < order.tasks.size(); ++i) {
    Task& task = *order.tasks[i];
    task.settling = false;
    if (i < results.size() && results[i].status == queue::SettleStatus::applied) {
      end(task, task.disposition.ending, notes);
    } else if (i < results.size() && results[i].status == queue::SettleStatus::lost) {
      lose(task, notes);
    } else {
      failure = i < results.size() ? &results[i].error : &kNoAnswer;
      task.lease.receipt = std::move(order.completions[i].receipt);
      task.disposition.failure = std::move(order.completions[i].failure);
      settle_failed(task, *failure, now, notes);
    }
    drop_hold(task);
  }
  if (failure != nullptr && settle_failures_.failed(now)) {
    notes.line(observe::LogLevel::error, "cannot settle messages, trying again", {}, failure->message());
  } else if (failure == nullptr && settle_failures_.succeeded()) {
    notes.line(observe::LogLevel::info, "settlements work again");
  }
  note_held(notes);
  ask_for_claims(now, notes);
  check_drained(notes);
}

void JobFlow::settle_failed(Task& task, const Error& error, SteadyTime now, Notes& notes) {
  ++notes.settle_failed;
  ++task.tries;
  task.unsure = may_have_happened(error);
  if (hard_) {
    // One try is all that a hard stop allows; what it did not write is stranded.
    return;
  }
  if (!task.unsure && !error.transient() && task.tries >= kMaxRefusals) {
    notes.line(observe::LogLevel::error, "the store refuses to settle; the message comes back when its lease ends",
               task.message.id, error.message());
    lose(task, notes);
    return;
  }
  settle_queue_.add_again(task, now, random_);
}

void JobFlow::end(Task& task, Ending ending, Notes& notes) {
  if (std::exchange(task.open, false) && phase_ != Phase::ended) {
    ledger_.ended(ending);
    check_drained(notes);
  }
}

void JobFlow::lose(Task& task, Notes& notes) {
  if (!task.open) {
    return;
  }
  const bool in_hand = !task.abandoned && task.state == TaskState::dealt;
  task.abandoned = true;
  if (in_hand) {
    hands_[task.hand]->lose_lease(task);
  }
  if (phase_ != Phase::ended) {
    ++notes.lost;
    notes.line(observe::LogLevel::warn, "the lease is lost, somebody else gets the message", task.message.id);
  }
  end(task, Ending::lost, notes);
}

void JobFlow::drop_hold(Task& task) {
  SLUICE_ASSERT(task.holds > 0);
  --task.holds;
  book_.tidy(task);
}

}  // namespace sluice::work
