// A host that was frozen beyond its leases: its own poller is quicker than the calls about what it holds.
#include <gtest/gtest.h>

#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;
using plugin::OutcomeStatus;
using queue::CompletionAction;
using queue::SettleStatus;

/// One message with a handler at work. What comes back and were to run would wait for a lane.
class OwnClaim : public ::testing::Test {
 protected:
  OwnClaim() {
    EXPECT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
    queue::Claimed first = rig_.messages(1);
    first.deliveries[0].message.body = "a body";
    back_ = first;
    back_.deliveries[0].suspect = true;
    rig_.flow.claimed(std::move(first), rig_.now(), rig_.effects);
    running_ = rig_.start(0);
    EXPECT_NE(running_, nullptr);
  }

  /// Its lease has ended, and a claim brings it once more. Nothing may begin.
  void come_back(std::int64_t version = 2) {
    queue::Claimed again = back_;
    again.deliveries[0].receipt.version = version;
    again.deliveries[0].leased_until = rig_.now() + rig_.visibility;
    rig_.flow.claimed(std::move(again), rig_.now(), rig_.effects);
    EXPECT_FALSE(rig_.flow.has_work(SeatKind::quarantine)) << "a second run";
  }
  JobFlow::SettleOrder settling() {
    auto order = rig_.flow.next_settlement(rig_.now(), rig_.clock.wall_now(), rig_.effects);
    EXPECT_EQ(order.tasks.size(), 1U);
    EXPECT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
    return order;
  }
  JobFlow::ExtendOrder extending() {
    rig_.pass(31s);
    auto order = rig_.flow.next_extension(rig_.now(), rig_.effects);
    EXPECT_EQ(order.tasks.size(), 1U);
    EXPECT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
    return order;
  }
  void settled(JobFlow::SettleOrder order, queue::SettleResult result) {
    rig_.flow.settled(std::move(order), {std::move(result)}, rig_.now(), rig_.effects);
    EXPECT_FALSE(rig_.flow.has_work(SeatKind::quarantine)) << "a second run";
  }
  void extended(JobFlow::ExtendOrder order, SettleStatus status) {
    auto results = rig_.extensions(order, status);
    rig_.flow.extended(std::move(order), std::move(results), rig_.now(), rig_.effects);
    EXPECT_FALSE(rig_.flow.has_work(SeatKind::quarantine)) << "a second run";
  }
  /// What is finished is written under this version, and the account is balanced then.
  void expect_written(std::int64_t version, CompletionAction action = CompletionAction::remove) {
    ASSERT_EQ(rig_.settle(), 1U);
    EXPECT_EQ(rig_.last.at(0).receipt.version, version);
    EXPECT_EQ(rig_.last.at(0).action, action);
    expect_nothing_left();
  }
  void expect_nothing_left() {
    EXPECT_EQ(rig_.settle(), 0U);
    EXPECT_EQ(rig_.account().in_flight(), 0U);
    EXPECT_EQ(rig_.flow.in_flight().size(), 0U);
    EXPECT_TRUE(rig_.crash_ledger.held.empty());
  }

  FlowRig rig_{2, FlowRig::settings(), FlowRig::job(), 600s};
  queue::Claimed back_;
  Task* running_ = nullptr;
};

TEST_F(OwnClaim, BeforeASettlementIsWhatTheMessageIsSettledUnder) {
  rig_.finish(0);
  auto order = settling();
  come_back();
  EXPECT_EQ(rig_.crash_ledger.held.begin()->second.version, 2) << "a successor could release it";
  settled(std::move(order), {SettleStatus::lost, {}});
  expect_written(2);
  EXPECT_EQ(rig_.account().done, 1U);
  EXPECT_EQ(rig_.account().lost, 1U) << "the first claim";
  EXPECT_EQ(rig_.effects.counts.lost, 0U) << "nobody took it";
}

// Its checkpoint was stored and the answer never came: the record is another one.
TEST_F(OwnClaim, OfWhatItsCheckpointHasChangedStopsTheRunBefore) {
  const auto loan = JobFlow::Checkpoints::lend(rig_.flow, *running_, rig_.now());
  ASSERT_EQ(loan.state, LeaseKeeper::Loan::State::ours);
  rig_.pass(31s);
  ASSERT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
  back_.deliveries[0].message.checkpoint = "half of it";
  back_.deliveries[0].leased_until = rig_.now() + rig_.visibility;
  rig_.flow.claimed(back_, rig_.now(), rig_.effects);
  EXPECT_TRUE(rig_.batches[0].stop_requested()) << "what it does runs for nothing";
  EXPECT_EQ(rig_.account().lost, 1U);
  EXPECT_TRUE(rig_.effects.checkpoints) << "one that waits is told";
  const std::uint32_t lane = rig_.enlist(SeatKind::quarantine, true);
  EXPECT_NE(rig_.start(lane), nullptr);
  JobFlow::Checkpoints::repaid(rig_.flow, *running_, {SettleStatus::failed, {}}, "half of it", rig_.now(),
                               rig_.effects);
  rig_.finish(0);
  rig_.finish(lane);
  ASSERT_EQ(rig_.settle(), 1U);
  EXPECT_EQ(rig_.account().done, 1U);
  expect_nothing_left();
}

TEST_F(OwnClaim, BeforeAFailedSettlementEndsTheDoubt) {
  rig_.finish(0);
  auto order = settling();
  come_back();
  settled(std::move(order), {SettleStatus::failed, Error(ErrorCode::unknown_outcome, "reset")});
  rig_.pass(5s);
  EXPECT_EQ(rig_.flow.in_flight().tasks().at(0)->receipt_state(), ReceiptState::ours) << "its lease can be kept";
  expect_written(2);
}

TEST_F(OwnClaim, ASecondOneTakesThePlaceOfTheFirst) {
  rig_.finish(0);
  auto order = settling();
  come_back(2);
  ASSERT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
  come_back(3);
  settled(std::move(order), {SettleStatus::lost, {}});
  expect_written(3);
  EXPECT_EQ(rig_.account().lost, 2U);
}

TEST_F(OwnClaim, AfterASettlementThatWasWrittenIsTheNextTry) {
  rig_.finish(0, OutcomeStatus::crashed);
  auto order = settling();
  rig_.effects = {};
  come_back(3);
  EXPECT_TRUE(rig_.effects.lines.empty()) << "its lease has not ended";
  rig_.flow.settled(std::move(order), {{SettleStatus::applied, {}}}, rig_.now(), rig_.effects);
  EXPECT_EQ(rig_.account().retried, 1U);
  EXPECT_EQ(rig_.settle(), 0U) << "given back it would be claimed before that is known, again and again";
  const std::uint32_t lane = rig_.enlist(SeatKind::quarantine, true);
  ASSERT_NE(rig_.start(lane), nullptr);
  rig_.finish(lane);
  expect_written(3);
  EXPECT_EQ(rig_.account().released, 0U);
  EXPECT_EQ(rig_.account().lost, 0U);
}

TEST_F(OwnClaim, AfterASettlementThatWasWrittenIsGivenBackByADrain) {
  rig_.finish(0, OutcomeStatus::crashed);
  auto order = settling();
  come_back(3);
  rig_.flow.drain().begin(rig_.now(), rig_.now() + 10s, rig_.effects);
  settled(std::move(order), {SettleStatus::applied, {}});
  expect_written(3, CompletionAction::release);
  EXPECT_EQ(rig_.account().released, 1U);
  EXPECT_EQ(rig_.flow.drain().step(rig_.now(), rig_.effects), std::nullopt) << "nothing is left";
}

TEST_F(OwnClaim, OfAMessageThatSomebodyChangedIsForAnotherRun) {
  rig_.finish(0);
  auto order = settling();
  queue::Claimed changed = back_;
  changed.deliveries[0].receipt.version = 3;
  changed.deliveries[0].message.body = "edited";
  rig_.flow.claimed(std::move(changed), rig_.now(), rig_.effects);
  const std::uint32_t lane = rig_.enlist(SeatKind::quarantine, true);
  EXPECT_NE(rig_.start(lane), nullptr);
  rig_.flow.settled(std::move(order), {{SettleStatus::lost, {}}}, rig_.now(), rig_.effects);
  rig_.finish(lane);
  expect_written(3);
}

TEST_F(OwnClaim, BeforeAnExtensionKeepsTheHandlerItsMessage) {
  for (const SettleStatus status : {SettleStatus::lost, SettleStatus::failed, SettleStatus::applied}) {
    auto order = extending();
    const std::int64_t version = order.receipts.at(0).version + 2;
    come_back(version);
    extended(std::move(order), status);
    EXPECT_EQ(rig_.crash_ledger.held.begin()->second.version, version);
    const Task& task = *rig_.flow.in_flight().tasks().at(0);
    EXPECT_EQ(task.lease.receipt.version, version);
    EXPECT_EQ(task.lease.ends_at, rig_.now() + rig_.visibility);
  }
  rig_.finish(0);
  expect_written(7);
}

TEST_F(OwnClaim, BeforeAnExtensionIsWhatTheSettlementWaitsFor) {
  auto order = extending();
  rig_.finish(0);
  EXPECT_EQ(rig_.settle(), 0U) << "the receipt is on its way";
  come_back();
  extended(std::move(order), SettleStatus::lost);
  expect_written(2);
}

TEST_F(OwnClaim, ThatAnswersAfterTheLossWasToldGoesOnWithWhatRuns) {
  auto order = extending();
  extended(std::move(order), SettleStatus::lost);
  EXPECT_EQ(rig_.account().lost, 1U);
  come_back();
  EXPECT_EQ(rig_.account().in_flight(), 1U);
  rig_.finish(0);
  expect_written(2);
  EXPECT_EQ(rig_.account().lost, 1U);
}

TEST_F(OwnClaim, DoesNotWaitForAHandlerThatIsStuck) {
  auto order = extending();
  extended(std::move(order), SettleStatus::lost);
  rig_.pass(rig_.timeout + 6s);
  rig_.extend();
  ASSERT_EQ(rig_.stuck(), 1U);
  queue::Claimed again = back_;
  again.deliveries[0].receipt.version = 2;
  rig_.flow.claimed(std::move(again), rig_.now(), rig_.effects);
  EXPECT_TRUE(rig_.flow.has_work(SeatKind::quarantine));
}

TEST_F(OwnClaim, IsSettledWithinTheDrain) {
  rig_.finish(0);
  auto order = settling();
  rig_.flow.drain().begin(rig_.now(), rig_.now() + 10s, rig_.effects);
  come_back();
  settled(std::move(order), {SettleStatus::lost, {}});
  expect_written(2);
  EXPECT_EQ(rig_.flow.drain().step(rig_.now(), rig_.effects), std::nullopt) << "nothing is left";
}

TEST_F(OwnClaim, KeepsItsLeaseWhileItCannotBeWritten) {
  rig_.finish(0);
  auto order = settling();
  EXPECT_EQ(rig_.flow.next_extension(rig_.now(), rig_.effects).wake, SteadyTime::max()) << "nothing to look after";
  come_back();
  rig_.effects = {};
  settled(std::move(order), {SettleStatus::lost, {}});
  EXPECT_TRUE(rig_.effects.keeper);
  EXPECT_EQ(rig_.settle(SettleStatus::failed), 1U);
  EXPECT_EQ(rig_.flow.next_extension(rig_.now(), rig_.effects).wake, rig_.now() + 15s);
}

TEST_F(OwnClaim, WhatAnotherHostHasBroughtFurtherIsNotGoneOnWith) {
  rig_.pass(31s);
  ASSERT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
  queue::Claimed again = back_;
  again.deliveries[0].message.checkpoint = "further";
  again.deliveries[0].receipt.version = 3;
  again.deliveries[0].leased_until = rig_.now() + rig_.visibility;
  rig_.flow.claimed(std::move(again), rig_.now(), rig_.effects);
  EXPECT_TRUE(rig_.flow.has_work(SeatKind::quarantine)) << "what that host has committed would be committed again";
}

TEST(CheckpointLoan, GivesWayToAnExtensionThatIsDue) {
  using State = LeaseKeeper::Loan::State;
  FlowRig rig(1);
  rig.poll(1);
  Task* const task = rig.start(0);
  ASSERT_NE(task, nullptr);
  ASSERT_EQ(JobFlow::Checkpoints::lend(rig.flow, *task, rig.now()).state, State::ours);
  rig.pass(rig.visibility / 2);
  EXPECT_EQ(rig.extend(), 0U) << "the store has not answered";
  JobFlow::Checkpoints::repaid(rig.flow, *task, {.status = SettleStatus::applied, .version = 2}, "1", rig.now(),
                               rig.effects);
  EXPECT_EQ(JobFlow::Checkpoints::lend(rig.flow, *task, rig.now()).state, State::busy) << "its lease would run out";
  rig.effects = {};
  EXPECT_EQ(rig.extend(), 1U);
  EXPECT_TRUE(rig.effects.checkpoints) << "whoever waits is told";
  const auto loan = JobFlow::Checkpoints::lend(rig.flow, *task, rig.now());
  EXPECT_EQ(loan.state, State::ours);
  EXPECT_EQ(loan.receipt.version, 3);
}

TEST(CheckpointLoan, AtTheEndOfWhatALeaseMayLastNoExtensionIsWaitedFor) {
  JobFlow::Settings settings = FlowRig::settings();
  settings.leases = {{.visibility = 30s, .longest = 30s}};
  FlowRig rig(1, settings);
  rig.poll(1);
  Task* const task = rig.start(0);
  ASSERT_NE(task, nullptr);
  rig.pass(20s);
  EXPECT_EQ(JobFlow::Checkpoints::lend(rig.flow, *task, rig.now()).state, LeaseKeeper::Loan::State::ours);
}

TEST_F(OwnClaim, WhatItsOwnHandlerHasStoredIsGoneOnWith) {
  const auto loan = JobFlow::Checkpoints::lend(rig_.flow, *running_, rig_.now());
  ASSERT_EQ(loan.state, LeaseKeeper::Loan::State::ours);
  EXPECT_EQ(JobFlow::Checkpoints::lend(rig_.flow, *running_, rig_.now()).state, LeaseKeeper::Loan::State::busy);
  JobFlow::Checkpoints::repaid(rig_.flow, *running_, {.status = SettleStatus::applied, .version = 2}, "mine",
                               rig_.now(), rig_.effects);
  rig_.pass(31s);
  ASSERT_GT(rig_.flow.next_claim(rig_.now()).count, 0U);
  back_.deliveries[0].message.checkpoint = "mine";
  come_back(3);
  rig_.finish(0, OutcomeStatus::done);
  expect_written(3);
}

}  // namespace
}  // namespace sluice::work
