#include "host/work/lease_keeper.hpp"

#include <set>
#include <tuple>

#include "host/work/dispatcher.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/settler.hpp"

namespace sluice::work {

bool LeaseKeeper::wants_extension(Task& task, SteadyTime now) {
  if (task.receipt_state() != ReceiptState::ours || now < task.lease.extend_at) {
    return false;
  }
  switch (task.stage()) {
    case TaskStage::queued:
      // It has waited for half its lease: others can start it sooner.
      settler_.put_back(task, now);
      return false;
    case TaskStage::dealt:
      if (workforce_.batch(task.seat).recall(task)) {
        settler_.put_back(task, now);
        task.leave_worker();
        return false;
      }
      if (in_flight_.terms().used_up(task.lease, now)) {
        let_lapse(task, now);
        return false;
      }
      if (!in_flight_.terms().usable(task.lease, now)) {
        // Somebody else may have it any moment. Until he does it can still be extended, and settled.
        workforce_.batch(task.seat).lose_lease(task);
      }
      return true;
    case TaskStage::disposed:
      if (in_flight_.terms().used_up(task.lease, now)) {
        task.lease.extend_at = SteadyTime::max();
        return false;
      }
      return now - task.finished_at < kSettlePatience;
    case TaskStage::parked:
    case TaskStage::settling:
    case TaskStage::ended:
      break;
  }
  return false;
}

LeaseKeeper::Order LeaseKeeper::next(SteadyTime now) {
  Order order;
  order.deadline = now + in_flight_.terms().call_timeout();
  for (Task* task : in_flight_.tasks()) {
    if (order.tasks.size() < kMaxExtendBatch && wants_extension(*task, now)) {
      task->begin_extending();
      if (in_flight_.terms().usable(task->lease, now)) {
        order.deadline = std::min(order.deadline, in_flight_.terms().usable_until(task->lease));
      }
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
  static const Error kNoAnswer(ErrorCode::internal, "the source gave no result for an extension");
  results.resize(order.tasks.size(), {queue::SettleStatus::failed, {}, {}, kNoAnswer});
  const Error* failure = nullptr;
  for (std::size_t i = 0; i < order.tasks.size(); ++i) {
    Task& task = *order.tasks[i];
    task.end_extending();
    if (!task.open()) {
      in_flight_.tidy(task);
      continue;
    }
    // This host's own newer claim is the later write, whatever the answer is.
    const bool overtaken = in_flight_.go_on(task, effects);
    if (results[i].status == queue::SettleStatus::lost && !overtaken) {
      lose(task, effects);
      continue;
    }
    if (results[i].status == queue::SettleStatus::failed) {
      failure = &results[i].error;
      if (!overtaken) {
        task.lease.extend_at = retry_at(task, now);
      }
    } else if (!overtaken) {
      in_flight_.renew(task, std::move(results[i].receipt), results[i].leased_until);
    }
    if (task.stage() == TaskStage::parked) {
      settler_.unpark(task, now);
    }
  }
  if (failure != nullptr) {
    failures_.failed(*failure, "cannot extend leases, trying again", now, effects);
  } else {
    failures_.succeeded("extensions work again", effects);
  }
}

void LeaseKeeper::lose(Task& task, StepEffects& effects) {
  const bool queued = task.stage() == TaskStage::queued;
  if (task.with_worker()) {
    WorkerBatch& batch = workforce_.batch(task.seat);
    if (batch.recall(task)) {
      task.leave_worker();
    } else {
      batch.lose_lease(task);
    }
  }
  settler_.lose(task, effects);
  if (queued) {
    dispatcher_.drop_gone();
  }
}

void LeaseKeeper::taken_back(std::span<const queue::Receipt> receipts, StepEffects& effects) {
  // A message may have come back meanwhile, under a receipt that differs in its locator alone.
  std::set<std::tuple<std::string_view, std::int64_t, std::int64_t>> gone;
  for (const queue::Receipt& receipt : receipts) {
    gone.insert({receipt.id, receipt.version, receipt.locator});
  }
  const std::vector<Task*> tasks = in_flight_.tasks();
  for (Task* task : tasks) {
    // What is in a settle call is told by its answer.
    const bool tellable = task->open() && task->stage() != TaskStage::settling;
    const queue::Receipt& receipt = task->lease.receipt;
    if (tellable && gone.contains({receipt.id, receipt.version, receipt.locator})) {
      lose(*task, effects);
    }
  }
}

void LeaseKeeper::let_lapse(Task& task, SteadyTime now) {
  if (task.lease.ends_at != SteadyTime::max() && in_flight_.terms().usable(task.lease, now)) {
    task.lease.extend_at = in_flight_.terms().usable_until(task.lease);
  } else {
    workforce_.batch(task.seat).lose_lease(task);
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
