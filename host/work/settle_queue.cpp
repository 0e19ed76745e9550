#include "host/work/settle_queue.hpp"

#include <algorithm>

namespace sluice::work {
namespace {

constexpr Duration kFirstBackoff = std::chrono::milliseconds(50);
constexpr Duration kLastBackoff = std::chrono::seconds(5);

Duration backoff(std::uint32_t tries, Random& random) {
  const std::uint32_t doublings = std::min(tries > 0 ? tries - 1 : 0U, 10U);
  const Duration full = std::min(kFirstBackoff * (1U << doublings), kLastBackoff);
  return full / 2 + Duration(static_cast<Duration::rep>(static_cast<double>(full.count()) * 0.5 * random.unit()));
}

}  // namespace

void SettleQueue::add(Task& task, SteadyTime now) {
  ++task.holds;
  task.not_before = now;
  ready_.push_back(&task);
}

void SettleQueue::add_again(Task& task, SteadyTime now, Random& random) {
  ++task.holds;
  task.not_before = now + backoff(task.tries, random);
  again_at_ = std::min(again_at_, task.not_before);
  again_.push_back(&task);
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

std::vector<Task*> SettleQueue::take(SteadyTime now) {
  ripen(now);
  const auto end = ready_.begin() + static_cast<std::ptrdiff_t>(std::min(ready_.size(), kMaxSettleBatch));
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
