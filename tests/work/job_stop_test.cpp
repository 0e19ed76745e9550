// How a job ends, and what it keeps while handlers run on.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "host/work/job.hpp"
#include "host/work/job_flow.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using test::StoreCall;

TEST(JobDrain, UnderLoadNothingIsForgottenAndNoAttemptIsBurnt) {
  JobRig rig({.handle = [](const std::string&, const sluice_context&) { return done(); }, .create = {}});
  constexpr int kMessages = 20'000;
  rig.send_many(kMessages);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done > 500; }));
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.claimed, report.ledger.done + report.ledger.released);
  const queue::QueueStats stats = rig.stats();
  EXPECT_EQ(stats.in_flight, 0U);
  EXPECT_EQ(stats.ready, kMessages - report.ledger.done);
  const auto rest = rig.desk.list("orders", {.limit = kMessages}, Deadline::never());
  for (const queue::StoredMessage& stored : rest->messages) {
    ASSERT_EQ(stored.message.attempt, 0U) << stored.message.id;
  }
}

TEST(JobDrain, WhatAClaimUnderWayBringsIsReleasedAtOnce) {
  JobRig rig({.handle = [](const std::string&, const sluice_context&) { return done(); }, .create = {}});
  Gate gate;
  rig.sim.set_fault_source([&](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    if (call == StoreCall::claim) {
      gate.pass();
    }
    return std::nullopt;
  });
  rig.send({"A-1", "A-2"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  rig.job->begin_drain(rig.in(20s));
  gate.open();
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  // As many as workers were there when it claimed.
  EXPECT_GE(report.ledger.claimed, 1U);
  EXPECT_EQ(report.ledger.released, report.ledger.claimed);
  EXPECT_EQ(rig.stats().ready, 2U);
  EXPECT_TRUE(rig.record().started.empty());
  EXPECT_EQ(rig.sim.count(StoreCall::claim), 1U) << "it does not poll again";
}

TEST(JobDrain, DoesNotWaitForAClaimBeyondItsDeadline) {
  JobRig rig({.handle = [](const std::string&, const sluice_context&) { return done(); }, .create = {}});
  Gate gate;
  rig.sim.set_fault_source([&](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    if (call == StoreCall::claim) {
      gate.pass();
    }
    return std::nullopt;
  });
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  const JobActivity report = rig.job->drain(rig.in(50ms));
  EXPECT_TRUE(report.claiming);
  EXPECT_FALSE(report.clean());
  gate.open();
}

TEST(JobDrain, RunningHandlersGetTheirStopTokenAndTimeToFinish) {
  Gate gate;
  std::atomic<int> told{0};
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context& context) {
                    gate.pass();
                    told += context.wait_for_stop(&context, 20'000'000'000) != 0 ? 1 : 0;
                    return done();
                  },
              .create = {}});
  rig.send_many(4);
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(4));
  gate.open();
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.done, 4U);
  EXPECT_EQ(told, 4);
}

TEST(JobDrain, KeepsExtendingLeasesMeanwhile) {
  Gate gate;
  JobRig rig(deaf(gate), [](JobSpec& spec) { spec.leases.front().visibility = 1s; });
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  rig.job->begin_drain(rig.in(30s));
  ASSERT_TRUE(rig.await_that([&] { return rig.sim.count(StoreCall::extend) >= 3; }));
  gate.open();
  const JobActivity report = rig.job->drain(rig.in(30s));
  EXPECT_EQ(report.ledger.done, 1U);
  EXPECT_TRUE(report.clean());
}

TEST(JobDrain, ReleasesWhatIsStillRunningAtTheEndWithinTheBound) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send_many(4);
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(4));
  // A fifth of it is for the releases, which a busy machine needs too.
  const JobActivity report = rig.job->drain(rig.in(4s));
  EXPECT_EQ(report.ledger.released, 4U);
  EXPECT_EQ(report.ledger.stranded, 0U);
  EXPECT_EQ(report.handlers_running(), 4U);
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(rig.stats().ready, 4U);
  gate.open();
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 0; }));
  rig.job->stop();
  EXPECT_EQ(rig.job->ledger(), report.ledger) << "what comes in after the end changes nothing";
  EXPECT_EQ(rig.stats().ready, 4U);
}

TEST(JobDrain, FlushesSettlementsThatFailedBefore) {
  JobRig rig({.handle = [](const std::string&, const sluice_context&) { return done(); }, .create = {}});
  rig.sim.fail_next(StoreCall::settle, 3, Error(ErrorCode::unavailable, "down"));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await_that([&] { return rig.metrics.count("settle_failed") >= 1; }));
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.done, 1U);
}

TEST(JobDrain, ASecondOneEndsWithTheFirst) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  JobActivity other;
  std::jthread second([&] { other = rig.job->drain(rig.in(20s)); });
  gate.open();
  const JobActivity report = rig.job->drain(rig.in(20s));
  second.join();
  EXPECT_EQ(report.ledger, other.ledger);
  EXPECT_TRUE(report.clean());
}

TEST(JobDrain, BeforeTheStartItIsOverAtOnce) {
  JobRig rig({.handle = {}, .create = {}});
  EXPECT_TRUE(rig.job->drain(Deadline::never()).clean());
  rig.job->start();
  EXPECT_EQ(rig.sim.count(StoreCall::claim), 0U);
}

TEST(JobHardStop, DoesNotWaitForHandlers) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send_many(3);
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(3));
  rig.job->begin_drain(rig.in(1h));
  rig.job->hard_stop();
  const JobActivity report = rig.job->drain(rig.in(1h));
  EXPECT_EQ(report.ledger.released, 3U);
  EXPECT_EQ(report.handlers_running(), 3U);
  gate.open();
}

TEST(JobHardStop, HasAbandonedWhatItGaveUpHoweverSoonItReturns) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  rig.job->hard_stop();
  JobActivity report = rig.job->drain(rig.in(1h));
  EXPECT_FALSE(report.clean());
  gate.open();
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 0; }));
  report = rig.job->drain(rig.in(1h));
  EXPECT_EQ(report.handlers_running(), 0U);
  EXPECT_FALSE(report.clean()) << "its message was released while it ran";
}

TEST(JobHardStop, EndsADrainUnderWay) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  JobActivity report;
  std::jthread drain([&] { report = rig.job->drain(rig.in(1h)); });
  rig.job->hard_stop();
  drain.join();
  EXPECT_EQ(report.handlers_running(), 1U);
  gate.open();
}

TEST(JobHardStop, TriesOnceAndStrandsWhatTheStoreDoesNotTake) {
  Gate gate;
  JobRig rig(deaf(gate));
  rig.send_many(2);
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(2));
  rig.sim.fail_next(StoreCall::settle, 1000, Error(ErrorCode::unavailable, "down"));
  rig.job->hard_stop();
  const JobActivity report = rig.job->drain(rig.in(1h));
  EXPECT_EQ(report.ledger.stranded, 2U);
  EXPECT_EQ(rig.sim.count(StoreCall::settle), 1U);
  EXPECT_FALSE(report.clean());
  gate.open();
}

// Half a second of slack: a busy machine must not lose the lease, only a keeper that sleeps.
constexpr Duration kShortVisibility = 1s;

TEST(JobLease, AHandlerMayRunForManyVisibilityTimeouts) {
  Gate gate;
  JobRig rig(deaf(gate), [](JobSpec& spec) { spec.leases.front().visibility = kShortVisibility; });
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await_that([&] { return rig.sim.count(StoreCall::extend) >= 5; }));
  gate.open();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.record().started["A-1"], 1);
  EXPECT_EQ(rig.job->ledger().claimed, 1U);
}

TEST(JobLease, ASlowSettlementDoesNotHoldUpExtensions) {
  Gate handler;
  Gate settle;
  JobRig rig({.handle =
                  [&](const std::string& id, const sluice_context&) {
                    if (id == "long") {
                      handler.pass();
                    }
                    return done();
                  },
              .create = {}},
             [](JobSpec& spec) { spec.leases.front().visibility = kShortVisibility; });
  rig.sim.set_fault_source([&](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    if (call == StoreCall::settle) {
      settle.pass();
    }
    return std::nullopt;
  });
  rig.send({"long", "short"});
  rig.job->start();
  ASSERT_TRUE(handler.await_arrivals(1));
  ASSERT_TRUE(settle.await_arrivals(1));
  ASSERT_TRUE(rig.await_that([&] { return rig.sim.count(StoreCall::extend) >= 3; }));
  settle.open();
  handler.open();
  ASSERT_TRUE(rig.await_that([&] { return rig.record().finished.contains("long"); }));
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done >= 1 && ledger.in_flight() == 0; }));
  EXPECT_EQ(rig.record().started["long"], 1);
}

TEST(JobLease, WhatIsStillAtWorkWhenItsLeaseEndsIsToldAndSettledAllTheSame) {
  std::atomic<bool> told{false};
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context& context) {
                    told = context.wait_for_stop(&context, 20'000'000'000) != 0;
                    return done();
                  },
              .create = {}},
             [](JobSpec& spec) { spec.leases.front().visibility = 300ms; });
  rig.sim.fail_next(StoreCall::extend, 1000, Error(ErrorCode::unavailable, "down"));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_TRUE(told);
  EXPECT_GE(rig.sim.count(StoreCall::extend), 2U) << "it was tried more than once";
  EXPECT_EQ(rig.record().started["A-1"], 1);
}

TEST(JobLease, WhatComesBackWhileItIsStillAtWorkIsNotStartedTwice) {
  Gate gate;
  JobRig rig(deaf(gate), [](JobSpec& spec) { spec.leases.front().visibility = 200ms; });
  rig.sim.fail_next(StoreCall::extend, 1000, Error(ErrorCode::unavailable, "down"));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.claimed >= 2; }));
  gate.open();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.record().started["A-1"], 1);
  EXPECT_EQ(rig.job->ledger().in_flight(), 0U);
}

// Each call in turn hangs until the gate opens.
class HangingCall : public ::testing::TestWithParam<StoreCall> {};

TEST_P(HangingCall, HoldsUpNoDrainAndNoHardStop) {
  for (const bool hard : {false, true}) {
    Gate gate;
    Gate handler;
    JobRig rig({.handle =
                    [&](const std::string& id, const sluice_context&) {
                      if (id == "long") {
                        handler.pass();
                      }
                      return done();
                    },
                .create = {}},
               [](JobSpec& spec) { spec.leases.front().visibility = 300ms; });
    rig.sim.set_fault_source([&](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
      if (call == GetParam()) {
        gate.pass();
      }
      return std::nullopt;
    });
    rig.send({"long", "short"});
    rig.job->start();
    ASSERT_TRUE(gate.await_arrivals(1));
    const SteadyTime begun = rig.clock.steady_now();
    if (hard) {
      rig.job->begin_drain(rig.in(1h));
      rig.job->hard_stop();
    }
    const JobActivity report = rig.job->drain(rig.in(hard ? Duration(1h) : Duration(200ms)));
    const Duration bound = hard ? Duration(kHardStopTime) : Duration(200ms);
    EXPECT_LT(rig.clock.steady_now() - begun, bound + 1s);
    EXPECT_FALSE(report.clean() && rig.job->at_rest());
    EXPECT_EQ(report.ledger.claimed, report.ledger.ended() + report.ledger.stranded);
    gate.open();
    handler.open();
    ASSERT_TRUE(rig.await_that([&] { return rig.job->at_rest(); })) << "it can be destroyed once the call returns";
  }
}

std::string call_name(const ::testing::TestParamInfo<StoreCall>& tested) {
  return tested.param == StoreCall::claim ? "Claim" : tested.param == StoreCall::settle ? "Settle" : "Extend";
}

INSTANTIATE_TEST_SUITE_P(Source, HangingCall, ::testing::Values(StoreCall::claim, StoreCall::settle, StoreCall::extend),
                         call_name);

}  // namespace
}  // namespace sluice::work
