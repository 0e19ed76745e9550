#include "host/queue/wake/ring_plan.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::wake {

bool RingPlan::listens(const Announcement& announcement, std::string_view queue, WallTime wall) const {
  return fresh(announcement, wall) && !own_.contains(announcement.host) &&
         std::find(announcement.queues.begin(), announcement.queues.end(), queue) != announcement.queues.end();
}

bool RingPlan::rang(std::string_view queue, SteadyTime now, WallTime wall) {
  const auto any = std::any_of(known_.begin(), known_.end(),
                               [&](const Announcement& announcement) { return listens(announcement, queue, wall); });
  if (!any && !read_due(now)) {
    return false;
  }
  asked_ = true;
  wanted_.emplace(queue);
  return true;
}

RingPlan::Order RingPlan::next(SteadyTime now, WallTime wall) {
  Order order;
  order.read = asked_ && read_due(now);
  // Whoever was not known when it was rung for; nobody is rung twice for that.
  for (const std::string& queue : std::exchange(late_, {})) {
    add_calls(queue, wall, order.calls);
  }
  called_.clear();
  for (auto queue = wanted_.begin(); queue != wanted_.end();) {
    const auto last = rung_at_.find(*queue);
    if (!hurried_ && last != rung_at_.end() && now < last->second + kGap) {
      order.wake = std::min(order.wake, last->second + kGap);
      ++queue;
      continue;
    }
    const std::size_t before = order.calls.size();
    add_calls(*queue, wall, order.calls);
    if (order.calls.size() > before) {
      rung_at_[*queue] = now;
    }
    if (order.read) {
      late_.insert(*queue);
    }
    queue = wanted_.erase(queue);
  }
  if (order.read) {
    called_.insert(order.calls.begin(), order.calls.end());
  }
  return order;
}

void RingPlan::add_calls(const std::string& queue, WallTime wall, std::vector<Call>& all) {
  std::vector<Call> calls;
  for (const Announcement& announcement : known_) {
    Call call{announcement.address, queue};
    if (listens(announcement, queue, wall) && !called_.contains(call)) {
      calls.push_back(std::move(call));
    }
  }
  while (calls.size() > kMostHosts) {
    std::swap(calls[random_.below(calls.size())], calls.back());
    calls.pop_back();
  }
  all.insert(all.end(), calls.begin(), calls.end());
}

void RingPlan::read(std::vector<Announcement> announcements, SteadyTime now) {
  known_ = std::move(announcements);
  read_at_ = now + kReadEvery;
  retry_ = kFirstRetry;
  asked_ = false;
}

void RingPlan::failed(ErrorCode why, SteadyTime now) {
  if (why == ErrorCode::denied || why == ErrorCode::queue_missing) {
    retry_ = kLastRetry;
  }
  read_at_ = now + retry_;
  retry_ = std::min(kLastRetry, retry_ * 2);
  asked_ = false;
  late_.clear();
}

}  // namespace sluice::queue::wake
