#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/log.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/scheduler.hpp"
#include "host/runtime/service.hpp"
#include "host/work/service_thread.hpp"

namespace sluice::runtime {

/// The thread that sends what schedules have due. Does not exist where there are none. A pause of a job does not touch
/// its schedules: what is paused is the work, and what is due waits in the queue as any message does.
class ScheduleService final : public Service {
 public:
  /// The references outlive it; `host` is this host's name.
  ScheduleService(queue::Queues& queues, observe::Log& log, const Clock& clock, const std::string& host);
  ~ScheduleService() override { stop(); }

  /// These schedules from now on. Before `start` or after it, from any thread; the first ones start the thread.
  Result<void> take(const std::vector<Schedule>& schedules);
  Result<void> start() override;
  /// Nothing is sent any more that has not begun. From any thread; returns at once.
  void request_stop() { thread_.request_stop(); }
  void stop() override { thread_.stop(); }
  /// As stop, but waits no longer than until `time`; false: a store has not answered.
  bool leave(SteadyTime time) { return thread_.stop_until(time); }

 private:
  void run(const std::stop_token& stop);
  /// When to look again.
  SteadyTime step();
  void carry_out(const Scheduler::Order& order);
  Result<queue::Notice> look(const Scheduler::Look& look);
  queue::SendResult send(const Scheduler::Send& send);
  Result<std::int64_t> tell(const Scheduler::Tell& tell);
  void say();

  // Fixed after construction.
  queue::Queues& queues_;
  observe::Log& log_;
  const Clock& clock_;

  Mutex mutex_;
  Condition changed_;
  Scheduler scheduler_ SLUICE_GUARDED_BY(mutex_);
  bool started_ SLUICE_GUARDED_BY(mutex_) = false;
  bool any_ SLUICE_GUARDED_BY(mutex_) = false;
  bool running_ SLUICE_GUARDED_BY(mutex_) = false;
  std::uint64_t takes_ SLUICE_GUARDED_BY(mutex_) = 0;

  // Touched only by the thread.
  std::map<std::string, std::unique_ptr<queue::Sender>> senders_;
  std::map<std::string, std::unique_ptr<queue::NoticeBoard>> boards_;

  // Last, so that it ends before what it uses.
  work::ServiceThread thread_{"sluice-schedule"};
};

}  // namespace sluice::runtime
