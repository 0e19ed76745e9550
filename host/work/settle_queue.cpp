#include "host/work/settle_queue.hpp"

#include <algorithm>

namespace sluice::work {
void SettleQueue::add(Task& task, SteadyTime now) {
  task.not_before = now;
  push(task);
}

void SettleQueue::add_again(Task& task, SteadyTime at) {
  task.not_before = at;
  again_at_ = std::min(again_at_, at);
  again_.push_back(&task);
}

void SettleQueue::remove(const Task& task) {
  std::erase(ready_, &task);
  std::erase(alone_, &task);
  std::erase(again_, &task);
}

void SettleQueue::ripen(SteadyTime now) {
  if (now < again_at_) {
    return;
  }
  again_at_ = SteadyTime::max();
  const auto still =
      std::partition(again_.begin(), again_.end(), [&](const Task* task) { return task->not_before > now; });
  // Those of before go first.
  for (auto ripe = again_.end(); ripe != still; --ripe) {
    Task* const task = *std::prev(ripe);
    (task->settles_alone() ? alone_ : ready_).push_front(task);
  }
  again_.erase(still, again_.end());
  for (const Task* task : again_) {
    again_at_ = std::min(again_at_, task->not_before);
  }
}

SteadyTime SettleQueue::due(SteadyTime now, bool busy) {
  ripen(now);
  if (!alone_.empty()) {
    return now;
  }
  if (ready_.empty()) {
    return again_at_;
  }
  if (!busy || ready_.size() >= kMaxSettleBatch / 2) {
    return now;
  }
  return std::min(again_at_, ready_.front()->not_before + kSettleLinger);
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

SteadyTime SettleQueue::oldest(SteadyTime now) const {
  const auto& due = ready_.empty() ? alone_ : ready_;
  return due.empty() ? now : due.front()->finished_at;
}

void SettleQueue::hurry(SteadyTime now) {
  for (Task* task : again_) {
    task->not_before = now;
  }
  again_at_ = again_.empty() ? SteadyTime::max() : now;
}

}  // namespace sluice::work
