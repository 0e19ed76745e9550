#include "host/queue/wake/ringer.hpp"

#include <pthread.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/ranges.hpp"
#include "base/signal_block.hpp"
#include "host/queue/wake/datagram.hpp"

namespace sluice::queue::wake {

bool RingPlan::listens(const Announcement& announcement, std::string_view queue, WallTime wall) const {
  return fresh(announcement, wall) && !own_.contains(announcement.host) && contains(announcement.queues, queue);
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

Ringer::Ringer(Read read, std::string secret, const Clock& clock, Random& random)
    : read_(std::move(read)), secret_(std::move(secret)), clock_(clock), random_(random), plan_(random) {}

Ringer::~Ringer() {
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    plan_.hurry();
    thread = std::move(thread_);
  }
  // Here it is stopped and ends.
}

void Ringer::rang(std::string_view queue) {
  const MutexLock lock(mutex_);
  if (ending_ || !plan_.rang(queue, clock_.steady_now(), clock_.wall_now())) {
    return;
  }
  rung_ = true;
  start();
  changed_.notify_all();
}

void Ringer::leave_out(const std::string& host) {
  const MutexLock lock(mutex_);
  plan_.leave_out(host);
}

void Ringer::start() {
  if (thread_.joinable()) {
    return;
  }
  try {
    const SignalBlock block;
    thread_ = std::jthread([this](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "sluice-ring");
      run(stop);
    });
  } catch (const std::system_error&) {
    // No room for a thread: whoever puts something there next tries again.
  }
}

void Ringer::run(const std::stop_token& stop) {
  RingPlan::Order order;
  while (take_order(stop, order)) {
    ring(order.calls);
    if (order.read) {
      read();
    }
  }
}

bool Ringer::take_order(const std::stop_token& stop, RingPlan::Order& order) {
  const MutexLock lock(mutex_);
  while (true) {
    rung_ = false;
    order = plan_.next(clock_.steady_now(), clock_.wall_now());
    if (order.read || !order.calls.empty()) {
      return true;
    }
    if (stop.stop_requested()) {
      return false;
    }
    changed_.wait_until(mutex_, stop, clock_.machine_time(order.wake),
                        [this]() SLUICE_REQUIRES(mutex_) { return rung_; });
  }
}

void Ringer::ring(const std::vector<RingPlan::Call>& calls) {
  for (const RingPlan::Call& call : calls) {
    const auto address = parse_address(call.address);
    if (!address) {
      continue;
    }
    sender_.send(*address, write_datagram({call.queue, clock_.wall_now(), random_.next()}, secret_));
  }
}

void Ringer::read() {
  auto found = read_(Deadline::after(clock_, kReadTime));
  const MutexLock lock(mutex_);
  if (found) {
    plan_.read(std::move(*found), clock_.steady_now());
  } else {
    plan_.failed(found.error().code(), clock_.steady_now());
  }
}

}  // namespace sluice::queue::wake
