#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/runtime/job_set_rig.hpp"

namespace sluice::runtime {
namespace {

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
  ASSERT_EQ(drained.left_behind.size(), 1U);
  EXPECT_NE(drained.left_behind[0].find("was taken from its handler, which had still not returned"), std::string::npos)
      << drained.left_behind[0];
  EXPECT_EQ(drained.left_behind[0].find("job a: message "), 0U);
  EXPECT_TRUE(drained.threads_left);
  script.ignore_stop = false;
  script.ignore_stop.notify_all();
  until([&] { return script.running == 0; });
}

TEST_F(JobSetTest, CountsWhatHasNotEndedAsStrandedForWhoeverCannotWait) {
  ASSERT_TRUE(start({plan("a"), plan("b")}).has_value());
  send("b", 1);
  until([&] { return jobs_.total().done == 1; });
  until([&] { return jobs_.account().clean; });  // not while a claim is under way
  script.ignore_stop = true;
  send("a", 1);
  until([&] { return script.running == 1; });
  const JobSet::Drained now = jobs_.account();
  EXPECT_FALSE(now.clean);
  ASSERT_EQ(now.left_behind.size(), 2U) << "the handler, and that its message stays claimed";
  EXPECT_NE(now.left_behind[0].find("had not returned after"), std::string::npos) << now.left_behind[0];
  EXPECT_NE(now.left_behind[1].find("1 message stays claimed"), std::string::npos) << now.left_behind[1];
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
  EXPECT_TRUE(jobs_.runs(plan("a").config, {plan("a").handler}));
  EXPECT_FALSE(jobs_.runs(changed.config, {changed.handler}));
  EXPECT_FALSE(jobs_.runs(plan("b").config, {plan("b").handler}));
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, AJobWithAnotherHandlerAroundItsOwnIsExchanged) {
  const sluice_handler around = kHandler;
  const sluice_handler newer = kHandler;
  const auto within = [this](const sluice_handler& handler) {
    JobPlan made = plan("a");
    made.arounds.push_back({&handler, {}});
    return made;
  };
  ASSERT_TRUE(start({within(around)}).has_value());
  EXPECT_TRUE(jobs_.runs(plan("a").config, {plan("a").handler, &around}));
  EXPECT_FALSE(jobs_.runs(plan("a").config, {plan("a").handler, &newer}));
  EXPECT_FALSE(jobs_.runs(plan("a").config, {plan("a").handler}));
  EXPECT_FALSE(jobs_.runs(plan("a").config, {})) << "one of them is not there";
  EXPECT_EQ(jobs_.prepare({within(around)})->changes.unchanged, 1U);
  EXPECT_EQ(jobs_.prepare({within(newer)})->changes.changed, std::vector<std::string>{"a"});
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, AJobWhosePluginIsAnotherOneIsExchanged) {
  const auto with_plugin = [this](const sluice_handler& handler, const std::string& version) {
    JobPlan made = plan("a");
    made.handler = &handler;
    made.plugin_file = "plugins/a.so";
    made.plugin_version = version;
    return made;
  };
  const sluice_handler next = kHandler;
  ASSERT_TRUE(start({with_plugin(kHandler, "1.0.0"), plan("b")}).has_value());
  EXPECT_FALSE(jobs_.runs(plan("a").config, {&next}));
  const auto newer = jobs_.prepare({with_plugin(next, "1.1.0"), plan("b")});
  ASSERT_TRUE(newer.has_value());
  EXPECT_EQ(newer->changes.changed, std::vector<std::string>{"a (a.so 1.0.0, now 1.1.0)"});
  EXPECT_EQ(newer->changes.unchanged, 1U);
  const auto rebuilt = jobs_.prepare({with_plugin(next, "1.0.0"), plan("b")});
  EXPECT_EQ(rebuilt->changes.changed, std::vector<std::string>{"a (a.so 1.0.0, built anew)"});
  jobs_.exchange(*newer, std::chrono::seconds(10));
  until([&] { return !jobs_.exchanging(); });
  EXPECT_TRUE(jobs_.runs(plan("a").config, {&next}));
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
  EXPECT_TRUE(jobs_.runs(plan("a").config, {plan("a").handler}));
  send("a", 1);
  until([&] { return jobs_.total().done == 2; });
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(JobSetTest, SteeringHoldsForTheJobsThatComeLater) {
  jobs_.steer([](const config::JobConfig& job) {
    return work::JobSteering{.paused = job.queue == "a", .workers = job.name == "b" ? 7U : 0U};
  });
  ASSERT_TRUE(start({plan("a"), plan("b")}).has_value());
  send("a", 3);
  send("b", 3);
  until([&] { return jobs_.total().done == 3; });
  JobPlan changed = plan("a");
  changed.config.concurrency = 5;
  ASSERT_TRUE(reload({changed, plan("b")}, std::chrono::seconds(10)).has_value());
  until([&] { return !jobs_.exchanging(); });
  const auto members = jobs_.members();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_TRUE(members[0].job->activity().paused) << "the job of the new file too";
  EXPECT_EQ(members[0].job->activity().workers, 5U);
  EXPECT_EQ(members[1].job->activity().workers, 7U);
  EXPECT_EQ(jobs_.total().done, 3U);
  jobs_.steer([](const config::JobConfig&) { return work::JobSteering(); });
  until([&] { return jobs_.total().done == 6; });
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
