#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/runtime/job_set.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {

/// What the handlers of these tests do; one test at a time.
struct Script {
  std::atomic<int> handled{0};
  std::atomic<bool> hold{false};         ///< handlers wait for their stop
  std::atomic<bool> ignore_stop{false};  ///< handlers wait for `ignore_stop` to fall
  std::atomic<int> running{0};
};
inline Script script;

inline void report(const sluice_context* context, sluice_status status) {
  const sluice_outcome outcome{sizeof(sluice_outcome), status, 0, {nullptr, 0}};
  context->report(context, &outcome);
}

inline void handle(void*, const sluice_message*, const sluice_context* context) {
  ++script.running;
  while (script.hold && context->wait_for_stop(context, 1'000'000) == 0) {
  }
  script.ignore_stop.wait(true);
  ++script.handled;
  --script.running;
  report(context, script.hold ? SLUICE_RELEASE : SLUICE_DONE);
}

inline int32_t create(const sluice_host*, const sluice_option_value* const*, size_t, void** instance,
                      void (*)(void*, sluice_string), void*) {
  *instance = nullptr;
  return 0;
}

inline int32_t refuse(const sluice_host*, const sluice_option_value* const*, size_t, void**,
                      void (*fail)(void*, sluice_string), void* sink) {
  fail(sink, {"not today", 9});
  return 1;
}

inline void destroy(void*) {}

inline const sluice_handler kHandler{sizeof(sluice_handler),
                                     SLUICE_HANDLER_CONCURRENT | SLUICE_HANDLER_OPEN_OPTIONS,
                                     "scripted",
                                     nullptr,
                                     nullptr,
                                     0,
                                     create,
                                     destroy,
                                     handle,
                                     nullptr};
inline const sluice_handler kRefuses{sizeof(sluice_handler),
                                     SLUICE_HANDLER_CONCURRENT | SLUICE_HANDLER_OPEN_OPTIONS,
                                     "refuses",
                                     nullptr,
                                     nullptr,
                                     0,
                                     refuse,
                                     destroy,
                                     handle,
                                     nullptr};

/// The machine's clocks, which a test may have jump ahead.
class LeapingClock final : public Clock {
 public:
  WallTime wall_now() const override { return machine_.wall_now() + Duration(ahead_); }
  SteadyTime steady_now() const override { return machine_.steady_now() + Duration(ahead_); }
  SteadyTime machine_time(SteadyTime time) const override {
    return time == SteadyTime::max() ? time : time - Duration(ahead_);
  }
  void leap(Duration span) { ahead_ += span.count(); }

 private:
  SystemClock machine_;
  std::atomic<Duration::rep> ahead_{0};
};

/// Jobs on queues in memory, with scripted handlers and real threads.
class JobSetTest : public testing::Test {
 protected:
  JobSetTest() {
    script.handled = 0;
    script.hold = false;
    script.ignore_stop = false;
  }

  JobPlan plan(const std::string& name, const sluice_handler& handler = kHandler) {
    JobPlan plan;
    plan.config.file = name + ".toml";
    plan.config.name = name;
    plan.config.queue = name;
    plan.config.handler = handler.name;
    plan.config.concurrency = 2;
    plan.handler = &handler;
    return plan;
  }

  Result<std::unique_ptr<work::Job>> make(const JobPlan& plan) {
    work::JobSpec spec;
    spec.config = plan.config;
    spec.handler = plan.handler;
    spec.options = plan.options;
    spec.host = "test";
    return work::Job::create(std::move(spec), *queues_.open_source({plan.config.queue, queue::Half::standard}),
                             {clock_, random_, log_, metrics_.job(plan.config.name, plan.config.queue)});
  }

  void failed(const Error& error) {
    const MutexLock lock(mutex_);
    failures_.push_back(error.message());
  }
  std::size_t failures() {
    const MutexLock lock(mutex_);
    return failures_.size();
  }

  Result<void> start(const std::vector<JobPlan>& plans) {
    const auto first = jobs_.prepare(plans);
    return first ? jobs_.start(*first) : Result<void>(first.error());
  }
  Result<JobSet::Changes> reload(const std::vector<JobPlan>& plans, Duration drain_timeout) {
    const auto next = jobs_.prepare(plans);
    if (!next) {
      return next.error();
    }
    jobs_.exchange(*next, drain_timeout);
    return next->changes;
  }

  void send(const std::string& queue, int count) {
    std::vector<queue::NewMessage> messages(static_cast<std::size_t>(count));
    for (const auto& result : desk_.send(queue, messages, Deadline::never())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent);
    }
  }
  /// Looks until it is so; the jobs run on real threads.
  template <typename Condition>
  void until(Condition condition) {
    while (!condition()) {
      std::this_thread::yield();
    }
  }
  Deadline soon() { return Deadline::after(clock_, std::chrono::seconds(10)); }

  LeapingClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  test::Desk desk_{queues_};
  observe::Log log_{observe::LogLevel::off, observe::LogFormat::text};
  observe::Metrics metrics_;
  Mutex mutex_;
  std::vector<std::string> failures_;
  JobSet jobs_{[this](const JobPlan& plan) { return make(plan); }, [this](const Error& error) { failed(error); },
               clock_};
};

}  // namespace sluice::runtime
