// Where a host is steered from, and what it says of itself, over real jobs.

#include <gmock/gmock.h>
#include <unistd.h>

#include "base/process_mark.hpp"
#include "host/runtime/fleet_service.hpp"
#include "tests/runtime/job_set_rig.hpp"

namespace sluice::runtime {
namespace {

using fleet::Directive;
using fleet::Target;
using fleet::Wish;
using testing::HasSubstr;

class ThisHostTest : public JobSetTest {
 protected:
  static config::HostConfig host_config() {
    config::HostConfig config;
    config.file = "/etc/host.toml";
    return config;
  }

  Directive order(Wish wish, Target target, const std::string& name) {
    return {.id = "o", .wish = wish, .target = target, .name = name, .by = "ann"};
  }

  const config::HostConfig config_ = host_config();
  HostEvents events_;
  ThisHost this_host_{{config_, jobs_, events_, log_, clock_, "ops", "1.2.3", "ops/12345678"}};
};

TEST_F(ThisHostTest, SaysWhatTheHostIsAndWhatItIsAt) {
  script.hold = true;
  ASSERT_TRUE(start({plan("a"), plan("b")}));
  send("a", 1);
  until([&] { return script.running == 1; });
  this_host_.set_address("127.0.0.1:1");
  this_host_.set_state(fleet::HostState::running);
  const fleet::HostRecord record = this_host_.describe();
  EXPECT_EQ(record.label(), "ops:" + std::to_string(::getpid()));
  EXPECT_THAT(record.instance, HasSubstr(record.label() + ":"));
  EXPECT_EQ(record.version, "1.2.3");
  EXPECT_EQ(record.address, "127.0.0.1:1");
  EXPECT_EQ(record.log_level, "info");
  EXPECT_EQ(record.state, fleet::HostState::running);
  ASSERT_EQ(record.jobs.size(), 2U);
  EXPECT_EQ(record.jobs[0].name, "a");
  EXPECT_EQ(record.jobs[0].concurrency, 2U);
  EXPECT_EQ(record.jobs[0].running, 1U);
  EXPECT_EQ(record.jobs[1].running, 0U);
  ASSERT_EQ(record.running.size(), 1U);
  EXPECT_EQ(record.running_total, 1U);
  EXPECT_EQ(record.running[0].job, "a");
  EXPECT_EQ(record.running[0].attempt, 1U);
  ASSERT_TRUE(record.running[0].times_out_at);
  EXPECT_GT(*record.running[0].times_out_at, record.running[0].since);
  EXPECT_LE(record.running[0].since, clock_.wall_now());
  EXPECT_FALSE(record.running[0].cancelled);
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, AHandlerThatDoesNotReturnIsToldOfAfterItsJobHasEnded) {
  script.ignore_stop = true;
  ASSERT_TRUE(start({plan("a")}));
  send("a", 1);
  until([&] { return script.running == 1; });
  const JobSet::Drained drained = jobs_.drain(Deadline::after(clock_, std::chrono::milliseconds(50)));
  EXPECT_FALSE(drained.clean);
  this_host_.set_left_behind(drained.left_behind.at(0));
  const fleet::HostRecord record = this_host_.describe();
  ASSERT_EQ(record.running.size(), 1U);
  EXPECT_EQ(record.running[0].job, "a");
  EXPECT_EQ(record.state, fleet::HostState::ended);
  EXPECT_THAT(record.left_behind, HasSubstr("was taken from its handler"));
  script.ignore_stop = false;
  script.ignore_stop.notify_all();
}

TEST_F(ThisHostTest, SaysThatAJobsStoreHasFailedItForLong) {
  this_host_.set_state(fleet::HostState::running);
  ASSERT_TRUE(start({plan("a")}));
  EXPECT_EQ(this_host_.describe().not_ready, "");
  queues_.fail_next(test::StoreCall::claim, 1'000'000, Error(ErrorCode::timeout, "no answer"));
  until([&] { return jobs_.members().at(0).job->activity().trouble.has_value(); });
  clock_.leap(std::chrono::seconds(10));
  until([&] { return this_host_.describe().jobs[0].cut_off; });
  EXPECT_EQ(this_host_.describe().not_ready, "job a cannot work: no answer");
  EXPECT_EQ(this_host_.describe().unhealthy, "") << "a restart mends nothing";
  queues_.heal();
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, ABurstIsInThePaceHoweverOftenSomebodyLooks) {
  using std::chrono::seconds;
  ASSERT_TRUE(start({plan("a")}));
  EXPECT_EQ(this_host_.describe().jobs[0].pace.over, Duration::zero()) << "nothing is known yet";
  clock_.leap(seconds(5));
  send("a", 20);
  until([&] { return jobs_.total().done == 20; });
  for (int i = 0; i < 9; ++i) {
    const fleet::HostRecord record = this_host_.describe();
    EXPECT_GT(record.jobs[0].pace.done, 1) << i << " seconds later";
    EXPECT_GT(record.jobs[0].pace.over, seconds(4));
    EXPECT_GT(record.up, seconds(4 + i));
    clock_.leap(seconds(1));
  }
  clock_.leap(seconds(10));
  this_host_.describe();
  clock_.leap(seconds(10));
  this_host_.describe();
  EXPECT_EQ(this_host_.describe().jobs[0].pace.done, 0);
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, ItsRecordIsFoundByWhoeverHasItsCrashLedgerAndItsProcessByWhoeverIsHere) {
  const fleet::HostRecord record = this_host_.describe();
  EXPECT_EQ(record.instance, fleet::instance_of("ops", ::getpid(), "ops/12345678"));
  EXPECT_EQ(life_of(record.pid, record.process), ProcessLife::alive);
}

TEST_F(ThisHostTest, HasTheJobsRunAsOperatorsWant) {
  ASSERT_TRUE(start({plan("a"), plan("b")}));
  fleet::HostSteering standing;
  standing.paused_queues = {"a", "unknown"};
  standing.workers = {{"b", 5}, {"unknown", 9}};
  standing.log_level = "debug";
  this_host_.take(standing);
  fleet::HostRecord record = this_host_.describe();
  EXPECT_TRUE(record.jobs[0].paused);
  EXPECT_FALSE(record.jobs[1].paused);
  EXPECT_EQ(record.jobs[1].concurrency, 5U);
  EXPECT_EQ(record.jobs[1].file_concurrency, 2U);
  EXPECT_EQ(record.log_level, "debug");
  EXPECT_EQ(record.file_log_level, "info");
  EXPECT_TRUE(log_.enabled(observe::LogLevel::debug));
  this_host_.take({});
  record = this_host_.describe();
  EXPECT_FALSE(record.jobs[0].paused);
  EXPECT_EQ(record.jobs[1].concurrency, 2U);
  EXPECT_FALSE(log_.enabled(observe::LogLevel::debug));
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, OrdersDoWhatSignalsDo) {
  int terminations = 0;
  events_.on_termination([&](int nth) { terminations = nth; });
  EXPECT_TRUE(this_host_.obey(order(Wish::reload, Target::all, "")).done);
  EXPECT_TRUE(events_.take_reload());
  EXPECT_FALSE(this_host_.obey(order(Wish::drain, Target::host, "other")).done);
  EXPECT_FALSE(events_.terminating());
  EXPECT_TRUE(this_host_.obey(order(Wish::drain, Target::host, "ops")).done);
  EXPECT_TRUE(events_.terminating());
  EXPECT_THAT(this_host_.obey(order(Wish::drain, Target::host, "ops")).text, HasSubstr("already"));
  EXPECT_FALSE(events_.hard_stop_requested());
  EXPECT_EQ(terminations, 1);
}

TEST_F(ThisHostTest, CancelsWhatRunsAndSaysWhereNothingDoes) {
  script.hold = true;
  ASSERT_TRUE(start({plan("a")}));
  send("a", 1);
  until([&] { return this_host_.describe().running.size() == 1; });
  const std::string id = this_host_.describe().running[0].message;
  EXPECT_FALSE(this_host_.obey(order(Wish::cancel_running, Target::message, "nobody")).done);
  EXPECT_TRUE(this_host_.obey(order(Wish::cancel_running, Target::message, id)).done);
  until([&] { return jobs_.total().released == 1; });
  script.hold = false;
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, AMessageOfAnotherQueueIsNotTheOneThatIsToBeCancelled) {
  script.hold = true;
  ASSERT_TRUE(start({plan("a"), plan("b")}));
  send("a", 1);
  until([&] { return this_host_.describe().running.size() == 1; });
  Directive cancel = order(Wish::cancel_running, Target::message, this_host_.describe().running[0].message);
  cancel.value = "b";
  EXPECT_FALSE(this_host_.obey(cancel).done);
  EXPECT_FALSE(this_host_.describe().running[0].cancelled);
  cancel.value = "a";
  EXPECT_TRUE(this_host_.obey(cancel).done);
  until([&] { return jobs_.total().released == 1; });
  script.hold = false;
  jobs_.drain(soon());
}

TEST_F(ThisHostTest, RefusesWhatIsNoOrderOrHasAFlaw) {
  const auto standing = this_host_.obey(order(Wish::pause, Target::queue, "a"));
  EXPECT_FALSE(standing.done);
  EXPECT_THAT(standing.text, HasSubstr("no order"));
  EXPECT_FALSE(this_host_.obey(order(Wish::drain, Target::queue, "a")).done);
  EXPECT_FALSE(events_.terminating());
}

TEST_F(ThisHostTest, TellsHowFastItGoes) {
  ASSERT_TRUE(start({plan("a")}));
  EXPECT_EQ(this_host_.describe().jobs[0].pace.done, 0);
  send("a", 500);
  until([&] { return jobs_.total().done == 500; });
  fleet::JobPace pace;
  until([&] {
    pace = this_host_.describe().jobs[0].pace;
    return pace.done > 0;
  });
  EXPECT_GT(pace.mean, Duration::zero());
  EXPECT_GE(pace.slowest, pace.mean);
  EXPECT_EQ(this_host_.describe().jobs[0].done, 500U);
  jobs_.drain(soon());
}

}  // namespace
}  // namespace sluice::runtime
