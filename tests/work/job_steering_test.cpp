// A job's threads while operators steer it, on the machine's clock.

#include <gtest/gtest.h>

#include <atomic>

#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;

JobSteering paused() { return {.paused = true}; }

TEST(JobSteering, NoHandlerStartsAfterAPauseReturns) {
  std::atomic<bool> is_paused{false};
  std::atomic<int> too_late{0};
  Script script;
  script.handle = [&](const std::string&, const sluice_context&) {
    too_late += is_paused ? 1 : 0;
    return SLUICE_DONE;
  };
  JobRig rig(std::move(script), [](JobSpec& spec) { spec.config.concurrency = 4; });
  ASSERT_TRUE(rig.job->start());
  rig.send_many(20'000);
  ASSERT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.done > 100; }));
  for (int round = 0; round < 5; ++round) {
    rig.job->steer(paused());
    // What had started before may still begin its call; from the moment when nothing runs nothing may.
    ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 0; }));
    is_paused = true;
    const std::uint64_t done = rig.job->ledger().done;
    ASSERT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.in_flight() == 0; }));
    is_paused = false;
    rig.job->steer({});
    ASSERT_TRUE(rig.await([done](const LedgerSnapshot& ledger) { return ledger.done > done; }));
  }
  EXPECT_EQ(too_late, 0);
  ASSERT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.done == 20'000; }));
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
}

TEST(JobSteering, AJobThatStartsPausedRunsNothing) {
  Script script;
  script.handle = [](const std::string&, const sluice_context&) { return SLUICE_DONE; };
  JobRig rig(std::move(script));
  rig.job->steer(paused());
  ASSERT_TRUE(rig.job->start());
  rig.send_many(10);
  EXPECT_EQ(rig.sim.count(test::StoreCall::claim), 0U);
  EXPECT_TRUE(rig.job->activity().paused);
  rig.job->steer({});
  EXPECT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.done == 10; }));
}

TEST(JobSteering, ScalesUpAndDownWhileItRuns) {
  Gate gate;
  std::atomic<int> inside{0};
  Script script;
  script.concurrent = false;
  script.handle = [&](const std::string&, const sluice_context&) {
    ++inside;
    gate.pass();
    --inside;
    return SLUICE_DONE;
  };
  JobRig rig(std::move(script), [](JobSpec& spec) { spec.config.concurrency = 2; });
  ASSERT_TRUE(rig.job->start());
  rig.send_many(100);
  ASSERT_TRUE(gate.await_arrivals(2));
  rig.job->steer({.workers = 20});
  EXPECT_TRUE(gate.await_arrivals(20)) << "the new ones are at work beside the old ones";
  EXPECT_EQ(rig.job->activity().workers, 20U);
  EXPECT_EQ(rig.job->activity().running.size(), 20U);
  rig.job->steer({.workers = 1});
  gate.open();
  ASSERT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.done == 100; }));
  EXPECT_TRUE(rig.await_that([&] { return rig.record().destroyed >= 19; })) << "those that were too many have left";
  EXPECT_EQ(rig.job->activity().workers, 1U);
  rig.send_many(10);
  EXPECT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.done == 110; }));
  rig.job->steer({});
  EXPECT_EQ(rig.job->activity().workers, 2U) << "as the file says";
  EXPECT_TRUE(rig.job->drain(rig.in(10s)).clean());
}

TEST(JobSteering, CancelSetsTheStopTokenAndKeepsTheOutcome) {
  Script script;
  script.handle = [](const std::string&, const sluice_context& context) {
    while (context.wait_for_stop(&context, 10'000'000'000) == 0) {
    }
    return SLUICE_REJECT;
  };
  JobRig rig(std::move(script));
  ASSERT_TRUE(rig.job->start());
  rig.send({"a"});
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 1; }));
  EXPECT_FALSE(rig.job->cancel("b", ""));
  EXPECT_TRUE(rig.job->cancel("a", ""));
  EXPECT_TRUE(rig.await([](const LedgerSnapshot& ledger) { return ledger.rejected == 1; }));
  EXPECT_FALSE(rig.job->cancel("a", ""));
}

TEST(JobSteering, APauseWhileDrainingIsHarmless) {
  Gate gate;
  Script script;
  script.handle = [&](const std::string&, const sluice_context&) {
    gate.pass();
    return SLUICE_DONE;
  };
  JobRig rig(std::move(script));
  ASSERT_TRUE(rig.job->start());
  rig.send({"a"});
  ASSERT_TRUE(gate.await_arrivals(1));
  rig.job->begin_drain(rig.in(10s));
  rig.job->steer({.paused = true, .workers = 64});
  gate.open();
  const JobActivity report = rig.job->drain(rig.in(10s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.done, 1U);
}

}  // namespace
}  // namespace sluice::work
