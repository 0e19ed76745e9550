#include "host/work/in_flight_table.hpp"

#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "base/guard.hpp"
#include "host/work/finished_work.hpp"

namespace sluice::work {

InFlightTable::InFlightTable(const LeaseTerms& terms, isolation::JobLedger* crash_ledger)
    : terms_(terms), crash_ledger_(crash_ledger) {}

Task& InFlightTable::admit(queue::Delivery&& delivery) {
  Task* task = nullptr;
  if (free_.empty()) {
    task = &storage_.emplace_back();
  } else {
    task = free_.back();
    free_.pop_back();
    // Made anew in its place: moving an empty one there costs as much as the message itself.
    std::destroy_at(task);
    std::construct_at(task);
  }
  if (crash_ledger_ != nullptr) {
    task->slot = crash_ledger_->hold(delivery);
  }
  task->suspect = delivery.suspect;
  task->part = delivery.receipt.part;
  task->message = std::move(delivery.message);
  task->lease = terms_.granted(std::move(delivery.receipt), delivery.leased_until);
  task->place = active_.size();
  active_.push_back(task);
  return *task;
}

Task* InFlightTable::resume(queue::Delivery& delivery, StepEffects& notes) {
  for (Task* task : active_) {
    // Two queues of one job may have messages of one id.
    const bool same = task->part == delivery.receipt.part && task->message.id == delivery.message.id &&
                      is_unchanged(*task, delivery.message);
    // Whoever waits for the key of what was lost may have been let in meanwhile.
    const bool runs_on = task->runs_on() && !task->in_call() && !task->key.marked;
    const bool in_call = task->open() && task->in_call();
    if (!same || !(task->open() || runs_on) || (in_call && !SLUICE_GUARD(own_claim_waits))) {
      continue;
    }
    if (!task->open()) {
      // It was counted as lost when that was told.
      task->take_up();
      adopt(*task, std::move(delivery), notes);
    } else if (in_call) {
      wait_for_answer(*task, std::move(delivery));
    } else {
      task->go_on();
      account_.ended(Ending::lost);
      adopt(*task, std::move(delivery), notes);
    }
    return task;
  }
  return nullptr;
}

void InFlightTable::wait_for_answer(Task& task, queue::Delivery&& delivery) {
  if (task.newer != nullptr) {
    account_.ended(Ending::lost);
  }
  task.newer = std::make_unique<queue::Delivery>(std::move(delivery));
  // Nothing else can be written any more, whatever the answer is.
  if (crash_ledger_ != nullptr) {
    crash_ledger_->renew(task.slot, task.newer->receipt);
  }
}

bool InFlightTable::go_on(Task& task, StepEffects& notes) {
  if (task.newer == nullptr || closed_) {
    return false;
  }
  const std::unique_ptr<queue::Delivery> newer = std::move(task.newer);
  task.go_on();
  account_.ended(Ending::lost);
  adopt(task, std::move(*newer), notes);
  return true;
}

void InFlightTable::adopt(Task& task, queue::Delivery&& newer, StepEffects& notes) {
  notes.about(observe::LogLevel::warn, "the lease had ended and the message came back; this host goes on with it",
              task.message);
  renew(task, std::move(newer.receipt), newer.leased_until);
  if (newer.leased_until != SteadyTime::max()) {
    task.lease.begun_at = terms_.granted({}, newer.leased_until).begun_at;
  }
}

void InFlightTable::renew(Task& task, queue::Receipt receipt, SteadyTime leased_until) {
  const Lease before = std::exchange(task.lease, terms_.granted(std::move(receipt), leased_until));
  task.lease.begun_at = before.begun_at;
  if (leased_until == SteadyTime::max()) {
    task.lease.extend_at = before.extend_at;  // nothing is extended: it is when its handler is told
  }
  if (crash_ledger_ != nullptr) {
    crash_ledger_->renew(task.slot, task.lease.receipt);
  }
}

void InFlightTable::committing(Task& task, isolation::Committing how) {
  if (crash_ledger_ != nullptr && SLUICE_GUARD(commits_in_ledger)) {
    crash_ledger_->committing(task.slot, how);
  }
}

void InFlightTable::end(Task& task, Ending ending) {
  if (ending == Ending::lost) {
    task.end_lost();
  } else {
    task.end();
  }
  if (task.key.marked && ending != Ending::done) {
    release_mark({{{}, task.key.key, task.message.id, {}, task.key.fence}, task.part});
  }
  if (closed_) {
    return;
  }
  account_.ended(ending);
  if (task.newer != nullptr) {
    // Nobody goes on with it.
    account_.ended(Ending::lost);
    task.newer.reset();
  }
}

void InFlightTable::release_mark(KeyMark mark) {
  if (!closed_ && SLUICE_GUARD(key_mark_released)) {
    ended_marks_.push_back(std::move(mark));
  }
}

void InFlightTable::lose(Task& task, StepEffects& notes) {
  if (!closed_) {
    notes.lose(task.message);
  }
  end(task, Ending::lost);
}

void InFlightTable::tidy(Task& task) {
  if (!task.over()) {
    return;
  }
  SLUICE_ASSERT(active_[task.place] == &task);
  active_[task.place] = active_.back();
  active_[task.place]->place = task.place;
  active_.pop_back();
  // Not before its worker has given it back: until then what runs is held, whoever has the message.
  if (crash_ledger_ != nullptr) {
    crash_ledger_->drop(task.slot);
  }
  // Bodies can be large; an unused place keeps none.
  task.message = {};
  free_.push_back(&task);
}

void InFlightTable::close() {
  closed_ = true;
  ended_marks_.clear();
  account_.close();
}

}  // namespace sluice::work
