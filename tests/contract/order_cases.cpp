#include <map>
#include <set>

#include "tests/contract/order_contract.hpp"

// Order within groups, turns by group, and one message after the other.
namespace sluice::test {

using queue::ChangeAction;
using queue::ChangeStatus;
using queue::ClaimRequest;
using queue::ClaimRules;
using queue::CompletionAction;
using queue::Delivery;
using queue::NewMessage;
using queue::Order;
using queue::SettleStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_P(OrderContract, HandsOutTheFirstOfEachGroup) {
  send_all({"a1", "a2", "b1", "a3", "b2", "-1", "-2"});
  EXPECT_THAT(ids(), UnorderedElementsAre("a1", "b1", "-1", "-2"));
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_P(OrderContract, TheNextOneFollowsTheEndOfTheOneBefore) {
  send_all({"a1", "a2", "a3"});
  const Delivery first = take_one();
  EXPECT_EQ(first.message.id, "a1");
  EXPECT_THAT(ids(), IsEmpty());
  done(first);
  const Delivery second = take_one();
  EXPECT_EQ(second.message.id, "a2");
  EXPECT_THAT(ids(), IsEmpty());
  done(second);
  EXPECT_THAT(ids(), ElementsAre("a3"));
}

TEST_P(OrderContract, WhatWasSentInOrderInOneCallIsHandedOutSo) {
  std::vector<NewMessage> batch;
  std::vector<std::string> expected;
  for (int i = 0; i < 30; ++i) {
    batch.push_back({.id = i % 3 == 0 ? "x" + std::to_string(i) : std::string(),
                     .body = std::to_string(i),
                     .group = "a",
                     .dedup_id = i % 2 == 0 ? "once " + std::to_string(i) : std::string()});
    expected.push_back(std::to_string(i));
  }
  for (const auto& result : desk().sender(queue_name()).send_in_order(batch, soon())) {
    EXPECT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
  }
  std::vector<std::string> bodies;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const Delivery next = take_one();
    bodies.push_back(next.message.body);
    done(next);
  }
  EXPECT_EQ(bodies, expected);
}

TEST_P(OrderContract, AGroupWaitsForTheRetryOfItsHead) {
  send_all({"a1", "a2", "b1"});
  const auto heads = take();
  ASSERT_THAT(ids_of(heads), UnorderedElementsAre("a1", "b1"));
  for (const Delivery& head : heads) {
    if (head.message.id == "a1") {
      end(head, CompletionAction::retry, 10s);
    } else {
      done(head);
    }
  }
  const auto waits = claim_as(standard(), {.max = 10, .rules = {.order = Order::group}});
  EXPECT_THAT(waits.deliveries, IsEmpty());
  ASSERT_TRUE(waits.next_due);
  EXPECT_LE(*waits.next_due, 10s + 1ms);
  clock().advance(11s);
  const Delivery again = take_one();
  EXPECT_EQ(again.message.id, "a1");
  EXPECT_EQ(again.message.attempt, 2U);
  done(again);
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, AReleasedHeadIsTheHeadAgain) {
  send_all({"a1", "a2"});
  end(take_one(), CompletionAction::release);
  clock().advance(1ms);
  EXPECT_THAT(ids(), ElementsAre("a1"));
}

TEST_P(OrderContract, ASnoozedHeadKeepsItsGroupWaiting) {
  send_all({"a1", "a2"});
  end(take_one(), CompletionAction::release, 5s);
  EXPECT_THAT(ids(), IsEmpty());
  clock().advance(6s);
  EXPECT_THAT(ids(), ElementsAre("a1"));
}

TEST_P(OrderContract, AHeadWhoseHolderDiedIsASuspectAndKeepsItsPlace) {
  send_all({"a1", "a2", "b1"});
  const auto dead = claim_as(standard(), {.max = 1, .visibility = 1s, .rules = {.order = Order::group}}).deliveries;
  ASSERT_THAT(ids_of(dead), ElementsAre("a1"));
  clock().advance(2s);
  EXPECT_THAT(ids_of(claim_as(standard(), {.max = 10, .suspects = false, .rules = {.order = Order::group}}).deliveries),
              ElementsAre("b1"));
  const auto suspects = take();
  ASSERT_THAT(ids_of(suspects), ElementsAre("a1"));
  EXPECT_TRUE(suspects.front().suspect);
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_EQ(settle(standard(), dead.front().receipt, CompletionAction::remove), SettleStatus::lost)
      << "who lost it moves nothing on";
  EXPECT_THAT(ids(), IsEmpty());
  done(suspects.front());
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, AGroupGoesOnBehindADeadLetter) {
  send_all({"a1", "a2"});
  end(take_one(), CompletionAction::dead_letter);
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, AHeldGroupWaitsUntilItsDeadLetterIsRedriven) {
  send_all({"a1", "a2", "b1"});
  for (const Delivery& head : take()) {
    if (head.message.id == "a1") {
      end(head, CompletionAction::dead_letter, {}, true);
    }
  }
  send_all({"a3"});
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_EQ(change({.id = "a1", .action = ChangeAction::redrive}).status, ChangeStatus::applied);
  EXPECT_THAT(work_off(), ElementsAre("a1", "a2", "a3")) << "in its old place";
}

TEST_P(OrderContract, WhatWasAcceptedFirstGoesFirstThoughTheClockWasSetBack) {
  send_all({"a1"});
  const Delivery first = take_one();
  clock().set_wall(clock().wall_now() - 3s);
  send_all({"a2", "a3"});
  end(first, CompletionAction::release);
  clock().advance(4s);
  EXPECT_THAT(work_off(), ElementsAre("a1", "a2", "a3"));
}

TEST_P(OrderContract, ARedrivenHeadGoesFirstThoughTheClockWasSetBackSinceItWasSent) {
  send_all({"a1"});
  end(take_one(), CompletionAction::dead_letter, {}, true);
  clock().set_wall(clock().wall_now() - 3s);
  send_all({"a2", "a3"});
  EXPECT_EQ(change({.id = "a1", .action = ChangeAction::redrive}).status, ChangeStatus::applied);
  clock().advance(4s);
  EXPECT_THAT(work_off(), ElementsAre("a1", "a2", "a3"));
}

TEST_P(OrderContract, AHeldGroupWaitsUntilItsDeadLetterIsRemoved) {
  send_all({"a1", "a2"});
  end(take_one(), CompletionAction::dead_letter, {}, true);
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_EQ(change({.id = "a1", .action = ChangeAction::remove}).status, ChangeStatus::applied);
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, AHeldGroupGoesOnOnceItsDeadLetterIsOfAnotherGroup) {
  send_all({"a1", "a2", "b1"});
  for (const Delivery& head : take()) {
    if (head.message.id == "a1") {
      end(head, CompletionAction::dead_letter, {}, true);
    } else {
      done(head);
    }
  }
  EXPECT_THAT(ids(), IsEmpty());
  ASSERT_TRUE(edit("a1", {{.path = {"group"}, .json = R"("b")"}}));
  clock().advance(60s);
  send_all({"b2"});
  EXPECT_THAT(ids(), UnorderedElementsAre("a2", "b2")) << "neither group waits for it";
}

TEST_P(OrderContract, AHeldGroupGoesOnWhenAJobHasDoneItsDeadLetter) {
  send_all({"a1", "a2"});
  end(take_one(), CompletionAction::dead_letter, {}, true);
  const auto dead = claim(dlq());
  ASSERT_THAT(ids_of(dead), ElementsAre("a1"));
  EXPECT_EQ(settle(dlq(), dead.front().receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, ABusyGroupStarvesNoOther) {
  for (int i = 0; i < 20; ++i) {
    send_all({"a" + std::to_string(i)});
  }
  send_all({"b1", "c1", "b2"});
  const auto order = work_off();
  ASSERT_THAT(order, SizeIs(23));
  const std::set<std::string> first(order.begin(), order.begin() + 6);
  EXPECT_TRUE(first.contains("b1") && first.contains("c1") && first.contains("b2")) << ::testing::PrintToString(order);
}

TEST_P(OrderContract, FairTurnsGoByGroupAndSeveralOfAGroupMayRun) {
  for (int i = 0; i < 20; ++i) {
    send_all({"a" + std::to_string(i)});
  }
  send_all({"b1", "c1", "-1"});
  const ClaimRules fair{.fair = true};
  const auto some = ids(6, fair);
  ASSERT_THAT(some, SizeIs(6));
  EXPECT_TRUE(std::set<std::string>(some.begin(), some.end()).contains("b1")) << ::testing::PrintToString(some);
  EXPECT_TRUE(std::set<std::string>(some.begin(), some.end()).contains("c1")) << ::testing::PrintToString(some);
  EXPECT_TRUE(std::set<std::string>(some.begin(), some.end()).contains("-1")) << ::testing::PrintToString(some);
  EXPECT_THAT(ids(100, fair), SizeIs(17)) << "all of a busy group, where nobody else wants a turn";
}

TEST_P(SequenceContract, HandsOutOneAfterTheOther) {
  const ClaimRules sequence{.order = Order::queue};
  send_all({"a1", "b1", "-1", "a2"});
  const auto first = take(10, sequence);
  ASSERT_THAT(ids_of(first), ElementsAre("a1"));
  EXPECT_THAT(ids(10, sequence), IsEmpty());
  end(first.front(), CompletionAction::retry, 5s);
  EXPECT_THAT(ids(10, sequence), IsEmpty());
  clock().advance(6s);
  EXPECT_THAT(work_off(sequence), ElementsAre("a1", "b1", "-1", "a2"));
}

TEST_P(SequenceContract, GoesOnBehindADeadLetterAndARemovedHead) {
  const ClaimRules sequence{.order = Order::queue};
  send_all({"a1", "b1", "a2"});
  end(take_one(sequence), CompletionAction::dead_letter);
  const Delivery next = take_one(sequence);
  EXPECT_EQ(next.message.id, "b1");
  EXPECT_EQ(change({.id = "b1", .action = queue::ChangeAction::remove}).status, queue::ChangeStatus::applied);
  EXPECT_THAT(ids(10, sequence), ElementsAre("a2"));
}

TEST_P(SequenceContract, AReleasedHeadIsTheHeadAgain) {
  const ClaimRules sequence{.order = Order::queue};
  send_all({"a1", "b1"});
  end(take_one(sequence), CompletionAction::release, 5s);
  EXPECT_THAT(ids(10, sequence), IsEmpty()) << "snoozed, it keeps the others waiting";
  clock().advance(6s);
  end(take_one(sequence), CompletionAction::release);
  const Delivery again = take_one(sequence);
  EXPECT_EQ(again.message.id, "a1");
  EXPECT_EQ(again.message.attempt, 1U);
  EXPECT_THAT(ids(10, sequence), IsEmpty());
}

TEST_P(SequenceContract, AHeadWhoseHolderDiedIsASuspectAndKeepsItsPlace) {
  const ClaimRules sequence{.order = Order::queue};
  send_all({"a1", "b1"});
  const auto dead = claim_as(standard(), {.max = 1, .visibility = 1s, .rules = sequence}).deliveries;
  ASSERT_THAT(ids_of(dead), ElementsAre("a1"));
  clock().advance(2s);
  EXPECT_THAT(claim_as(standard(), {.max = 10, .suspects = false, .rules = sequence}).deliveries, IsEmpty());
  const Delivery again = take_one(sequence);
  EXPECT_EQ(again.message.id, "a1");
  EXPECT_TRUE(again.suspect);
  EXPECT_EQ(settle(standard(), dead.front().receipt, CompletionAction::remove), SettleStatus::lost)
      << "who lost it moves nothing on";
  EXPECT_THAT(ids(10, sequence), IsEmpty());
  done(again);
  EXPECT_THAT(ids(10, sequence), ElementsAre("b1"));
}

TEST_P(OrderContract, OthersKeepToTheOrderThatAJobHasBegun) {
  send_all({"a1", "a2", "b1"});
  EXPECT_THAT(ids(1), ElementsAre("a1"));
  EXPECT_THAT(ids_of(claim_as(standard(), {.max = 10, .counts = true}).deliveries), ElementsAre("b1"));
}

TEST_P(OrderContract, OrderBeginsWithWhatLiesThereAlready) {
  send_all({"a1", "a2", "a3", "b1"});
  const auto before = claim(standard(), 2);
  ASSERT_THAT(ids_of(before), ElementsAre("a1", "a2"));
  EXPECT_THAT(ids(), ElementsAre("b1")) << "two of the group are out already";
  done(before[0]);
  EXPECT_THAT(ids(), IsEmpty());
  done(before[1]);
  EXPECT_THAT(ids(), ElementsAre("a3"));
}

TEST_P(OrderContract, ADelayedMessageTakesItsPlaceWhenItIsDue) {
  send_all({"a1"}, 10s);
  send_all({"a2"});
  const Delivery second = take_one();
  EXPECT_EQ(second.message.id, "a2") << "nobody waits for what was sent for later";
  clock().advance(11s);
  EXPECT_THAT(ids(), IsEmpty());
  done(second);
  EXPECT_THAT(ids(), ElementsAre("a1"));
}

TEST_P(OrderContract, AnOlderMessageGoesBeforeAHeadThatNobodyHas) {
  EXPECT_THAT(ids(), IsEmpty());
  send_all({"a1", "a2", "a3"});
  EXPECT_EQ(change({.id = "a3", .action = ChangeAction::move_to_front}).status, ChangeStatus::applied);
  EXPECT_THAT(work_off(), ElementsAre("a3", "a1", "a2"));
}

TEST_P(OrderContract, NothingGoesBeforeAHeadThatIsOut) {
  send_all({"a1", "a2", "a3"});
  const Delivery head = take_one();
  EXPECT_EQ(change({.id = "a3", .action = ChangeAction::move_to_front}).status, ChangeStatus::applied);
  EXPECT_THAT(ids(), IsEmpty());
  done(head);
  EXPECT_THAT(work_off(), ElementsAre("a3", "a2"));
}

TEST_P(OrderContract, AnotherGroupByEditIsAnotherPlace) {
  send_all({"a1", "a2", "b1"});
  ASSERT_THAT(ids(), UnorderedElementsAre("a1", "b1"));
  ASSERT_TRUE(edit("a2", {{.path = {std::string("group")}, .json = "\"c\""}}));
  EXPECT_THAT(ids(), ElementsAre("a2"));
}

TEST_P(OrderContract, ARemovedHeadLetsTheNextOneGo) {
  send_all({"a1", "a2", "a3"});
  EXPECT_THAT(ids(1), ElementsAre("a1"));
  EXPECT_EQ(change({.id = "a1", .action = ChangeAction::remove}).status, ChangeStatus::applied);
  EXPECT_EQ(change({.id = "a2", .action = ChangeAction::dead_letter}).status, ChangeStatus::applied);
  EXPECT_THAT(ids(), ElementsAre("a3"));
}

TEST_P(OrderContract, ListsAndCountsAreThoseOfAnyQueue) {
  EXPECT_THAT(ids(), IsEmpty());
  send_all({"a1", "a2", "b1", "-1", "a3"});
  done(take_one());
  const auto listed = list_all(standard());
  std::vector<std::string> order;
  order.reserve(listed.size());
  for (const auto& stored : listed) {
    order.push_back(stored.message.id);
  }
  EXPECT_THAT(order, ElementsAre("a2", "b1", "-1", "a3"));
  auto newest = desk().list(queue_name(), {.limit = 2, .cursor = {}, .newest_first = true}, soon());
  ASSERT_TRUE(newest);
  ASSERT_THAT(newest->messages, SizeIs(2));
  EXPECT_EQ(newest->messages[0].message.id, "a3");
  EXPECT_EQ(newest->messages[1].message.id, "-1");
  EXPECT_EQ(stats(standard()).ready, 4U);
  EXPECT_TRUE(stats(standard()).oldest_ready);
}

TEST_P(OrderContract, GroupsOfAnyLengthAreKeptApart) {
  const std::string huge(1024 * 300, 'g');
  for (const std::string& group : {std::string("g"), std::string("G"), huge, huge + "x", std::string(1, '\0')}) {
    const std::vector<NewMessage> pair{{.id = {}, .body = "1", .group = group},
                                       {.id = {}, .body = "2", .group = group}};
    for (const auto& result : desk().send(queue_name(), pair, soon())) {
      EXPECT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
    clock().advance(1ms);
  }
  const auto heads = take(100);
  ASSERT_THAT(heads, SizeIs(5));
  for (const Delivery& head : heads) {
    EXPECT_EQ(head.message.body, "1");
  }
}

TEST_P(OrderContract, RulesMayChangeAndLoseNothing) {
  send_all({"a1", "a2", "b1", "-1", "b2"});
  EXPECT_THAT(ids(1), ElementsAre("a1"));
  EXPECT_THAT(ids(5, {.order = Order::queue}), IsEmpty()) << "a1 is out";
  EXPECT_THAT(ids(1, {.fair = true}), SizeIs(::testing::Le(1U))) << "where the stricter rule holds none";
  EXPECT_THAT(ids(10, {.order = Order::group}), SizeIs(::testing::Le(2U)));
  clock().advance(60s);
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    for (const Delivery& delivery : take(10, ClaimRules())) {
      seen.insert(delivery.message.id);
      done(delivery);
    }
  }
  EXPECT_THAT(seen, SizeIs(5));
}

}  // namespace sluice::test
