#include "host/runtime/schedule_service.hpp"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

namespace {

constexpr Duration kCallTimeout = std::chrono::seconds(20);
// A wall clock that is set is noticed within this.
constexpr Duration kLongestWait = std::chrono::seconds(30);

/// What was opened before, or is opened now.
template <typename Side, typename Open>
Result<Side*> opened(std::map<std::string, std::unique_ptr<Side>>& sides, const std::string& queue, Open open) {
  auto& side = sides[queue];
  if (!side) {
    SLUICE_TRY(made, open());
    side = std::move(*made);
  }
  return side.get();
}

}  // namespace

ScheduleService::ScheduleService(queue::Queues& queues, observe::Log& log, const Clock& clock, const std::string& host)
    : queues_(queues), log_(log), clock_(clock), scheduler_(host) {}

Result<void> ScheduleService::take(const std::vector<Schedule>& schedules) {
  {
    const MutexLock lock(mutex_);
    scheduler_.take(schedules, clock_.wall_now());
    any_ = any_ || !schedules.empty();
    ++takes_;
    changed_.notify_all();
    if (!started_) {
      return {};
    }
  }
  return start();
}

Result<void> ScheduleService::start() {
  {
    const MutexLock lock(mutex_);
    started_ = true;
    if (!any_ || running_) {
      return {};
    }
    running_ = true;
  }
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void ScheduleService::run(const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      seen = takes_;
    }
    const SteadyTime wake = step();
    say();
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.machine_time(wake),
                        [this, seen]() SLUICE_REQUIRES(mutex_) { return takes_ != seen; });
  }
}

SteadyTime ScheduleService::step() {
  const WallTime now = clock_.wall_now();
  Scheduler::Order order;
  {
    const MutexLock lock(mutex_);
    order = scheduler_.next(now);
  }
  if (!order.empty()) {
    carry_out(order);
    return SteadyTime::min();
  }
  const Duration wait = order.wake > now + kLongestWait ? kLongestWait : Duration(order.wake - now);
  return clock_.steady_now() + std::max(wait, Duration::zero());
}

void ScheduleService::carry_out(const Scheduler::Order& order) {
  if (order.look) {
    const auto found = look(*order.look);
    const MutexLock lock(mutex_);
    scheduler_.looked(order.look->name, found, clock_.wall_now());
  } else if (order.send) {
    const auto result = send(*order.send);
    const MutexLock lock(mutex_);
    scheduler_.sent(order.send->name, order.send->due, result, clock_.wall_now());
  } else if (order.tell) {
    const auto posted = tell(*order.tell);
    const MutexLock lock(mutex_);
    scheduler_.told(order.tell->name, posted, clock_.wall_now());
  }
}

Result<queue::Notice> ScheduleService::look(const Scheduler::Look& look) {
  SLUICE_TRY(board, opened(boards_, look.queue, [&] { return queues_.open_board(look.queue); }));
  return (*board)->read(queue::Topic::schedules, look.name, Deadline::after(clock_, kCallTimeout));
}

queue::SendResult ScheduleService::send(const Scheduler::Send& send) {
  const auto sender = opened(senders_, send.queue, [&] { return queues_.open_sender(send.queue); });
  if (!sender) {
    return {queue::SendStatus::failed, {}, sender.error()};
  }
  return (*sender)->send(std::span(&send.message, 1), Deadline::after(clock_, kCallTimeout)).front();
}

Result<std::int64_t> ScheduleService::tell(const Scheduler::Tell& tell) {
  SLUICE_TRY(board, opened(boards_, tell.queue, [&] { return queues_.open_board(tell.queue); }));
  return (*board)->post(queue::Topic::schedules, tell.notice, Deadline::after(clock_, kCallTimeout));
}

void ScheduleService::say() {
  std::vector<Scheduler::Line> lines;
  {
    const MutexLock lock(mutex_);
    lines = scheduler_.take_lines();
  }
  for (const Scheduler::Line& line : lines) {
    log_.write(line.bad ? observe::LogLevel::warn : observe::LogLevel::info, line.text);
  }
}

}  // namespace sluice::runtime
