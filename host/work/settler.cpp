#include "host/work/settler.hpp"

#include <tuple>
#include <utility>

namespace sluice::work {

void SettleQueue::ripen(SteadyTime now) {
  const auto ripe = again_.upper_bound(now);
  // Those of before go first.
  for (auto next = ripe; next != again_.begin();) {
    Task* const task = (--next)->second;
    of(*task).push_front(task);
  }
  again_.erase(again_.begin(), ripe);
}

SteadyTime SettleQueue::due(SteadyTime now, bool busy) {
  ripen(now);
  if (!alone_.empty()) {
    return now;
  }
  const SteadyTime again_at = again_.empty() ? SteadyTime::max() : again_.begin()->first;
  if (ready_.empty()) {
    return again_at;
  }
  if (!busy || ready_.size() >= kMaxSettleBatch / 2) {
    return now;
  }
  return std::min(again_at, ready_.front()->finished_at + kSettleLinger);
}

std::vector<Task*> SettleQueue::take(SteadyTime now, std::size_t most) {
  ripen(now);
  if (!alone_.empty() && (ready_.empty() || others_taken_)) {
    others_taken_ = false;
    Task* const task = alone_.front();
    alone_.pop_front();
    return {task};
  }
  others_taken_ = true;
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(std::min({ready_.size(), kMaxSettleBatch, most}));
  std::vector<Task*> batch(ready_.begin(), end);
  ready_.erase(ready_.begin(), end);
  return batch;
}

namespace {

// So many at once are written on credit.
constexpr std::size_t kCreditBatch = 25;
// Handlers faster than this come back while a settlement lingers.
constexpr Duration kQuick = std::chrono::microseconds(200);
// A completion that the source refuses for what it is, is not worth more tries.
constexpr std::uint32_t kMaxRefusals = 10;
constexpr Duration kFirstSettleBackoff = std::chrono::milliseconds(50);
constexpr Duration kLastSettleBackoff = std::chrono::seconds(5);

Duration backoff(std::uint32_t tries, Random& random) {
  return jittered(doubled(kFirstSettleBackoff, tries > 0 ? tries - 1 : 0, kLastSettleBackoff), random);
}

bool may_have_happened(const Error& error) {
  return error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
}

// About the one message, not about whether messages can be written.
bool concerns_one_message(const Error& error) {
  return error.code() == ErrorCode::invalid || error.code() == ErrorCode::conflict ||
         error.code() == ErrorCode::not_found;
}

/// What is told of a task that has ended so.
AttemptEnd end_of(Task& task, Ending ending) {
  AttemptEnd end = task.watched ? std::move(*task.watched) : AttemptEnd{};
  const queue::Failure* const why = task.disposition.failure.get();
  end.reason = end.outcome ? end.outcome->reason : why != nullptr ? why->error : std::string();
  end.id = task.message.id;
  end.attempt = task.message.attempt;
  end.ending = ending;
  end.delay = task.disposition.delay;
  return end;
}

}  // namespace

void Settler::finish(Task& task, bool lost, StepEffects& effects) {
  const Ending ending = task.disposition.ending;
  if (effects.watched) {
    effects.ended.push_back(end_of(task, lost ? Ending::lost : ending));
  }
  if (task.stage() != TaskStage::queued && task.stage() != TaskStage::dealt) {
    let_go(task, lost);
  }
  if (lost) {
    in_flight_.lose(task, effects);
  } else {
    in_flight_.end(task, ending);
    ++effects.counts.endings[static_cast<std::size_t>(ending)];
  }
  in_flight_.tidy(task);
}

std::size_t Settler::affordable(SteadyTime now) {
  held_until_ = SteadyTime::min();
  std::size_t most = kMaxSettleBatch;
  if (hurried_) {
    return most;
  }
  for (cost::UnitBudget* budget : budgets_) {
    held_until_ = std::max(held_until_, budget->ready_at(cost::UnitBudget::Call::settlement, now));
    most = std::min(most, budget->most(cost::UnitBudget::Call::settlement, now));
  }
  const bool on_credit = held_until_ > now;
  held_until_ = std::min(held_until_, queue_.oldest(now) + kLongestHold);
  if (held_until_ > now) {
    return 0;
  }
  held_until_ = SteadyTime::min();
  return on_credit ? kCreditBatch : most;
}

bool Settler::ready_to_write(Task& task, SteadyTime now) {
  if (task.receipt_state() == ReceiptState::extending) {
    task.park();
    return false;
  }
  if (now < channel(task).open_at) {
    queue_.add_again(task, channel(task).open_at);
    return false;
  }
  return true;
}

Settler::Order Settler::next(SteadyTime now, WallTime wall) {
  SLUICE_ASSERT(!settling_);
  Order order;
  if (ended_) {
    return order;
  }
  order.deadline = std::min(now + kSourceTimeout, call_by_);
  order.wake = queue_.due(now, more_is_coming());
  while (order.tasks.empty() && order.wake <= now) {
    const std::size_t most = affordable(now);
    if (most == 0) {
      order.wake = held_until_;
      break;
    }
    for (Task* task : queue_.take(now, most)) {
      if (!ready_to_write(*task, now)) {
        continue;
      }
      task->begin_settling();
      if (task->disposition.commits_statements()) {
        in_flight_.committing(*task,
                              task->settles_alone() ? isolation::Committing::alone : isolation::Committing::together);
      }
      order.tasks.push_back(task);
      order.completions.push_back(completion_of(std::move(task->lease.receipt), std::move(task->disposition), wall));
    }
    order.wake = queue_.due(now, more_is_coming());
  }
  settling_ = !order.tasks.empty();
  if (settling_) {
    called_at_ = now;
    alarm_.is_busy();
  } else {
    alarm_.sleeps_until(order.wake);
  }
  return order;
}

std::vector<queue::Delivery> Settler::settled(Order&& order, std::vector<queue::SettleResult>&& results, SteadyTime now,
                                              StepEffects& effects) {
  SLUICE_ASSERT(settling_);
  settling_ = false;
  queue::fill_up(results, order.tasks.size());
  Tallies tallies;
  std::vector<queue::Delivery> anew;
  std::vector<Task*> again;
  const Error* failure = nullptr;
  for (std::size_t i = 0; i < order.tasks.size(); ++i) {
    Task& task = *order.tasks[i];
    Tally& tally = tallies[static_cast<std::size_t>(task.disposition.action)];
    if (task.disposition.failure != nullptr) {
      *task.disposition.failure = std::move(order.completions[i].failure);
    }
    if (results[i].status == queue::SettleStatus::applied) {
      ++tally.written;
      written(task, anew, effects);
      continue;
    }
    task.disposition.effects = std::move(order.completions[i].effects);
    if (task.disposition.commits_statements()) {
      in_flight_.committing(task, isolation::Committing::no);
    }
    if (results[i].status == queue::SettleStatus::lost) {
      ++tally.written;
      if (in_flight_.go_on(task, effects)) {
        // It was this host's own newer claim that was quicker.
        queue_.add(task);
        effects.keeper = true;
      } else {
        finish(task, true, effects);
      }
      continue;
    }
    task.lease.receipt = std::move(order.completions[i].receipt);
    // Without effects there is nothing to leave out: the same would be refused at once, for ever.
    if (results[i].status == queue::SettleStatus::refused && task.disposition.effects != nullptr) {
      ++tally.written;
      refused(task, results[i], effects);
      continue;
    }
    if (results[i].left) {
      left(task, results[i].wait, now, effects);
      continue;
    }
    failure = &results[i].error;
    tally.failed += concerns_one_message(*failure) ? 0 : 1;
    failed(task, *failure, effects);
    if (task.open()) {
      again.push_back(&task);
    } else {
      in_flight_.tidy(task);
    }
  }
  judge(tallies, now);
  for (Task* task : again) {
    try_again(*task, now);
  }
  if (failure != nullptr) {
    failures_.failed(*failure, "cannot settle messages, trying again", now, effects);
  } else if (!refused_anywhere()) {
    // Not while one kind of settlement is still refused and only the others are written.
    failures_.succeeded("settlements work again", effects);
  }
  return anew;
}

void Settler::failed(Task& task, const Error& error, StepEffects& effects) {
  ++effects.counts.settle_failed;
  not_written(task, may_have_happened(error), effects);
  FinishedWork::shrink(task);
  if (concerns_one_message(error) && task.tries >= kMaxRefusals) {
    effects.about(observe::LogLevel::error, "the store refuses to settle; the message comes back when its lease ends",
                  task.message, error.message());
    if (effects.watched) {
      effects.ended.push_back(end_of(task, Ending::lost));
    }
    let_go(task, true);
    in_flight_.end(task, Ending::lost);
    ++effects.counts.lost;
  }
}

void Settler::refused(Task& task, const queue::SettleResult& result, StepEffects& effects) {
  ++effects.counts.effects_refused;
  not_written(task, false, effects);
  --channel(task).pending;
  // As if the handler had come to that: nothing is committed of them.
  const auto instead = result.wait     ? plugin::OutcomeStatus::snooze
                       : result.reject ? plugin::OutcomeStatus::reject
                                       : plugin::OutcomeStatus::retry;
  plugin::Outcome outcome{instead, result.wait, result.error.message()};
  const std::uint32_t made = attempts_made(task);
  if (task.not_run && instead == plugin::OutcomeStatus::retry && !policy_.retry.used_up(made)) {
    outcome.status = plugin::OutcomeStatus::snooze;
    outcome.delay = policy_.retry.delay(made, random_);
  }
  task.disposition = dispose(outcome, made, policy_, random_);
  ++channel(task).pending;
  if (task.watched) {
    task.watched->outcome = plugin::Outcome{instead, {}, result.error.message()};
  }
  FinishedWork::keep(task);
  const Ending ending = task.disposition.ending;
  // What waits is warned of by whoever lets it wait.
  effects.about(result.wait ? observe::LogLevel::debug : observe::LogLevel::warn,
                ending == Ending::snoozed    ? "its effects were refused, and no attempt is counted"
                : ending == Ending::retried  ? "its effects were refused, to be retried"
                : ending == Ending::rejected ? "its effects were refused, the message goes to the DLQ"
                                             : "its effects were refused, the message is discarded",
                task.message, result.error.message());
  effects.lines.back().attempt = task.message.attempt;
  if (ending == Ending::retried) {
    effects.lines.back().wait = task.disposition.delay;
  }
  if (!once_) {
    queue_.add(task);
  }
}

void Settler::judge(const Tallies& tallies, SteadyTime now) {
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    Channel& one = channels_[i];
    if (tallies[i].written > 0) {
      one = {.pending = one.pending};
    } else if (tallies[i].failed > 0) {
      const Duration pause = backoff(++one.failures, random_);
      one.open_at = hurried_ ? now : now + pause;
    }
  }
}

bool Settler::more_is_coming() const {
  return !hurried_ && sizer_.handler_time() < kQuick && workforce_.anybody_busy();
}

void Settler::try_again(Task& task, SteadyTime now) {
  if (once_) {
    // What a hard stop did not write is stranded.
    return;
  }
  const SteadyTime open_at = channel(task).open_at;
  queue_.add_again(task, open_at > now ? open_at : now + backoff(task.tries, random_));
}

bool LeaseKeeper::wants_extension(Task& task, SteadyTime now) {
  const LeaseTerms& terms = in_flight_.terms();
  const bool has_worker = task.stage() == TaskStage::dealt;
  if (task.stage() == TaskStage::queued || (has_worker && batch_of(task).recall(task))) {
    // It has waited for half its lease: others can start it sooner.
    settler_.put_back(task, now);
    if (has_worker) {
      task.leave_worker();
    }
    return false;
  }
  if (terms.used_up(task, now)) {
    if (has_worker) {
      let_lapse(task, now);
    } else {
      task.lease.extend_at = SteadyTime::max();
    }
    return false;
  }
  if (has_worker && !terms.usable(task.lease, now)) {
    // Somebody else may have it any moment. Until he does it can still be extended, and settled.
    batch_of(task).lose_lease(task);
  }
  return true;
}

LeaseKeeper::Order LeaseKeeper::next(SteadyTime now) {
  Order order;
  order.deadline = now + in_flight_.terms().call_timeout();
  for (Task* task : in_flight_.tasks()) {
    if (now >= next_look(*task) && order.tasks.size() < kMaxExtendBatch && wants_extension(*task, now)) {
      task->begin_extending();
      order.deadline = std::min(order.deadline, in_flight_.terms().call_by(task->lease, now));
      order.tasks.push_back(task);
      order.receipts.push_back(task->lease.receipt);
    } else {
      order.wake = std::min(order.wake, next_look(*task));
    }
  }
  dispatcher_.drop_gone();
  extending_ = !order.tasks.empty();
  return order;
}

void LeaseKeeper::extended(Order order, std::vector<queue::ExtendResult> results, SteadyTime now,
                           StepEffects& effects) {
  extending_ = false;
  queue::fill_up(results, order.tasks.size());
  std::optional<Error> failure;
  for (std::size_t i = 0; i < order.tasks.size(); ++i) {
    if (results[i].status == queue::SettleStatus::failed && order.tasks[i]->open()) {
      failure = results[i].error;
    }
    answered(*order.tasks[i], std::move(results[i]), now, effects);
  }
  effects.checkpoints = true;
  if (failure) {
    failures_.failed(*failure, "cannot extend leases, trying again", now, effects);
  } else {
    failures_.succeeded("extensions work again", effects);
  }
}

void LeaseKeeper::answered(Task& task, queue::ExtendResult&& result, SteadyTime now, StepEffects& effects) {
  const bool waits_for_it = task.end_extending();
  if (!task.open()) {
    in_flight_.tidy(task);
    return;
  }
  // This host's own newer claim is the later write, whatever the answer is.
  const bool overtaken = in_flight_.go_on(task, effects);
  if (result.status == queue::SettleStatus::lost && !overtaken) {
    lose(task, effects);
    return;
  }
  if (!overtaken && result.status == queue::SettleStatus::failed) {
    task.lease.extend_at = retry_at(task, now);
  } else if (!overtaken && result.status == queue::SettleStatus::applied) {
    in_flight_.renew(task, std::move(result.receipt), result.leased_until);
  }
  if (waits_for_it) {
    settler_.write_again(task);
  }
}

LeaseKeeper::Loan LeaseKeeper::lend(Task& task, SteadyTime now) {
  Loan loan{.deadline = now + in_flight_.terms().call_timeout()};
  if (task.stage() != TaskStage::dealt) {
    return loan;
  }
  // An extension that is due goes first: a handler that stores without a pause would never let it have its turn.
  const bool due = now >= task.lease.extend_at && !in_flight_.terms().used_up(task, now);
  if (task.receipt_state() != ReceiptState::ours || due) {
    loan.state = Loan::State::busy;
    return loan;
  }
  loan.deadline = in_flight_.terms().call_by(task.lease, now);
  task.begin_extending();
  ++lent_;
  loan.state = Loan::State::ours;
  loan.receipt = task.lease.receipt;
  return loan;
}

void LeaseKeeper::repaid(Task& task, const queue::SettleResult& result, std::string_view bytes, SteadyTime now,
                         StepEffects& effects) {
  --lent_;
  queue::ExtendResult answer{result.status, task.lease.receipt, task.lease.ends_at, {}};
  if (result.status == queue::SettleStatus::applied) {
    answer.receipt.version = result.version;
    task.message.checkpoint = bytes;
  } else if (result.status == queue::SettleStatus::failed) {
    answer.status = queue::SettleStatus::refused;  // its lease is as it was, and extended when it is time
  }
  answered(task, std::move(answer), now, effects);
}

void LeaseKeeper::lose(Task& task, StepEffects& effects) {
  effects.checkpoints = true;
  const bool queued = task.stage() == TaskStage::queued;
  if (task.with_worker()) {
    if (batch_of(task).recall(task)) {
      task.leave_worker();
    } else {
      batch_of(task).lose_lease(task);
    }
  }
  settler_.lose(task, effects);
  if (queued) {
    dispatcher_.drop_gone();
  }
}

template <typename Which>
void LeaseKeeper::lose_all(Which which, StepEffects& effects) {
  const std::vector<Task*> tasks = in_flight_.tasks();
  for (Task* task : tasks) {
    if (task->open() && task->stage() != TaskStage::settling && which(*task)) {
      lose(*task, effects);
    }
  }
}

void LeaseKeeper::overtaken_by(const queue::Delivery& delivery, StepEffects& effects) {
  lose_all(
      [&](const Task& task) { return task.part == delivery.receipt.part && task.message.id == delivery.message.id; },
      effects);
}

void LeaseKeeper::taken_back(std::span<const queue::Receipt> receipts, StepEffects& effects) {
  // A message may have come back meanwhile, under a receipt that differs in its locator alone. The version of one that
  // has just stored progress may not be known here yet.
  std::map<std::tuple<std::string_view, std::int64_t, std::uint16_t>, std::int64_t> gone;
  for (const queue::Receipt& receipt : receipts) {
    gone.insert({{receipt.id, receipt.locator, receipt.part}, receipt.version});
  }
  const auto is_gone = [&gone](const Task& task) {
    const queue::Receipt& receipt = task.lease.receipt;
    const auto found = gone.find({receipt.id, receipt.locator, receipt.part});
    return found != gone.end() && receipt.version <= found->second;
  };
  lose_all(is_gone, effects);
}

void LeaseKeeper::let_lapse(Task& task, SteadyTime now) {
  if (task.lease.ends_at != SteadyTime::max() && in_flight_.terms().usable(task.lease, now)) {
    task.lease.extend_at = in_flight_.terms().usable_until(task.lease);
  } else {
    batch_of(task).lose_lease(task);
    task.lease.extend_at = SteadyTime::max();
  }
}

SteadyTime LeaseKeeper::retry_at(const Task& task, SteadyTime now) {
  const SteadyTime end = in_flight_.terms().usable_until(task.lease);
  const SteadyTime soon = in_flight_.terms().retry_at(now, random_);
  // Not beyond the lease's end, when its handler must be told.
  return now < end ? std::min(soon, end) : soon;
}

}  // namespace sluice::work
