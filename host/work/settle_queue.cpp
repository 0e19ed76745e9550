#include "host/work/settle_queue.hpp"

#include <algorithm>

namespace sluice::work {
void SettleQueue::add(Task& task, SteadyTime now) {
  task.not_before = now;
  ready_.push_back(&task);
}

void SettleQueue::add_again(Task& task, SteadyTime at) {
  task.not_before = at;
  again_at_ = std::min(again_at_, at);
  again_.push_back(&task);
}

void SettleQueue::remove(const Task& task) {
  std::erase(ready_, &task);
  std::erase(again_, &task);
}

void SettleQueue::ripen(SteadyTime now) {
  if (now < again_at_) {
    return;
  }
  again_at_ = SteadyTime::max();
  const auto still =
      std::partition(again_.begin(), again_.end(), [&](const Task* task) { return task->not_before > now; });
  ready_.insert(ready_.begin(), still, again_.end());
  again_.erase(still, again_.end());
  for (const Task* task : again_) {
    again_at_ = std::min(again_at_, task->not_before);
  }
}

SteadyTime SettleQueue::due(SteadyTime now, bool busy) {
  ripen(now);
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
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(std::min({ready_.size(), kMaxSettleBatch, most}));
  std::vector<Task*> batch(ready_.begin(), end);
  ready_.erase(ready_.begin(), end);
  return batch;
}

void SettleQueue::hurry(SteadyTime now) {
  for (Task* task : again_) {
    task->not_before = now;
  }
  again_at_ = again_.empty() ? SteadyTime::max() : now;
}

}  // namespace sluice::work
