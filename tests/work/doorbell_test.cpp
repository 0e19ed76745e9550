#include "host/queue/doorbell.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::queue {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

const QueueAddress kOrders{"orders"};
const QueueAddress kDead{"orders", Half::dlq};

struct Rig {
  test::FakeClock clock;
  SeededRandom random{1};
  test::SimQueues sim{clock, random};
  test::Desk desk{sim};
  int orders = 0;
  int dead = 0;
  Doorbell::Subscription first = sim.doorbell().subscribe(kOrders, [this] { ++orders; });
  Doorbell::Subscription second = sim.doorbell().subscribe(kDead, [this] { ++dead; });

  SendStatus send(const std::string& id, Duration delay = {}, const std::string& queue = "orders") {
    NewMessage message;
    message.id = id;
    message.delay = delay;
    return desk.send(queue, {&message, 1}, Deadline::never()).front().status;
  }
  SettleStatus settle(CompletionAction action, Duration delay = {}) {
    const auto claims = desk.claim(kOrders, 1, 30s, Deadline::never());
    const Completion completion{claims->at(0).receipt, action, delay, {}, false};
    return desk.settle(kOrders, {&completion, 1}, Deadline::never()).front().status;
  }
};

TEST(Doorbell, ASendCallsThoseOfItsQueueOnly) {
  Rig rig;
  rig.send("a");
  EXPECT_EQ(rig.orders, 1);
  EXPECT_EQ(rig.dead, 0);
  rig.send("b", {}, "invoices");
  EXPECT_EQ(rig.orders, 1);
}

TEST(Doorbell, WhatIsNotClaimableNowCallsNobody) {
  Rig rig;
  rig.send("later", 10s);
  EXPECT_EQ(rig.orders, 0);
  rig.send("a");
  EXPECT_EQ(rig.send("a"), SendStatus::duplicate_id);
  EXPECT_EQ(rig.orders, 1);
  rig.sim.fail_next(test::StoreCall::send, 1, Error(ErrorCode::unavailable, "down"));
  EXPECT_EQ(rig.send("c"), SendStatus::failed);
  EXPECT_EQ(rig.orders, 1);
}

TEST(Doorbell, ABatchCallsOnce) {
  Rig rig;
  std::vector<NewMessage> messages(10);
  rig.desk.send("orders", messages, Deadline::never());
  EXPECT_EQ(rig.orders, 1);
}

TEST(Doorbell, SettlementsThatMakeSomethingClaimableCall) {
  Rig rig;
  rig.send("a");
  rig.settle(CompletionAction::release);
  EXPECT_EQ(rig.orders, 2);
  rig.clock.advance(1ms);
  rig.settle(CompletionAction::retry, 0s);
  EXPECT_EQ(rig.orders, 3);
  rig.clock.advance(1ms);
  rig.settle(CompletionAction::retry, 5s);
  EXPECT_EQ(rig.orders, 3);
  rig.clock.advance(6s);
  rig.settle(CompletionAction::dead_letter);
  EXPECT_EQ(rig.dead, 1);
  EXPECT_TRUE(rig.desk.redrive("orders", "a", Deadline::never()));
  EXPECT_EQ(rig.orders, 4);
  rig.settle(CompletionAction::remove);
  EXPECT_EQ(rig.orders, 4);
}

TEST(Doorbell, OperatorsCallToo) {
  Rig rig;
  rig.send("a");
  EXPECT_TRUE(rig.desk.dead_letter("orders", "a", {}, Deadline::never()));
  EXPECT_EQ(rig.dead, 1);
  EXPECT_FALSE(rig.desk.redrive("orders", "nobody", Deadline::never()));
  EXPECT_EQ(rig.orders, 1);
}

TEST(Doorbell, ChangesCallThoseWhoseMessagesBecomeClaimable) {
  struct Case {
    ChangeAction action;
    Duration after;
    bool orders;
    bool dead;
  };
  // Where the half of a message is not known both are called: a poll too many costs little.
  const std::vector<Case> cases{
      {ChangeAction::remove, {}, false, false},       {ChangeAction::set_visibility, 5s, false, false},
      {ChangeAction::set_visibility, 0s, true, true}, {ChangeAction::delay, 5s, false, false},
      {ChangeAction::delay, -5s, true, true},         {ChangeAction::move_to_front, {}, true, true},
      {ChangeAction::dead_letter, {}, false, true},   {ChangeAction::reset, {}, true, false}};
  for (const Case& expected : cases) {
    SCOPED_TRACE(static_cast<int>(expected.action));
    Rig rig;
    rig.send("a");
    rig.orders = 0;
    const std::vector<Change> changes{{.id = "a", .action = expected.action, .after = expected.after},
                                      {.id = "ghost", .action = ChangeAction::reset}};
    EXPECT_EQ(rig.desk.change("orders", changes, Deadline::never()).at(0).status, ChangeStatus::applied);
    EXPECT_EQ(rig.orders, expected.orders ? 1 : 0);
    EXPECT_EQ(rig.dead, expected.dead ? 1 : 0);
    rig.orders = rig.dead = 0;
    const Change nobody{.id = "ghost", .action = expected.action};
    rig.desk.change("orders", {&nobody, 1}, Deadline::never());
    EXPECT_EQ(rig.orders + rig.dead, 0) << "what was not applied calls nobody";
  }
}

TEST(Doorbell, PutCallsBothHalvesOnce) {
  Rig rig;
  std::vector<StoredMessage> records(2);
  records[0].message.id = "a";
  records[1].message.id = "b";
  rig.desk.put("orders", records, PutMode::insert, Deadline::never());
  EXPECT_EQ(rig.orders, 1);
  EXPECT_EQ(rig.dead, 1);
  rig.desk.put("orders", records, PutMode::insert, Deadline::never());
  EXPECT_EQ(rig.orders, 1) << "nothing was written";
}

TEST(Doorbell, AnEndedSubscriptionIsNotCalled) {
  Rig rig;
  rig.first = {};
  rig.send("a");
  EXPECT_EQ(rig.orders, 0);
  rig.first = rig.sim.doorbell().subscribe(kOrders, [&] { rig.orders += 10; });
  rig.send("b");
  EXPECT_EQ(rig.orders, 10);
  rig.first = {};
  rig.send("c");
  EXPECT_EQ(rig.orders, 10);
}

TEST(Doorbell, TheEndOfASubscriptionWaitsForItsCalls) {
  for (int round = 0; round < 50; ++round) {
    Rig rig;
    auto alive = std::make_unique<std::atomic<int>>(0);
    auto subscription = rig.sim.doorbell().subscribe(kOrders, [&] { ++*alive; });
    std::atomic<bool> begun{false};
    std::jthread sender([&] {
      for (int i = 0; i < 20; ++i) {
        rig.send(std::to_string(i));
        begun = true;
      }
    });
    while (!begun) {
      std::this_thread::yield();
    }
    subscription = {};
    // From here on a call would be a use after free.
    alive.reset();
    sender.join();
  }
}

}  // namespace
}  // namespace sluice::queue
