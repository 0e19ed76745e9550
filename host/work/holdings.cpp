#include "host/work/holdings.hpp"

#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "base/guard.hpp"

namespace sluice::work {

Holdings::Holdings(const LeaseTerms& terms, isolation::JobLedger* crash_ledger)
    : terms_(terms), crash_ledger_(crash_ledger) {}

Task& Holdings::admit(queue::Delivery&& delivery) {
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

bool Holdings::resume(queue::Delivery& delivery) {
  for (Task* task : active_) {
    const bool free_to_go_on =
        task->open() && task->stage() != TaskStage::settling && task->receipt_state() != ReceiptState::extending;
    // Two queues of one job may have messages of one id.
    if (free_to_go_on && task->part == delivery.receipt.part && task->message.id == delivery.message.id) {
      account_.ended(Ending::lost);
      renew(*task, std::move(delivery.receipt), delivery.leased_until);
      task->lease.begun_at = terms_.granted({}, delivery.leased_until).begun_at;
      return true;
    }
  }
  return false;
}

void Holdings::renew(Task& task, queue::Receipt receipt, SteadyTime leased_until) {
  const SteadyTime begun_at = task.lease.begun_at;
  task.lease = terms_.granted(std::move(receipt), leased_until);
  task.lease.begun_at = begun_at;
  if (crash_ledger_ != nullptr) {
    crash_ledger_->renew(task.slot, task.lease.receipt);
  }
}

void Holdings::end(Task& task, Ending ending) {
  task.end();
  if (task.key.marked && ending != Ending::done) {
    release_mark({{{}, task.key.key, task.message.id, {}, task.key.fence}, task.part});
  }
  if (!closed_) {
    account_.ended(ending);
  }
}

void Holdings::release_mark(KeyMark mark) {
  if (!closed_ && SLUICE_GUARD(key_mark_released)) {
    ended_marks_.push_back(std::move(mark));
  }
}

void Holdings::lose(Task& task, Notes& notes) {
  if (!closed_) {
    ++notes.lost;
    notes.line(observe::LogLevel::warn,
               "the message is no longer ours: its lease ended and somebody else has it, or it was changed or removed",
               task.message.id);
  }
  end(task, Ending::lost);
}

void Holdings::tidy(Task& task) {
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

void Holdings::close() {
  closed_ = true;
  ended_marks_.clear();
  account_.close();
}

}  // namespace sluice::work
