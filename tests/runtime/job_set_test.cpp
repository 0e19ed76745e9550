#include "host/runtime/job_set.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using queue::NewMessage;

/// What the handlers of these tests do; one test at a time.
struct Script {
  std::atomic<int> handled{0};
  std::atomic<bool> hold{false};         ///< handlers wait for their stop
  std::atomic<bool> ignore_stop{false};  ///< handlers wait for `ignore_stop` to fall
  std::atomic<int> running{0};
};
Script script;

void report(const sluice_context* context, sluice_status status) {
  const sluice_outcome outcome{sizeof(sluice_outcome), status, 0, {nullptr, 0}};
  context->report(context, &outcome);
}

void handle(void*, const sluice_message*, const sluice_context* context) {
  ++script.running;
  while (script.hold && context->wait_for_stop(context, 1'000'000) == 0) {
  }
  script.ignore_stop.wait(true);
  ++script.handled;
  --script.running;
  report(context, script.hold ? SLUICE_RELEASE : SLUICE_DONE);
}

int32_t create(const sluice_host*, const sluice_option_value* const*, size_t, void** instance,
               void (*)(void*, sluice_string), void*) {
  *instance = nullptr;
  return 0;
}

int32_t refuse(const sluice_host*, const sluice_option_value* const*, size_t, void**,
               void (*fail)(void*, sluice_string), void* sink) {
  fail(sink, {"not today", 9});
  return 1;
}

void destroy(void*) {}

const sluice_handler kHandler{sizeof(sluice_handler),
                              SLUICE_HANDLER_CONCURRENT | SLUICE_HANDLER_OPEN_OPTIONS,
                              "scripted",
                              nullptr,
                              nullptr,
                              0,
                              create,
                              destroy,
                              handle,
                              nullptr};
const sluice_handler kRefuses{sizeof(sluice_handler),
                              SLUICE_HANDLER_CONCURRENT | SLUICE_HANDLER_OPEN_OPTIONS,
                              "refuses",
                              nullptr,
                              nullptr,
                              0,
                              refuse,
                              destroy,
                              handle,
                              nullptr};

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
    std::vector<NewMessage> messages(static_cast<std::size_t>(count));
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

  SystemClock clock_;
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

TEST_F(JobSetTest, WorksOnEveryQueueAndAddsUpByName) {
  ASSERT_TRUE(start({plan("a"), plan("b")}).has_value());
  send("a", 3);
  send("b", 4);
  until([&] { return jobs_.total().done == 7; });
  const JobSet::Drained drained = jobs_.drain(soon());
  EXPECT_TRUE(drained.clean);
  EXPECT_EQ(drained.jobs.at("a").done, 3U);
  EXPECT_EQ(drained.jobs.at("b").done, 4U);
}

TEST_F(JobSetTest, StartsNoneWhenOneCannotBeMade) {
  const auto started = start({plan("a"), plan("b", kRefuses)});
  ASSERT_FALSE(started.has_value());
  EXPECT_NE(started.error().message().find("not today"), std::string::npos);
  EXPECT_TRUE(jobs_.addresses().empty());
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, ReloadLeavesUnchangedJobsAloneAndExchangesChangedOnes) {
  ASSERT_TRUE(start({plan("same"), plan("changes"), plan("goes")}).has_value());
  send("changes", 2);
  until([&] { return jobs_.total().done == 2; });
  JobPlan changed = plan("changes");
  changed.config.concurrency = 5;
  const auto changes = reload({plan("same"), changed, plan("comes")}, std::chrono::seconds(10));
  ASSERT_TRUE(changes.has_value());
  EXPECT_EQ(changes->unchanged, 1U);
  EXPECT_EQ(changes->added, std::vector<std::string>{"comes"});
  EXPECT_EQ(changes->changed, std::vector<std::string>{"changes"});
  EXPECT_EQ(changes->removed, std::vector<std::string>{"goes"});
  until([&] { return !jobs_.exchanging(); });
  EXPECT_EQ(jobs_.addresses().size(), 3U);
  send("changes", 3);
  until([&] { return jobs_.total().done == 5; });
  const JobSet::Drained drained = jobs_.drain(soon());
  EXPECT_TRUE(drained.clean);
  EXPECT_EQ(drained.jobs.at("changes").done, 5U) << "both lives of the job count";
}

TEST_F(JobSetTest, ReloadChangesNothingWhenOneCannotBeMade) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  JobPlan changed = plan("a");
  changed.config.concurrency = 7;
  ASSERT_FALSE(reload({changed, plan("b", kRefuses)}, std::chrono::seconds(10)).has_value());
  EXPECT_FALSE(jobs_.exchanging());
  EXPECT_EQ(jobs_.addresses().size(), 1U);
  send("a", 1);
  until([&] { return jobs_.total().done == 1; });
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, ADrainDuringAnExchangeEndsBothLives) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  script.ignore_stop = true;
  send("a", 1);
  until([&] { return script.running == 1; });
  JobPlan changed = plan("a");
  changed.config.concurrency = 3;
  ASSERT_TRUE(reload({changed}, std::chrono::hours(1)).has_value());
  EXPECT_TRUE(jobs_.exchanging());
  EXPECT_FALSE(jobs_.quiescent());
  std::jthread lets_go([&] {
    until([&] { return jobs_.addresses().size() == 1; });
    script.ignore_stop = false;
    script.ignore_stop.notify_all();
  });
  const JobSet::Drained drained = jobs_.drain(soon());
  EXPECT_TRUE(drained.clean);
  EXPECT_EQ(drained.jobs.at("a").claimed, 1U);
}

TEST_F(JobSetTest, AHardStopDoesNotWaitForAHandler) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  script.ignore_stop = true;
  send("a", 1);
  until([&] { return script.running == 1; });
  std::jthread impatient([&] { jobs_.hard_stop(); });
  const JobSet::Drained drained = jobs_.drain(Deadline::after(clock_, std::chrono::hours(1)));
  EXPECT_FALSE(drained.clean);
  EXPECT_TRUE(drained.threads_left);
  script.ignore_stop = false;
  script.ignore_stop.notify_all();
  until([&] { return script.running == 0; });
}

TEST_F(JobSetTest, CountsWhatHasNotEndedAsStrandedForWhoeverCannotWait) {
  ASSERT_TRUE(start({plan("a"), plan("b")}).has_value());
  send("b", 1);
  until([&] { return jobs_.total().done == 1; });
  EXPECT_TRUE(jobs_.account().clean);
  script.ignore_stop = true;
  send("a", 1);
  until([&] { return script.running == 1; });
  const JobSet::Drained now = jobs_.account();
  EXPECT_FALSE(now.clean);
  EXPECT_TRUE(now.threads_left);
  EXPECT_EQ(now.jobs.at("a").stranded, 1U);
  EXPECT_EQ(now.jobs.at("a").in_flight(), 0U) << "it adds up";
  EXPECT_EQ(now.jobs.at("b").done, 1U);
  script.ignore_stop = false;
  script.ignore_stop.notify_all();
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, ADrainBegunElsewhereStartsNothingAnyMore) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  const auto next = jobs_.prepare({plan("a"), plan("late")});
  ASSERT_TRUE(next.has_value());
  std::jthread signals([&] { jobs_.begin_drain(soon()); });
  signals.join();
  jobs_.exchange(*next, std::chrono::seconds(10));
  EXPECT_EQ(jobs_.addresses().size(), 1U);
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, KnowsWhichJobsItRuns) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  JobPlan changed = plan("a");
  changed.config.concurrency = 7;
  EXPECT_TRUE(jobs_.runs(plan("a").config));
  EXPECT_FALSE(jobs_.runs(changed.config));
  EXPECT_FALSE(jobs_.runs(plan("b").config));
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

/// Leaves this process no address space but `more` for a scope.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const struct rlimit limit { pages* static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + more, before_.rlim_max };
    ::setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  struct rlimit before_ {};
};

constexpr rlim_t kRoomForSomeThreads = rlim_t{256} << 20;

TEST_F(JobSetTest, AReloadWithoutRoomForItsThreadsChangesNothingAndNamesTheLimit) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  JobPlan large = plan("a");
  large.config.concurrency = 1000;
  {
    const AddressSpaceLimit limit(kRoomForSomeThreads);
    const auto changes = reload({large}, std::chrono::seconds(10));
    ASSERT_FALSE(changes.has_value());
    EXPECT_NE(changes.error().message().find("ulimit -v"), std::string::npos) << changes.error().message();
  }
  EXPECT_FALSE(jobs_.exchanging());
  send("a", 1);
  until([&] { return jobs_.total().done == 1; });
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, ASuccessorThatGetsNoThreadsAfterAllGivesThePlaceBack) {
  ASSERT_TRUE(start({plan("a")}).has_value());
  send("a", 1);
  until([&] { return jobs_.total().done == 1; });
  JobPlan large = plan("a");
  large.config.concurrency = 1000;
  const auto next = jobs_.prepare({large});
  ASSERT_TRUE(next.has_value());
  {
    const AddressSpaceLimit limit(kRoomForSomeThreads);
    jobs_.exchange(*next, std::chrono::seconds(10));
    until([&] { return !jobs_.exchanging(); });
  }
  EXPECT_EQ(failures(), 1U);
  EXPECT_TRUE(jobs_.runs(plan("a").config));
  send("a", 1);
  until([&] { return jobs_.total().done == 2; });
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, AStartWithoutThreadsFailsAndADrainAddsUp) {
  JobPlan large = plan("large");
  large.config.concurrency = 1000;
  const auto first = jobs_.prepare({plan("a"), large});
  ASSERT_TRUE(first.has_value());
  {
    const AddressSpaceLimit limit(kRoomForSomeThreads);
    const auto started = jobs_.start(*first);
    ASSERT_FALSE(started.has_value());
    EXPECT_NE(started.error().message().find("ulimit -v"), std::string::npos) << started.error().message();
  }
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

}  // namespace
}  // namespace sluice::runtime
