// How a job ends.
#include <algorithm>

#include "host/work/job_flow.hpp"

namespace sluice::work {
namespace {

// Before the deadline, what is left running is released, so that the release itself still fits.
constexpr Duration kMaxReserve = std::chrono::seconds(2);

}  // namespace

void JobFlow::begin_drain(SteadyTime now, SteadyTime deadline, Notes& notes) {
  if (phase_ == Phase::ended) {
    return;
  }
  deadline_ = std::min(deadline_, deadline);
  if (deadline_ != SteadyTime::max()) {
    const Duration left = std::max(Duration::zero(), Duration(deadline_ - now));
    soft_deadline_ = std::min(soft_deadline_, deadline_ - std::min(left / 5, kMaxReserve));
  }
  if (phase_ == Phase::running) {
    phase_ = Phase::draining;
    settle_queue_.hurry(now);
    release_queued(now);
    for (std::uint32_t hand = 0; hand < hands_.size(); ++hand) {
      sweep(hand, now, notes);
      hands_[hand]->request_stop();
    }
  }
  notes.poller = notes.keeper = notes.drained = true;
  call_settler(now, notes);
}

void JobFlow::hard_stop(SteadyTime now, Notes& notes) {
  if (phase_ == Phase::ended || hard_) {
    return;
  }
  hard_ = true;
  begin_drain(now, now + kHardStopTime, notes);
  soft_deadline_ = now;
  settle_queue_.hurry(now);
  call_settler(now, notes);
}

void JobFlow::release_queued(SteadyTime now) {
  for (Task* task : queued_) {
    if (task->open && task->state == TaskState::queued) {
      settle(*task, put_back(), now);
    }
    drop_hold(*task);
  }
  queued_.clear();
}

void JobFlow::abandon_running(SteadyTime now, Notes& notes) {
  abandoned_ = true;
  for (std::uint32_t hand = 0; hand < hands_.size(); ++hand) {
    collect_finished(hand, now, notes);
    Task* task = hands_[hand]->view().running;
    // What is stuck may do anything at any time: nobody else shall start it before its lease has run out.
    if (task == nullptr || task->abandoned || task->stuck) {
      continue;
    }
    hands_[hand]->lose_lease(*task);
    task->abandoned = true;
    notes.line(observe::LogLevel::warn, "the handler has not finished in time, its message is released",
               task->message.id, "handler " + policy_.handler);
    settle(*task, put_back(), now);
  }
  call_settler(now, notes);
}

std::optional<SteadyTime> JobFlow::drain_step(SteadyTime now, Notes& notes) {
  if (phase_ == Phase::ended) {
    return std::nullopt;
  }
  if (now >= soft_deadline_ && !abandoned_) {
    abandon_running(now, notes);
  }
  const bool all_ended = ledger_.open() == 0 && !claiming_;
  const bool tried_once = hard_ && abandoned_ && !claiming_ && !settling_ && !extending_ && settle_queue_.size() == 0;
  if (all_ended || tried_once || now >= deadline_) {
    phase_ = Phase::ended;
    ledger_.close();
    return std::nullopt;
  }
  return abandoned_ ? deadline_ : std::min(soft_deadline_, deadline_);
}

void JobFlow::check_drained(Notes& notes) const {
  const bool all_ended = ledger_.open() == 0 && !claiming_;
  if (phase_ == Phase::draining && (all_ended || hard_)) {
    notes.drained = true;
  }
}

}  // namespace sluice::work
