#include "host/work/worker_batch.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace sluice::work {

bool only_removal_is_left(const Task& task, const plugin::Outcome& outcome) {
  const bool removes =
      outcome.status == plugin::OutcomeStatus::done || outcome.status == plugin::OutcomeStatus::discard;
  return removes && !outcome.effects && !task.key.held;
}

WorkerBatch::WorkerBatch(const Clock& clock, Duration timeout) : timeout_(timeout), attempt_(clock) {}

Task* WorkerBatch::next(SteadyTime now) {
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(running_ == nullptr);
  while (!unstarted_.empty()) {
    const Dealt dealt = unstarted_.front();
    unstarted_.pop_front();
    if (now < dealt.start_before) {
      attempt_.arm(timeout_ > Duration::zero() ? now + timeout_ : SteadyTime::max());
      running_ = dealt.task;
      attempt_.set_first_result(running_->first_result);
      started_at_ = now;
      return running_;
    }
    finished_.push_back({dealt.task, {plugin::OutcomeStatus::release, {}, {}}, Duration::zero(), true, false});
  }
  return nullptr;
}

void WorkerBatch::finish(plugin::Outcome outcome, SteadyTime now) {
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(running_ != nullptr);
  finished_.push_back({running_, std::move(outcome), now - started_at_, false, now >= attempt_.deadline()});
  running_ = nullptr;
}

void WorkerBatch::pass_over() {
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(running_ != nullptr);
  finished_.push_back({running_, {plugin::OutcomeStatus::release, {}, {}}, Duration::zero(), true, false});
  running_ = nullptr;
}

void WorkerBatch::deal(Task& task, SteadyTime start_before) {
  const MutexLock lock(mutex_);
  unstarted_.push_back({&task, start_before});
}

void WorkerBatch::collect(std::vector<Finished>& finished) {
  const MutexLock lock(mutex_);
  std::move(finished_.begin(), finished_.end(), std::back_inserter(finished));
  finished_.clear();
}

void WorkerBatch::recall(std::vector<Task*>& unstarted) {
  const MutexLock lock(mutex_);
  for (const Dealt& dealt : unstarted_) {
    unstarted.push_back(dealt.task);
  }
  unstarted_.clear();
}

bool WorkerBatch::recall(const Task& task) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(unstarted_.begin(), unstarted_.end(), [&](const Dealt& dealt) { return dealt.task == &task; });
  if (found == unstarted_.end()) {
    return false;
  }
  unstarted_.erase(found);
  return true;
}

void WorkerBatch::request_stop(SteadyTime end) {
  const MutexLock lock(mutex_);
  if (running_ != nullptr) {
    attempt_.request_stop(end);
  }
}

bool WorkerBatch::request_stop_of(std::string_view message_id) {
  const MutexLock lock(mutex_);
  if (running_ == nullptr || running_->message.id != message_id) {
    return false;
  }
  attempt_.request_stop();
  return true;
}

void WorkerBatch::lose_lease(const Task& task) {
  const MutexLock lock(mutex_);
  if (running_ == &task) {
    attempt_.lose_lease();
  }
}

WorkerBatch::View WorkerBatch::view() const {
  const MutexLock lock(mutex_);
  return {running_, started_at_, running_ != nullptr ? attempt_.deadline() : SteadyTime::max(), unstarted_.size()};
}

}  // namespace sluice::work
