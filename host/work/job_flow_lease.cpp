// Leases, late hands and stuck handlers.
#include <algorithm>
#include <utility>

#include "host/work/job_flow.hpp"

namespace sluice::work {

void JobFlow::call_keeper(SteadyTime at, Notes& notes) {
  if (at < keeper_wake_) {
    keeper_wake_ = at;
    notes.keeper = true;
  }
}

void JobFlow::sweep(std::uint32_t hand, SteadyTime now, Notes& notes) {
  HandState& state = hand_states_[hand];
  recall_scratch_.clear();
  hands_[hand]->recall(recall_scratch_);
  collect_finished(hand, now, notes);
  for (auto task = recall_scratch_.rbegin(); task != recall_scratch_.rend(); ++task) {
    if (phase_ == Phase::running && (*task)->open) {
      (*task)->state = TaskState::queued;
      queued_.push_front(*task);
      continue;
    }
    if ((*task)->open) {
      settle(**task, put_back(), now);
    }
    drop_hold(**task);
  }
  // At most the one that runs is left.
  state.dealt = std::min<std::size_t>(state.dealt, 1);
}

SteadyTime JobFlow::watch(std::uint32_t hand, SteadyTime now, Notes& notes) {
  const Hand::View view = hands_[hand]->view();
  if (view.running == nullptr || view.running->stuck || view.times_out_at == SteadyTime::max()) {
    return SteadyTime::max();
  }
  const SteadyTime stuck_at = view.times_out_at + settings_.stuck_grace;
  if (now < stuck_at) {
    return stuck_at;
  }
  view.running->stuck = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - view.started_at).count();
  notes.line(observe::LogLevel::error, "the handler ignores its stop token and is stuck", view.running->message.id,
             policy_.handler + " has been running for " + std::to_string(seconds) +
                 " s; its lease is no longer extended. Mend the handler, or restart the host");
  return SteadyTime::max();
}

bool JobFlow::wants_extension(Task& task, SteadyTime now, Notes& notes) {
  if (!task.open || task.extending || task.settling) {
    return false;
  }
  if (!terms_.usable(task.lease, now)) {
    lose(task, notes);
    return false;
  }
  if (task.stuck || task.unsure || now < task.lease.extend_at) {
    return false;
  }
  switch (task.state) {
    case TaskState::queued:
      // It has waited for half its lease: others can start it sooner. The queue drops it when it comes to it.
      settle(task, put_back(), now);
      return false;
    case TaskState::dealt:
      if (hands_[task.hand]->recall(task)) {
        settle(task, put_back(), now);
        drop_hold(task);
        return false;
      }
      return true;
    case TaskState::finished:
      break;
  }
  return now - task.finished_at < kSettlePatience;
}

SteadyTime JobFlow::next_lease_time(const Task& task) const {
  if (!task.open || task.extending || task.settling) {
    return SteadyTime::max();
  }
  const bool extends = !task.stuck && !task.unsure &&
                       (task.state != TaskState::finished || task.lease.extend_at - task.finished_at < kSettlePatience);
  return extends ? std::min(task.lease.extend_at, terms_.usable_until(task.lease)) : terms_.usable_until(task.lease);
}

JobFlow::ExtendOrder JobFlow::next_extension(SteadyTime now, Notes& notes) {
  ExtendOrder order;
  if (phase_ == Phase::ended) {
    return order;
  }
  for (std::uint32_t hand = 0; hand < hands_.size(); ++hand) {
    HandState& state = hand_states_[hand];
    if (!state.busy) {
      continue;
    }
    if (state.dealt > 1 && now - state.dealt_at >= kLateHandful) {
      sweep(hand, now, notes);
    }
    if (state.dealt > 1) {
      order.wake = std::min(order.wake, state.dealt_at + kLateHandful);
    }
    order.wake = std::min(order.wake, watch(hand, now, notes));
  }
  order.deadline = now + terms_.call_timeout();
  bool dropped_queued = false;
  // Backwards, because a task that ends gives its place to the last one.
  for (std::size_t i = book_.size(); i-- > 0;) {
    Task& task = *book_.tasks()[i];
    const bool was_queued = task.state == TaskState::queued;
    if (order.tasks.size() < kMaxExtendBatch && wants_extension(task, now, notes)) {
      task.extending = true;
      ++task.holds;
      order.deadline = std::min(order.deadline, task.lease.ends_at);
      order.tasks.push_back(&task);
      order.receipts.push_back(task.lease.receipt);
    } else {
      order.wake = std::min(order.wake, next_lease_time(task));
    }
    dropped_queued = dropped_queued || (was_queued && (!task.open || task.state != TaskState::queued));
    book_.tidy(task);
  }
  if (dropped_queued) {
    const auto kept = std::stable_partition(queued_.begin(), queued_.end(), [](const Task* task) {
      return task->open && task->state == TaskState::queued;
    });
    for (auto task = kept; task != queued_.end(); ++task) {
      drop_hold(**task);
    }
    queued_.erase(kept, queued_.end());
  }
  if (!queued_.empty()) {
    call_workers(notes);
  }
  call_settler(now, notes);
  check_drained(notes);
  // While a call is under way the keeper comes back by itself and needs no wake.
  extending_ = !order.tasks.empty();
  keeper_wake_ = extending_ ? SteadyTime::min() : order.wake;
  return order;
}

void JobFlow::extended(ExtendOrder order, std::vector<queue::ExtendResult> results, SteadyTime now, Notes& notes) {
  extending_ = false;
  static const Error kNoAnswer(ErrorCode::internal, "the store gave no result for an extension");
  results.resize(order.tasks.size(), {queue::SettleStatus::failed, {}, {}, kNoAnswer});
  const Error* failure = nullptr;
  for (std::size_t i = 0; i < order.tasks.size(); ++i) {
    Task& task = *order.tasks[i];
    task.extending = false;
    if (results[i].status == queue::SettleStatus::failed) {
      failure = &results[i].error;
      task.lease.extend_at = terms_.retry_at(now, random_);
    } else {
      extend_ended(task, results[i], notes);
    }
    if (std::exchange(task.parked, false) && task.open) {
      settle_queue_.add(task, now);
    }
    drop_hold(task);
  }
  if (failure != nullptr && extend_failures_.failed(now)) {
    notes.line(observe::LogLevel::error, "cannot extend leases, trying again until they end", {}, failure->message());
  } else if (failure == nullptr && extend_failures_.succeeded()) {
    notes.line(observe::LogLevel::info, "extensions work again");
  }
  call_settler(now, notes);
  check_drained(notes);
}

void JobFlow::extend_ended(Task& task, queue::ExtendResult& result, Notes& notes) {
  if (result.status == queue::SettleStatus::lost) {
    lose(task, notes);
  } else {
    task.lease = terms_.granted(std::move(result.receipt), result.leased_until);
  }
}

std::vector<JobFlow::Stuck> JobFlow::stuck() const {
  std::vector<Stuck> all;
  for (const Hand* hand : hands_) {
    const Hand::View view = hand->view();
    if (view.running != nullptr && view.running->stuck) {
      all.push_back({view.running->message.id, view.started_at});
    }
  }
  return all;
}

std::uint32_t JobFlow::handlers_running() const {
  return static_cast<std::uint32_t>(
      std::count_if(hands_.begin(), hands_.end(), [](const Hand* hand) { return hand->view().running != nullptr; }));
}

}  // namespace sluice::work
