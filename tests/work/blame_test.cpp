// Who is to blame: suspects, the crash ledger, and what was finished and cannot be written.
#include <gtest/gtest.h>

#include "host/queue/effects.hpp"
#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using plugin::OutcomeStatus;
using queue::CompletionAction;
using queue::SettleStatus;

// One poll that brings one suspect.
void poll_suspect(FlowRig& rig) {
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed claimed = rig.messages(1);
  claimed.deliveries[0].suspect = true;
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
}

TEST(Suspect, RunsOnALaneOfItsOwnAndStaysOneWhenItCrashes) {
  FlowRig rig(1);
  poll_suspect(rig);
  EXPECT_EQ(rig.effects.hire_quarantine, 1U);
  EXPECT_EQ(rig.start(0), nullptr) << "a worker does not touch it";
  const std::uint32_t lane = rig.enlist(SeatKind::quarantine, true);
  ASSERT_NE(rig.start(lane), nullptr);
  rig.finish(lane, OutcomeStatus::crashed);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::retry);
  EXPECT_EQ(rig.last[0].marks, queue::core::kSuspect);
}

TEST(Suspect, IsClearedByComingToAnEnd) {
  FlowRig rig(1);
  poll_suspect(rig);
  const std::uint32_t lane = rig.enlist(SeatKind::quarantine);
  ASSERT_NE(rig.start(lane), nullptr);
  rig.finish(lane, OutcomeStatus::retry);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].marks, 0U);
}

TEST(Suspect, ThatHasNotBegunIsReleasedAsOne) {
  FlowRig rig(1);
  poll_suspect(rig);
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_EQ(rig.last[0].marks, std::nullopt) << "what its record says stays";
}

TEST(Suspect, IsNotAskedForWhileTheLanesAreBusy) {
  FlowRig rig(1);
  std::uint32_t lane = 0;
  for (std::size_t i = 0; i < kFewestQuarantined; ++i) {
    poll_suspect(rig);
    lane = rig.enlist(SeatKind::quarantine);
    ASSERT_NE(rig.start(lane), nullptr);
  }
  const auto order = rig.flow.next_claim(rig.now());
  EXPECT_GT(order.count, 0U);
  EXPECT_FALSE(order.suspects);
  rig.flow.claimed(queue::Claimed{}, rig.now(), rig.effects);
  EXPECT_FALSE(rig.activity().quiescent) << "some may have been passed over";
  rig.finish(lane);
  EXPECT_TRUE(rig.flow.next_claim(rig.now()).suspects) << "at once, whatever the back-off";
}

// Claims and starts suspects for as long as more are asked for, on the lanes in `idle` and on new ones; those at work.
std::vector<std::uint32_t> fill_lanes(FlowRig& rig, std::size_t& left, std::vector<std::uint32_t> idle = {}) {
  std::vector<std::uint32_t> busy;
  while (left > 0 && rig.flow.next_claim(rig.now()).suspects) {
    queue::Claimed claimed = rig.messages(1);
    claimed.deliveries[0].suspect = true;
    rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
    --left;
    if (idle.empty()) {
      idle.push_back(rig.enlist(SeatKind::quarantine, true));
    }
    busy.push_back(idle.back());
    idle.pop_back();
    EXPECT_NE(rig.start(busy.back()), nullptr);
  }
  if (left > 0) {
    rig.flow.claimed(queue::Claimed{}, rig.now(), rig.effects);  // the claim that asks for none
  }
  return busy;
}

TEST(Suspect, AsManyRunAtATimeAsTheJobHasWorkersWithinBounds) {
  for (const auto& [workers, lanes] :
       {std::pair(1U, 2U), std::pair(5U, 5U), std::pair(16U, 16U), std::pair(256U, 16U)}) {
    FlowRig rig(workers);
    std::size_t left = 1000;
    EXPECT_EQ(fill_lanes(rig, left).size(), lanes) << workers;
    EXPECT_EQ(rig.effects.hire_quarantine, lanes) << workers;
  }
}

// A host of 256 workers was killed and left no ledger: what was at work is through in as many turns as there have to
// be.
TEST(Suspect, AreThroughInTurnsOfAllLanes) {
  FlowRig rig(256);
  std::size_t left = 256;
  std::vector<std::uint32_t> lanes;
  int turns = 0;
  for (; left > 0; ++turns) {
    lanes = fill_lanes(rig, left, lanes);
    rig.pass(3s);
    for (const std::uint32_t lane : lanes) {
      rig.finish(lane);
    }
    while (rig.settle() > 0) {
    }
  }
  EXPECT_EQ(turns, 16);
  EXPECT_EQ(rig.account().done, 256U);
}

TEST(CrashLedger, HoldsWhatIsHeldWithTheReceiptOfNow) {
  FlowRig rig(2);
  rig.poll(2);
  EXPECT_EQ(rig.crash_ledger.held.size(), 2U);
  rig.start(0);
  EXPECT_EQ(rig.crash_ledger.running.size(), 1U);
  rig.start(1);
  rig.pass(15s);
  ASSERT_EQ(rig.extend(), 2U);
  for (const auto& [slot, receipt] : rig.crash_ledger.held) {
    EXPECT_EQ(receipt.version, 2);
  }
  rig.finish(0);
  EXPECT_EQ(rig.crash_ledger.held.size(), 2U) << "until it is written";
  rig.settle();
  EXPECT_EQ(rig.crash_ledger.held.size(), 1U);
}

TEST(CrashLedger, SaysWhatItHasSettledWhileItsHandlerIsStuck) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.pass(rig.timeout + 6s);
  rig.extend();
  ASSERT_EQ(rig.stuck(), 1U);
  EXPECT_EQ(rig.crash_ledger.settled_running, 0U) << "not before it is written";
  rig.settle();
  EXPECT_EQ(rig.crash_ledger.settled_running, 1U);
}

TEST(CrashLedger, HoldsALostMessageUntilItsHandlerHasReturned) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.pass(15s);
  EXPECT_EQ(rig.extend(SettleStatus::lost), 1U);
  EXPECT_EQ(rig.crash_ledger.running.size(), 1U);
  rig.finish(0);
  EXPECT_TRUE(rig.crash_ledger.held.empty());
}

TEST(BlockedJob, ClaimsAndStartsNothingUntilItsCompletionsAreWritten) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  rig.finish(0);
  EXPECT_EQ(rig.settle(SettleStatus::failed, ErrorCode::denied), 1U);
  EXPECT_EQ(rig.start(1), nullptr) << "what is queued waits";
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  int calls = 0;
  for (int second = 0; second < 600; ++second) {
    rig.pass(1s);
    calls += rig.settle(SettleStatus::failed, ErrorCode::denied) > 0 ? 1 : 0;
    rig.extend();
    EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  }
  EXPECT_LT(calls, 300);
  EXPECT_LT(rig.effects.lines.size(), 15U);
  rig.pass(5s);
  EXPECT_GT(rig.settle(), 0U);
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.account().lost, 0U);
  while (rig.settle() > 0) {
  }
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

// A message a millisecond comes, and is worked off at once; how many have begun.
std::size_t work_for(FlowRig& rig, Duration span) {
  std::size_t begun = 0;
  for (const SteadyTime end = rig.now() + span; rig.now() < end; rig.pass(1ms)) {
    rig.poll(1);
    rig.flow.collect(0, rig.now(), rig.effects);
    for (rig.flow.deal(0, rig.now(), rig.effects); rig.batches[0].next(rig.now()) != nullptr; ++begun) {
      rig.batches[0].finish({OutcomeStatus::done, {}, {}}, rig.now());
    }
  }
  return begun;
}

TEST(BlockedJob, IsOneWhoseSettlementHasHadNoAnswerForHalfASecond) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  ASSERT_EQ(order.tasks.size(), 1U);
  const std::size_t begun = work_for(rig, 500ms);
  EXPECT_GT(begun, 400U) << "a call may take a moment";
  EXPECT_EQ(work_for(rig, 10s), 0U);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  EXPECT_EQ(rig.account().done, 0U);
  EXPECT_LT(rig.flow.in_flight().size(), begun + 10) << "nothing is claimed for later either";

  rig.flow.settled(std::move(order), {queue::SettleResult{}}, rig.now(), rig.effects);
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.settle(), begun) << "what was finished meanwhile is written";
  EXPECT_GT(work_for(rig, 100ms), 90U);
}

TEST(BlockedJob, IsOneWithoutAnAnswerThoughNothingElseHasHappenedMeanwhile) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  ASSERT_EQ(order.tasks.size(), 1U);
  rig.pass(500ms);
  EXPECT_EQ(rig.flow.next_claim(rig.now()).count, 0U);
  rig.effects = {};
  rig.flow.settled(std::move(order), {queue::SettleResult{}}, rig.now(), rig.effects);
  EXPECT_TRUE(rig.effects.poller);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(BlockedJob, IsNotWhatOneRefusedMessageMakes) {
  FlowRig rig(1);
  rig.poll(1);
  rig.start(0);
  rig.finish(0);
  EXPECT_EQ(rig.settle(SettleStatus::failed, ErrorCode::invalid), 1U);
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
}

TEST(BlockedJob, WhatItHasFinishedIsSettledAndNotRunWhenItComesBack) {
  FlowRig rig(1);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed first = rig.messages(1);
  queue::Claimed again = first;
  again.deliveries[0].receipt.version = 5;
  again.deliveries[0].message.attempt = 2;
  rig.flow.claimed(std::move(first), rig.now(), rig.effects);
  rig.start(0);
  rig.finish(0);
  EXPECT_EQ(rig.settle(SettleStatus::lost), 1U);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(std::move(again), rig.now(), rig.effects);
  EXPECT_EQ(rig.start(0), nullptr);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::remove);
  EXPECT_EQ(rig.last[0].receipt.version, 5);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(BlockedJob, KeepsTheBodyThatAStuckHandlerReads) {
  FlowRig rig(1);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed claimed = rig.messages(1);
  claimed.deliveries[0].message.body.assign(kKeptBody + 1, 'b');
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  const Task* task = rig.start(0);
  ASSERT_NE(task, nullptr);
  rig.pass(rig.timeout + 6s);
  rig.extend();
  ASSERT_EQ(rig.stuck(), 1U);
  ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
  EXPECT_EQ(task->message.body.size(), kKeptBody + 1) << "it was lent to the handler";
  rig.finish(0);
  rig.pass(10s);
  ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
  EXPECT_TRUE(task->message.body.empty()) << "nobody reads it any more";
}

TEST(TakenBack, IsNotStartedAndStopsWhatRuns) {
  FlowRig rig(2);
  rig.poll(2);
  rig.start(0);
  const std::vector<queue::Receipt> gone{{"m-0", 1, 0}, {"m-1", 1, 0}};
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  EXPECT_TRUE(rig.batches[0].attempt().stop_requested());
  EXPECT_EQ(rig.start(1), nullptr);
  EXPECT_EQ(rig.account().lost, 2U);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_EQ(rig.flow.in_flight().size(), 0U);
}

TEST(TakenBack, AMessageOfAnotherQueueWithTheSameIdIsAnotherMessage) {
  FlowRig rig(2);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed claimed = rig.messages(2);
  claimed.deliveries[1].message.id = claimed.deliveries[1].receipt.id = "m-0";
  claimed.deliveries[1].receipt.part = 1;
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  const std::vector<queue::Receipt> gone{{"m-0", 1, 0, 1}};
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  EXPECT_EQ(rig.account().lost, 1U);
  const Task* task = rig.start(0);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->part, 0);
}

TEST(TakenBack, ManyAtOnceAreToldInAFewLinesThatBlameNobodyElse) {
  FlowRig rig(1);
  rig.poll(553);
  std::vector<queue::Receipt> gone;
  gone.reserve(553);
  for (int i = 0; i < 553; ++i) {
    gone.push_back({"m-" + std::to_string(i), 1, 0});
  }
  rig.effects = {};
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  EXPECT_EQ(rig.account().lost, 553U);
  EXPECT_EQ(rig.effects.counts.lost, 553U) << "each is counted";
  ASSERT_EQ(rig.effects.lines.size(), 11U);
  EXPECT_EQ(rig.effects.lines[9].message_id, "m-9");
  EXPECT_EQ(rig.effects.lines[10].message_id, "");
  EXPECT_EQ(rig.effects.lines[10].detail, "543 messages");
  for (const StepEffects::Line& line : rig.effects.lines) {
    EXPECT_EQ(line.text.find("somebody else has it"), std::string_view::npos);
  }
}

TEST(TakenBack, WhatAClaimUnderWayStillBringsIsNotStartedEither) {
  FlowRig rig(1);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  const std::vector<queue::Receipt> gone{{"m-0", 1, 0}};
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  rig.flow.claimed(rig.messages(2), rig.now(), rig.effects);
  const Task* task = rig.start(0);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(task->message.id, "m-1");
  EXPECT_EQ(rig.account().lost, 1U);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 1U);
  rig.pass(std::chrono::seconds(1));
  // It is gone once, and not for ever; and what came back during the claim is another delivery.
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.next_id = 0;
  rig.flow.taken_back(gone, rig.now(), rig.effects);
  queue::Claimed again = rig.messages(1);
  again.deliveries[0].receipt.locator = 7;
  rig.flow.claimed(std::move(again), rig.now(), rig.effects);
  EXPECT_NE(rig.start(0), nullptr);
}

/// The next claim brings `count` messages that the source holds by a lease of its own.
void claim_of_the_source(FlowRig& rig, std::size_t count) {
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed claimed = rig.messages(count);
  for (queue::Delivery& delivery : claimed.deliveries) {
    delivery.leased_until = SteadyTime::max();
  }
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
}

TEST(LeaseOfTheSource, IsNeverExtendedAndItsHandlerIsToldWhenItHasLastedAsLongAsOneMay) {
  FlowRig rig(1, FlowRig::settings(), FlowRig::job(), std::chrono::hours(100));
  ASSERT_EQ(rig.flow.next_extension(rig.now(), rig.effects).wake, SteadyTime::max());
  rig.effects = {};
  claim_of_the_source(rig, 2);
  EXPECT_TRUE(rig.effects.keeper) << "who sleeps would not tell it";
  ASSERT_NE(rig.start(0), nullptr);
  for (int i = 1; i <= 30; ++i) {
    rig.pass(std::chrono::hours(1));
    EXPECT_EQ(rig.extend(), 0U);
    EXPECT_GT(rig.flow.next_extension(rig.now(), rig.effects).wake, rig.now());
    EXPECT_EQ(rig.batches[0].stop_requested(), i >= 12) << i;
  }
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 2U) << "what has never begun goes back";
  EXPECT_EQ(rig.account().done, 1U);
  EXPECT_EQ(rig.account().released, 1U);
}

TEST(LeaseOfTheSource, CountsFromTheFirstClaimWhenTheMessageComesBackToItsHandler) {
  FlowRig rig(2, FlowRig::settings(), FlowRig::job(), std::chrono::hours(100));
  claim_of_the_source(rig, 1);
  ASSERT_NE(rig.start(0), nullptr);
  rig.pass(std::chrono::hours(6));
  queue::Claimed again = rig.messages(1);
  again.deliveries[0].message.id = again.deliveries[0].receipt.id = "m-0";
  again.deliveries[0].leased_until = SteadyTime::max();
  again.deliveries[0].suspect = true;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(std::move(again), rig.now(), rig.effects);
  rig.extend();
  EXPECT_FALSE(rig.batches[0].stop_requested());
  rig.pass(std::chrono::hours(6));
  rig.extend();
  EXPECT_TRUE(rig.batches[0].stop_requested());
}

plugin::Outcome done_with_statements() {
  auto effects = std::make_shared<queue::Effects>();
  effects->writes.push_back({queue::SqlWrite{"UPDATE accounts SET balance = 0"}});
  plugin::Outcome outcome{OutcomeStatus::done, {}, {}};
  outcome.effects = std::move(effects);
  return outcome;
}

/// Claims and runs a message whose handler stages a statement, a suspect on a lane; its id.
std::string run_with_statements(FlowRig& rig, bool suspect = false) {
  EXPECT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed claimed = rig.messages(1);
  claimed.deliveries[0].suspect = suspect;
  std::string id = claimed.deliveries[0].message.id;
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  const std::uint32_t seat = !suspect ? 0 : rig.batches.size() > 1 ? 1 : rig.enlist(SeatKind::quarantine, true);
  EXPECT_NE(rig.start(seat), nullptr);
  rig.crash_ledger.ended(rig.batches[seat].view().running->slot, false);
  rig.batches[seat].finish(done_with_statements(), rig.now());
  rig.flow.collect(seat, rig.now(), rig.effects);
  return id;
}

TEST(Commits, AreInTheCrashLedgerUntilTheyAreAnswered) {
  FlowRig rig(1);
  const std::string id = run_with_statements(rig);
  EXPECT_FALSE(rig.crash_ledger.committed.contains(id));
  auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
  ASSERT_EQ(order.tasks.size(), 1U);
  EXPECT_EQ(rig.crash_ledger.committed.at(id), isolation::Committing::together);
  rig.flow.settled(std::move(order), {{SettleStatus::failed, Error(ErrorCode::unavailable, "no")}}, rig.now(),
                   rig.effects);
  EXPECT_EQ(rig.crash_ledger.committed.at(id), isolation::Committing::no);
  rig.pass(10s);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_TRUE(rig.crash_ledger.committed.empty());
}

TEST(Commits, OfSuspectsAreMadeAloneAfterThoseOfAllOthers) {
  FlowRig rig(1);
  const std::string first = run_with_statements(rig, true);
  const std::string second = run_with_statements(rig, true);
  const std::string other = run_with_statements(rig);
  const auto next = [&rig] {
    auto order = rig.flow.next_settlement(rig.now(), rig.clock.wall_now(), rig.effects);
    std::vector<std::string> ids;
    for (const queue::Completion& completion : order.completions) {
      ids.push_back(completion.receipt.id);
    }
    const auto committed = rig.crash_ledger.committed;
    const std::size_t count = order.tasks.size();
    rig.flow.settled(std::move(order), std::vector<queue::SettleResult>(count), rig.now(), rig.effects);
    EXPECT_EQ(committed.size(), ids.size()) << "the others are not under way";
    EXPECT_EQ(committed.at(ids.at(0)),
              ids[0] == "m-2" ? isolation::Committing::together : isolation::Committing::alone);
    return ids;
  };
  EXPECT_EQ(next(), std::vector<std::string>{other});
  EXPECT_EQ(next(), std::vector<std::string>{first});
  // Work that never ceases does not hold them up.
  rig.poll(1);
  ASSERT_NE(rig.start(0), nullptr);
  rig.finish(0);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(next(), std::vector<std::string>{second});
  EXPECT_EQ(rig.account().done, 4U);
}

TEST(Commits, OfSuspectsThatAreLostMeanwhileAreNotMade) {
  FlowRig rig(1);
  const std::string id = run_with_statements(rig, true);
  const queue::Receipt receipt{id, 1, 0};
  rig.flow.taken_back(std::span(&receipt, 1), rig.now(), rig.effects);
  EXPECT_EQ(rig.settle(), 0U);
  EXPECT_TRUE(rig.flow.in_flight().tasks().empty());
}

}  // namespace
}  // namespace sluice::work
