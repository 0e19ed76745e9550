#include "host/work/idempotency_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/work/job_threads.hpp"
#include "tests/support/sim_queues.hpp"
#include "tests/work/flow_rig.hpp"

// Which messages a job lets in by their idempotency keys, and what becomes of the keys.
namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using plugin::OutcomeStatus;
using queue::CompletionAction;
using queue::KeyState;
using queue::SettleStatus;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

config::JobConfig with_keys(config::JobConfig job, const config::IdempotencyConfig& keys) {
  job.idempotency = keys;
  job.name = "pay";
  return job;
}

config::IdempotencyConfig by_attribute() {
  config::IdempotencyConfig keys;
  keys.kind = config::IdempotencyConfig::Kind::attribute;
  keys.path = "order";
  return keys;
}

/// A flow with keys whose store the test plays.
struct KeyRig : FlowRig {
  explicit KeyRig(const config::IdempotencyConfig& keys = by_attribute(), std::size_t workers = 2,
                  const config::JobConfig& job_config = job())
      : FlowRig(workers, settings(), with_keys(job_config, keys)) {}

  static IdempotencyGate::Answer answer(KeyState state, const std::string& owner = {}, Duration left = 60s) {
    IdempotencyGate::Answer answer;
    answer.found.key = "order-1";
    answer.key = {.state = state, .owner = owner, .result = "first", .error = Error(ErrorCode::unavailable, "down")};
    answer.left = left;
    return answer;
  }
  static IdempotencyGate::Answer missing() {
    IdempotencyGate::Answer answer;
    answer.found.missing = "it has no attribute 'order'";
    return answer;
  }

  JobFlow::KeyOrder ask() { return flow.next_keys(now()); }
  void tell(const JobFlow::KeyOrder& order, const IdempotencyGate::Answer& answer) {
    flow.keys_answered(order, {std::vector<IdempotencyGate::Answer>(order.asks.size(), answer), std::nullopt}, now(),
                       effects);
  }
  /// A message comes, and its claim tells of the record of its id.
  void come_with(const queue::OwnIdFound& found) {
    auto claimed = messages(1);
    claimed.deliveries[0].own_id = found;
    ASSERT_GT(flow.next_claim(now()).count, 0U);
    flow.claimed(std::move(claimed), now(), effects);
  }
  static queue::OwnIdFound done_before() {
    return {.asked = true,
            .done = std::make_shared<const queue::KeyAnswer>(
                queue::KeyAnswer{.state = KeyState::done, .owner = "m-0", .result = "first"})};
  }
  /// A message comes and is answered.
  void come(const IdempotencyGate::Answer& answer) {
    poll(1);
    tell(ask(), answer);
  }
};

void expect_removed_unhandled(KeyRig& rig) {
  EXPECT_EQ(rig.start(0), nullptr);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::remove);
  EXPECT_EQ(rig.last[0].effects, nullptr);
  EXPECT_EQ(rig.account().discarded, 1U);
  EXPECT_EQ(rig.effects.counts.duplicates, 1U);
}

void expect_handled_with_first_result(KeyRig& rig) {
  const Task* task = rig.start(0);
  ASSERT_NE(task, nullptr);
  ASSERT_NE(task->first_result, nullptr);
  EXPECT_EQ(*task->first_result, "first");
  rig.finish(0);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].effects, nullptr);
  EXPECT_EQ(rig.account().done, 1U);
}

TEST(IdempotencyGateTest, NobodyIsAskedWhereAJobHasNoKeys) {
  FlowRig rig;
  rig.poll(2);
  EXPECT_FALSE(rig.effects.keys);
  EXPECT_TRUE(rig.flow.next_keys(rig.now()).empty());
  EXPECT_NE(rig.start(0), nullptr);
}

TEST(IdempotencyGateTest, AMessageBeginsOnceItsKeyIsOurs) {
  KeyRig rig;
  rig.poll(1);
  EXPECT_TRUE(rig.effects.keys) << "somebody is to ask";
  EXPECT_EQ(rig.start(0), nullptr) << "not before it is answered";
  const auto order = rig.ask();
  ASSERT_THAT(order.asks, SizeIs(1));
  EXPECT_EQ(order.asks[0].fence, 1);
  EXPECT_EQ(order.hold_for, 90s) << "three leases";
  EXPECT_EQ(rig.start(0), nullptr);
  rig.tell(order, KeyRig::answer(KeyState::ours));
  EXPECT_NE(rig.start(0), nullptr);
}

TEST(IdempotencyGateTest, AJobIsCutOffWhileItsKeysCannotBeLookedUpForLong) {
  KeyRig rig;
  rig.poll(1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(rig.activity().cut_off);
    rig.tell(rig.ask(), KeyRig::answer(KeyState::failed));
    rig.pass(6s);
  }
  EXPECT_TRUE(rig.activity().cut_off);
  ASSERT_TRUE(rig.activity().trouble);
  EXPECT_EQ(rig.activity().trouble->message(), "down");
  rig.tell(rig.ask(), KeyRig::answer(KeyState::ours));
  EXPECT_FALSE(rig.activity().cut_off);
  EXPECT_FALSE(rig.activity().trouble);
}

TEST(IdempotencyGateTest, AJobOfWhichNothingWaitsForItsKeyIsInNoTroubleForThem) {
  KeyRig rig;
  rig.poll(1);
  rig.tell(rig.ask(), KeyRig::answer(KeyState::failed));
  ASSERT_TRUE(rig.activity().trouble);
  rig.pass(16s);  // beyond half its lease it goes back
  rig.extend();
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_TRUE(rig.ask().empty());
  EXPECT_FALSE(rig.activity().trouble);
  rig.poll(1);
  rig.tell(rig.ask(), KeyRig::answer(KeyState::failed));
  EXPECT_FALSE(rig.activity().cut_off) << "one may go wrong";
}

TEST(IdempotencyGateTest, ItsRecordIsPartOfTheCompletion) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::ours));
  ASSERT_NE(rig.start(0), nullptr);
  auto effects = std::make_shared<queue::Effects>();
  effects->messages.push_back({"receipts", {.id = "r"}});
  effects->key.emplace().result = "paid";
  rig.batches[0].finish({OutcomeStatus::done, {}, {}, effects}, rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
  ASSERT_EQ(rig.settle(), 1U);
  ASSERT_NE(rig.last[0].effects, nullptr);
  const queue::Effects& committed = *rig.last[0].effects;
  EXPECT_THAT(committed.messages, SizeIs(1)) << "beside what the handler staged";
  ASSERT_TRUE(committed.key);
  EXPECT_EQ(committed.key->job, "pay");
  EXPECT_EQ(committed.key->key, "order-1");
  EXPECT_EQ(committed.key->result, "paid");
  EXPECT_EQ(committed.key->ttl, std::chrono::hours(24));
  EXPECT_FALSE(committed.key->own_id);
  EXPECT_TRUE(rig.ask().releases.empty()) << "the record has taken the mark's place";
}

TEST(IdempotencyGateTest, TheRecordIsKeptForAnotherTryOfTheSettlement) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::ours));
  rig.start(0);
  rig.finish(0);
  ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
  rig.pass(1s);
  ASSERT_EQ(rig.settle(), 1U);
  ASSERT_NE(rig.last[0].effects, nullptr);
  EXPECT_TRUE(rig.last[0].effects->key);
}

TEST(IdempotencyGateTest, AJobWithoutKeysDropsAResultAndKeepsTheRest) {
  FlowRig rig;
  rig.poll(2);
  rig.start(0);
  auto effects = std::make_shared<queue::Effects>();
  effects->key.emplace().result = "paid";
  rig.batches[0].finish({OutcomeStatus::done, {}, {}, effects}, rig.now());
  rig.flow.collect(0, rig.now(), rig.effects);
  rig.settle();
  EXPECT_EQ(rig.last[0].effects, nullptr);
}

TEST(IdempotencyGateTest, WhereTheKeyIsTheMessagesIdNothingIsMarkedAndTheIdIsRecorded) {
  KeyRig rig(config::IdempotencyConfig{});
  rig.poll(1);
  const auto order = rig.ask();
  EXPECT_EQ(order.hold_for, Duration::zero());
  rig.tell(order, KeyRig::answer(KeyState::ours));
  rig.start(0);
  rig.finish(0);
  rig.settle();
  ASSERT_TRUE(rig.last[0].effects && rig.last[0].effects->key);
  EXPECT_TRUE(rig.last[0].effects->key->own_id);
  EXPECT_EQ(rig.last[0].effects->key->job, "pay");
  EXPECT_EQ(rig.last[0].effects->key->key_of(rig.last[0].receipt.id), rig.last[0].receipt.id);
}

TEST(IdempotencyGateTest, WhereItsClaimHasLookedUpItsIdNobodyIsAsked) {
  KeyRig rig(config::IdempotencyConfig{});
  rig.come_with({.asked = true});
  EXPECT_FALSE(rig.effects.keys);
  EXPECT_TRUE(rig.ask().empty());
  ASSERT_NE(rig.start(0), nullptr);
  rig.finish(0);
  ASSERT_EQ(rig.settle(), 1U);
  ASSERT_TRUE(rig.last[0].effects && rig.last[0].effects->key);
  EXPECT_TRUE(rig.last[0].effects->key->own_id);
  EXPECT_EQ(rig.last[0].effects->key->job, "pay");
}

TEST(IdempotencyGateTest, WhatItsClaimFoundDoneIsRemovedWithoutItsHandler) {
  KeyRig rig(config::IdempotencyConfig{});
  rig.come_with(KeyRig::done_before());
  EXPECT_TRUE(rig.ask().empty());
  expect_removed_unhandled(rig);
}

TEST(IdempotencyGateTest, OrRunsWithTheFirstResultThatItsClaimBrought) {
  config::IdempotencyConfig keys;
  keys.on_duplicate = config::OnDuplicate::run;
  KeyRig rig(keys);
  rig.come_with(KeyRig::done_before());
  expect_handled_with_first_result(rig);
}

TEST(IdempotencyGateTest, WhatAClaimSaysOfIdsIsNothingToAJobWithOtherKeys) {
  KeyRig rig;
  rig.come_with(KeyRig::done_before());
  EXPECT_THAT(rig.ask().asks, SizeIs(1));
  EXPECT_EQ(rig.start(0), nullptr);
}

TEST(IdempotencyGateTest, OtherEndsReleaseTheMark) {
  for (const OutcomeStatus status : {OutcomeStatus::retry, OutcomeStatus::snooze, OutcomeStatus::reject,
                                     OutcomeStatus::discard, OutcomeStatus::release}) {
    KeyRig rig;
    rig.come(KeyRig::answer(KeyState::ours));
    rig.start(0);
    rig.finish(0, status);
    EXPECT_TRUE(rig.ask().empty()) << "not before that is written, or another might begin beside it";
    rig.effects = {};
    ASSERT_EQ(rig.settle(), 1U);
    EXPECT_EQ(rig.last[0].effects, nullptr);
    EXPECT_TRUE(rig.effects.keys);
    const auto order = rig.ask();
    ASSERT_THAT(order.releases, SizeIs(1)) << static_cast<int>(status);
    EXPECT_EQ(order.releases[0].claim.job, "pay");
    EXPECT_EQ(order.releases[0].claim.key, "order-1");
    EXPECT_EQ(order.releases[0].claim.owner, "m-0");
    EXPECT_EQ(order.releases[0].claim.fence, 1);
    rig.tell(order, {});
    EXPECT_TRUE(rig.ask().empty());
  }
}

TEST(IdempotencyGateTest, AMessageWhoseKeyIsAnothersGoesBackForAWhileWithItsAttempt) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::running, "m-9"));
  EXPECT_EQ(rig.start(0), nullptr);
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::release);
  EXPECT_GE(rig.last[0].delay, kFirstKeyWait / 2);
  EXPECT_LE(rig.last[0].delay, kFirstKeyWait);
  EXPECT_EQ(rig.account().snoozed, 1U);
}

TEST(IdempotencyGateTest, TheWaitGrowsWithEachTryAndEndsWithTheMark) {
  KeyRig rig;
  Duration longest{};
  for (int i = 0; i < 12; ++i) {
    rig.next_id = 0;  // the same message again
    rig.pass(1s);
    rig.come(KeyRig::answer(KeyState::running, "m-9"));
    ASSERT_EQ(rig.settle(), 1U);
    longest = std::max(longest, rig.last[0].delay);
    EXPECT_LE(rig.last[0].delay, kLastKeyWait);
  }
  EXPECT_GE(longest, kLastKeyWait / 2);
  rig.next_id = 0;
  rig.pass(1s);
  rig.come(KeyRig::answer(KeyState::running, "m-9", 200ms));
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_LE(rig.last[0].delay, 200ms);
}

TEST(IdempotencyGateTest, ItIsRejectedInsteadWhereTheJobSaysSoAndNamesTheOther) {
  auto keys = by_attribute();
  keys.while_running = config::WhileRunning::reject;
  KeyRig rig(keys);
  rig.come(KeyRig::answer(KeyState::running, "m-9"));
  ASSERT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.last[0].action, CompletionAction::dead_letter);
  EXPECT_THAT(rig.last[0].failure.error, HasSubstr("m-9"));
  EXPECT_THAT(rig.last[0].failure.error, HasSubstr("order-1"));
}

TEST(IdempotencyGateTest, ADuplicateIsRemovedWithoutItsHandler) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::done, "m-9"));
  expect_removed_unhandled(rig);
}

TEST(IdempotencyGateTest, OrRunsWithTheFirstResultAndRecordsNothing) {
  auto keys = by_attribute();
  keys.on_duplicate = config::OnDuplicate::run;
  KeyRig rig(keys);
  rig.come(KeyRig::answer(KeyState::done, "m-9"));
  expect_handled_with_first_result(rig);
}

TEST(IdempotencyGateTest, AMessageWithoutAKeyIsRejectedOrRun) {
  KeyRig rejecting;
  rejecting.come(KeyRig::missing());
  ASSERT_EQ(rejecting.settle(), 1U);
  EXPECT_EQ(rejecting.last[0].action, CompletionAction::dead_letter);
  EXPECT_THAT(rejecting.last[0].failure.error, HasSubstr("no attribute 'order'"));
  EXPECT_EQ(rejecting.last[0].failure.attempts, 0U) << "no handler has seen it";

  auto keys = by_attribute();
  keys.on_missing = config::OnMissingKey::run;
  KeyRig running(keys);
  running.come(KeyRig::missing());
  ASSERT_NE(running.start(0), nullptr);
  running.finish(0);
  running.settle();
  EXPECT_EQ(running.last[0].effects, nullptr);
}

TEST(IdempotencyGateTest, WhatNoHandlerHasSeenIsNeverDiscardedNorDoesItCostAnAttempt) {
  config::JobConfig discarding = FlowRig::job();
  discarding.dead_letter = config::DeadLetterPolicy::discard;
  KeyRig discards(by_attribute(), 2, discarding);
  discards.come(KeyRig::missing());
  ASSERT_EQ(discards.settle(), 1U);
  EXPECT_EQ(discards.last[0].action, CompletionAction::dead_letter);

  config::JobConfig of_dead_letters = FlowRig::job();
  of_dead_letters.source = config::Source::dlq;
  of_dead_letters.dead_letter = config::DeadLetterPolicy::keep;
  KeyRig keeps(by_attribute(), 2, of_dead_letters);
  keeps.come(KeyRig::missing());
  ASSERT_EQ(keeps.settle(), 1U);
  EXPECT_EQ(keeps.last[0].action, CompletionAction::release) << "with its attempt";
  EXPECT_GT(keeps.last[0].delay, Duration::zero()) << "not again and again";
  EXPECT_TRUE(keeps.last[0].failure.empty()) << "the reason for which it lies there must stay";
}

TEST(IdempotencyGateTest, MarksAreOfThePartThatTheirMessageIsOf) {
  KeyRig rig;
  auto claimed = rig.messages(2);
  claimed.deliveries[1].receipt.part = 1;
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 1U);
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  rig.tell(rig.ask(), KeyRig::answer(KeyState::ours));
  ASSERT_NE(rig.start(0), nullptr);
  ASSERT_NE(rig.start(1), nullptr);
  rig.pass(31s);
  const auto renewing = rig.ask();
  ASSERT_THAT(renewing.renewals, SizeIs(2));
  EXPECT_NE(renewing.renewals[0].part, renewing.renewals[1].part);
  for (const KeyMark& mark : renewing.renewals) {
    EXPECT_EQ(mark.part, mark.claim.owner == "m-1" ? 1 : 0);
  }
  rig.tell(renewing, {});
  rig.finish(1, OutcomeStatus::retry);
  ASSERT_EQ(rig.settle(), 1U);
  const auto releasing = rig.ask();
  ASSERT_THAT(releasing.releases, SizeIs(1));
  EXPECT_EQ(releasing.releases[0].part, 1);
}

TEST(IdempotencyGateTest, EachQueueOfAJobIsAskedForItsOwnKeys) {
  test::FakeClock clock;
  SeededRandom random(1);
  test::SimQueues queues(clock, random);
  KeyCall::Keys keys;
  for (const char* queue : {"urgent", "bulk"}) {
    const queue::NewMessage made{.body = "x"};
    (*queues.open_sender(queue))->send({&made, 1}, Deadline::never());
    keys.push_back(*queues.open_keys(queue));
  }
  KeyCall call{keys, MessageKey(by_attribute()), "pay", clock};
  std::deque<Task> tasks(3);
  IdempotencyGate::Order order;
  order.hold_for = 60s;
  order.deadline = SteadyTime::max();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].message.id = "m-" + std::to_string(i);
    tasks[i].message.attributes["order"] = "7";
    tasks[i].part = static_cast<std::uint16_t>(i % 2);
    order.asks.push_back({&tasks[i], 1});
  }
  const auto answers = call.make(order);
  ASSERT_THAT(answers.asks, SizeIs(3));
  EXPECT_EQ(answers.asks[0].key.state, KeyState::ours);
  EXPECT_EQ(answers.asks[1].key.state, KeyState::ours) << "the same key in another queue is another key";
  EXPECT_EQ(answers.asks[2].key.state, KeyState::running);
  EXPECT_EQ(answers.asks[2].key.owner, "m-0");

  IdempotencyGate::Order releases;
  releases.releases.push_back({{"pay", "7", "m-1", {}, 1}, 1});
  releases.asks.push_back({&tasks[2], 1});
  releases.hold_for = 60s;
  releases.deadline = SteadyTime::max();
  EXPECT_EQ(call.make(releases).asks[0].key.state, KeyState::running) << "the other queue's mark was released";
}

TEST(IdempotencyGateTest, NothingBeginsWhileTheStoreDoesNotAnswer) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::failed));
  EXPECT_EQ(rig.start(0), nullptr);
  EXPECT_EQ(rig.settle(), 0U);
  const auto waiting = rig.ask();
  EXPECT_TRUE(waiting.empty()) << "after a while";
  ASSERT_NE(waiting.wake, SteadyTime::max());
  rig.clock.advance(waiting.wake - rig.now());
  const auto order = rig.ask();
  ASSERT_THAT(order.asks, SizeIs(1));
  rig.tell(order, KeyRig::answer(KeyState::ours));
  EXPECT_NE(rig.start(0), nullptr);
}

TEST(IdempotencyGateTest, AMarkIsRenewedWhileItsMessageIsHeld) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::ours));
  rig.start(0);
  const auto idle = rig.ask();
  EXPECT_TRUE(idle.empty());
  EXPECT_EQ(idle.wake, rig.now() + 30s) << "after one lease of three";
  rig.pass(30s);
  const auto order = rig.ask();
  ASSERT_THAT(order.renewals, SizeIs(1));
  EXPECT_EQ(order.renewals[0].claim.owner, "m-0");
  EXPECT_EQ(order.renewals[0].claim.fence, 1);
  EXPECT_EQ(order.renewals[0].claim.hold_for, 90s);
  rig.tell(order, {});
  EXPECT_EQ(rig.ask().wake, rig.now() + 30s);
}

TEST(IdempotencyGateTest, AMarkThatCouldNotBeRenewedKeepsNobodyFromBeginning) {
  KeyRig rig;
  rig.come(KeyRig::answer(KeyState::ours));
  rig.start(0);
  rig.pass(30s);
  const auto order = rig.ask();
  ASSERT_THAT(order.renewals, SizeIs(1));
  rig.flow.keys_answered(order, {{}, Error(ErrorCode::unavailable, "down")}, rig.now(), rig.effects);
  ASSERT_FALSE(rig.effects.lines.empty());
  EXPECT_THAT(std::string(rig.effects.lines.back().text), Not(HasSubstr("nothing begins")));
  rig.come(KeyRig::answer(KeyState::ours));
  EXPECT_NE(rig.start(1), nullptr);
  EXPECT_EQ(rig.effects.lines.back().text, "idempotency keys work again");
}

TEST(IdempotencyGateTest, WhatWaitedTooLongGoesBackAndItsLateMarkIsReleased) {
  KeyRig rig;
  rig.poll(1);
  const auto order = rig.ask();
  rig.pass(16s);
  rig.extend();
  EXPECT_EQ(rig.settle(), 1U) << "after half its lease others may have it";
  EXPECT_EQ(rig.flow.in_flight().size(), 1U) << "its place stays until it is answered";
  rig.tell(order, KeyRig::answer(KeyState::ours));
  EXPECT_EQ(rig.flow.in_flight().size(), 0U);
  EXPECT_EQ(rig.start(0), nullptr);
  EXPECT_THAT(rig.ask().releases, SizeIs(1));
}

TEST(IdempotencyGateTest, ADrainReleasesWhatWaitsAtTheDoorAndEndsAfterItsMarks) {
  KeyRig rig;
  rig.poll(1);
  const auto order = rig.ask();
  rig.flow.drain().begin(rig.now(), rig.now() + 10s, rig.effects);
  EXPECT_EQ(rig.settle(), 1U);
  EXPECT_EQ(rig.account().released, 1U);
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects)) << "a call is under way";
  rig.tell(order, KeyRig::answer(KeyState::ours));
  EXPECT_TRUE(rig.flow.drain().step(rig.now(), rig.effects)) << "its mark is to be released";
  const auto releases = rig.ask();
  ASSERT_THAT(releases.releases, SizeIs(1));
  EXPECT_LE(releases.deadline, rig.now() + 10s) << "within the drain";
  rig.tell(releases, {});
  EXPECT_FALSE(rig.flow.drain().step(rig.now(), rig.effects));
}

TEST(IdempotencyGateTest, ABodyStaysWhileItsKeyIsReadThoughTheMessageCouldNotGoBack) {
  KeyRig rig;
  auto claimed = rig.messages(1);
  claimed.deliveries[0].message.body.assign(kKeptBody + 1, 'b');
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(std::move(claimed), rig.now(), rig.effects);
  const auto order = rig.ask();
  ASSERT_THAT(order.asks, SizeIs(1));
  rig.flow.steer({.paused = true}, rig.now(), rig.effects);
  ASSERT_EQ(rig.settle(SettleStatus::failed), 1U);
  EXPECT_EQ(order.asks[0].task->message.body.size(), kKeptBody + 1);
}

TEST(IdempotencyGateTest, APausedJobAsksForNothing) {
  KeyRig rig;
  rig.poll(1);
  rig.flow.steer({.paused = true}, rig.now(), rig.effects);
  EXPECT_TRUE(rig.ask().empty());
  EXPECT_EQ(rig.settle(), 1U) << "what waits goes back";
}

}  // namespace
}  // namespace sluice::work
