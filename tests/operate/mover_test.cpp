#include "host/operate/mover.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "tests/operate/forgetful_operator.hpp"
#include "tests/operate/move_rig.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::operate {
namespace {

using namespace std::chrono_literals;
using queue::Half;
using test::StoreCall;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
using State = Mover::Step::State;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

class MoverTest : public testing::Test {
 protected:
  void send(const std::string& id, const std::string& group = {}) {
    queue::NewMessage message{.id = id, .body = id, .group = group};
    ASSERT_EQ(from_.send("orders", std::span(&message, 1), soon()).front().status, queue::SendStatus::sent);
    clock_.advance(1ms);
  }
  std::vector<std::string> ids(test::Desk& desk, const std::string& queue) {
    std::vector<std::string> found;
    const auto page = desk.list(queue, {.limit = 1'000}, soon());
    for (const auto& message : page->messages) {
      found.push_back(message.message.id);
    }
    return found;
  }
  /// What nobody can claim now.
  std::uint64_t hidden(test::Desk& desk, const std::string& queue) {
    return desk.stats({queue, Half::standard}, soon())->hidden();
  }
  Deadline soon() const { return Deadline::after(clock_, 60s); }

  test::FakeClock clock_;
  test::FakeRandom random_;
  test::SimQueues here_{clock_, random_};
  test::SimQueues there_{clock_, random_};
  test::Desk from_{here_};
  test::Desk to_{there_};
  test::MoveRig rig_{clock_, from_, to_};
};

TEST_F(MoverTest, WhatIsInFlightIsFollowedUntilItIsDoneOrComesBack) {
  send("done");
  send("back");
  send("idle");
  auto claimed = *from_.claim({"orders"}, 2, 1min, soon());
  int waits = 0;
  rig_.on_wait = [&] {
    if (++waits == 1) {
      EXPECT_THAT(ids(to_, "orders2"), ElementsAre("idle")) << "it is not held up by them";
    }
    if (waits == 3) {
      const queue::Completion done{.receipt = claimed[0].receipt};
      from_.settle({"orders"}, std::span(&done, 1), soon());
    }
    if (waits == 5) {
      const queue::Completion back{.receipt = claimed[1].receipt, .action = queue::CompletionAction::retry};
      from_.settle({"orders"}, std::span(&back, 1), soon());
    }
  };
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_GE(waits, 5);
  EXPECT_THAT(ids(to_, "orders2"), UnorderedElementsAre("idle", "back"));
  EXPECT_THAT(ids(from_, "orders"), IsEmpty());
  EXPECT_EQ(to_.get("orders2", "back", soon())->message.attempt, 1U);
}

TEST_F(MoverTest, WithoutFollowWhatComesLaterStays) {
  send("A");
  bool sent = false;
  ASSERT_EQ(rig_.run(kNoLimit,
                     [&] {
                       if (!std::exchange(sent, true)) {
                         clock_.advance(1s);
                         send("late");
                       }
                     })
                .state,
            State::finished);
  EXPECT_THAT(ids(from_, "orders"), ElementsAre("late"));
  EXPECT_EQ(rig_.count.left.later, 1U);
}

TEST_F(MoverTest, FollowedUntilItIsEmptyAndQuiet) {
  rig_.plan.follow = true;
  rig_.plan.until_empty = true;
  rig_.plan.quiet = 5s;
  send("A");
  int waits = 0;
  SteadyTime last{};
  rig_.on_wait = [&] {
    if (++waits <= 4) {
      send("later-" + std::to_string(waits));
      last = clock_.steady_now();
    }
  };
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_EQ(rig_.count.carried, 5U);
  EXPECT_THAT(ids(from_, "orders"), IsEmpty());
  EXPECT_GE(clock_.steady_now() - last, 5s);
}

TEST_F(MoverTest, AMessageOfTheSameIdInTheTargetIsLeftWhereItIs) {
  send("A");
  send("B");
  const queue::NewMessage other{.id = "A", .body = "another one"};
  ASSERT_EQ(to_.send("orders2", std::span(&other, 1), soon()).front().status, queue::SendStatus::sent);
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(rig_.refusals, ElementsAre(Pair("A", HasSubstr("queue orders2 has another message of that id"))));
  EXPECT_EQ(rig_.count.refused, 1U);
  EXPECT_EQ(to_.get("orders2", "A", soon())->message.body, "another one");
  EXPECT_EQ(from_.get("orders", "A", soon())->state(clock_.wall_now()), queue::MessageState::ready)
      << "it can be worked on where it is";
  EXPECT_THAT(ids(to_, "orders2"), UnorderedElementsAre("A", "B"));
}

TEST_F(MoverTest, PrioritiesNeedATargetThatHasThem) {
  queue::NewMessage urgent{.id = "urgent", .body = "x"};
  urgent.priority = queue::Priority::high;
  ASSERT_EQ(from_.send("orders", std::span(&urgent, 1), soon()).front().status, queue::SendStatus::sent);
  send("plain");
  rig_.plan.target_has_priorities = false;
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(rig_.refusals, ElementsAre(Pair("urgent", HasSubstr("has the priority high"))));
  EXPECT_THAT(ids(from_, "orders"), ElementsAre("urgent"));
  rig_.plan.drop_priorities = true;
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_EQ(to_.get("orders2", "urgent", soon())->message.priority, queue::Priority::normal);
}

TEST_F(MoverTest, TheRateIsKept) {
  rig_.plan.rate = 2;
  for (int i = 0; i < 8; ++i) {
    send("M-" + std::to_string(i));
  }
  const SteadyTime began = clock_.steady_now();
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_GE(clock_.steady_now() - began, 3s);
  EXPECT_EQ(rig_.count.carried, 8U);
}

TEST_F(MoverTest, ADryRunWritesNothing) {
  send("A");
  ASSERT_TRUE(from_.dead_letter("orders", "A", {}, soon()));
  send("B");
  here_.forget_calls();
  there_.forget_calls();
  MovePlan plan = rig_.plan;
  plan.dry_run = true;
  plan.from_tariff = plan.to_tariff = {config::Layout::dynamomq, "orders"};
  Mover mover({from_.oper("orders"), to_.oper("orders2"), rig_.from_board(), rig_.to_board()}, clock_, nullptr, plan);
  ASSERT_EQ(rig_.finish(mover).state, State::finished);
  EXPECT_EQ(mover.count().carried, 2U);
  EXPECT_EQ(mover.count().dead_letters, 1U);
  EXPECT_EQ(mover.planned_cost().write_units, 16) << "four writes of two units each, of each message";
  EXPECT_EQ(here_.count(StoreCall::change) + there_.count(StoreCall::put), 0U);
}

TEST_F(MoverTest, EachWriteWhoseAnswerIsLostIsRecognised) {
  for (const StoreCall call : {StoreCall::change, StoreCall::put}) {
    for (test::SimQueues* const side : {&here_, &there_}) {
      for (std::size_t times = 1; times <= 3; ++times) {
        const std::string id =
            "M-" + std::to_string(static_cast<int>(call)) + (side == &here_ ? "h" : "t") + std::to_string(times);
        send(id);
        MoveNotice notice(rig_.from_board(), clock_, rig_.plan.pair, {"here", 1});
        ASSERT_TRUE(notice.enter(soon())->ours);
        Mover mover({from_.oper("orders"), to_.oper("orders2"), rig_.from_board(), rig_.to_board()}, clock_, &notice,
                    rig_.plan);
        side->apply_then_fail_next(call, times);
        Mover::Step end;
        for (int tries = 0; tries < 10 && end.state != State::finished; ++tries) {
          end = rig_.finish(mover);  // a failure is tried again
          clock_.advance(100ms);
        }
        ASSERT_EQ(end.state, State::finished) << end.error.message();
        ASSERT_TRUE(mover.nothing_taken());
        EXPECT_EQ(mover.count().resumed, 0U) << "no earlier run has left anything";
        ASSERT_TRUE(notice.leave(true, soon()));
        rig_.consume();
        EXPECT_EQ(rig_.handled[id], 1) << id;
        EXPECT_THAT(ids(from_, "orders"), IsEmpty());
        EXPECT_THAT(ids(to_, "orders2"), IsEmpty());
        side->heal();
      }
    }
  }
}

TEST_F(MoverTest, ADeadLetterOfWhichAnEarlierRunHasLeftTheCopyCountsAsOne) {
  send("A");
  ASSERT_TRUE(from_.dead_letter("orders", "A", {.error = "refused"}, soon()));
  ASSERT_EQ(rig_.run(3).state, State::more) << "killed when it was taken, put and removed";
  ASSERT_EQ(rig_.run(1'000).state, State::finished);
  EXPECT_EQ(rig_.count.carried, 1U);
  EXPECT_EQ(rig_.count.resumed, 1U);
  EXPECT_EQ(rig_.count.dead_letters, 1U);
}

TEST_F(MoverTest, WhatAnOperatorRemovesWhileItIsTakenIsNotBroughtBack) {
  send("A");
  ASSERT_EQ(rig_.run(2).state, State::more) << "killed when it was taken and put";
  ASSERT_EQ(hidden(from_, "orders"), 1U);
  ASSERT_TRUE(to_.get("orders2", "A", soon())) << "hidden";
  // Brought back by an operator, and worked on in the old queue before the move goes on.
  const queue::Change front{.id = "A", .action = queue::ChangeAction::move_to_front};
  ASSERT_EQ(from_.change("orders", std::span(&front, 1), soon()).front().status, queue::ChangeStatus::applied);
  auto claimed = *from_.claim({"orders"}, 1, 1min, soon());
  ASSERT_EQ(claimed.size(), 1U);
  rig_.on_wait = [&] {
    if (!claimed.empty()) {
      const queue::Completion done{.receipt = claimed[0].receipt};
      from_.settle({"orders"}, std::span(&done, 1), soon());
      claimed.clear();
    }
  };
  const auto end = rig_.run(kNoLimit);
  ASSERT_EQ(end.state, State::finished) << end.error.message();
  EXPECT_THAT(ids(to_, "orders2"), IsEmpty()) << "its copy has gone with it";
}

TEST_F(MoverTest, WhatIsEditedWhileItIsTakenIsCarriedAsItIsThen) {
  send("A");
  ASSERT_EQ(rig_.run(2).state, State::more);
  const auto taken = from_.get("orders", "A", soon());
  const queue::ContentEdit edit{.path = {"data"}, .json = "\"edited\""};
  ASSERT_TRUE(from_.edit("orders", "A", taken->version, std::span(&edit, 1), soon()));
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_EQ(to_.get("orders2", "A", soon())->message.body, "edited");
  rig_.consume();
  EXPECT_EQ(rig_.handled["A"], 1);
}

TEST_F(MoverTest, TwoMoversOfOnePairAreNotAtWork) {
  send("A");
  MoveNotice first(rig_.from_board(), clock_, rig_.plan.pair, {"one", 1});
  MoveNotice second(rig_.from_board(), clock_, rig_.plan.pair, {"two", 2});
  ASSERT_TRUE(first.enter(soon())->ours);
  auto entry = second.enter(soon());
  ASSERT_TRUE(entry);
  EXPECT_FALSE(entry->ours) << "it may be dead: nobody knows yet";
  clock_.advance(6s);
  ASSERT_TRUE(first.keep(soon()));
  entry = second.enter(soon());
  ASSERT_FALSE(entry);
  EXPECT_THAT(entry.error().message(), HasSubstr("process 1 on one is at this move"));
}

// Containers of one pod have one host name, and each has process ids of its own.
TEST_F(MoverTest, AProcessOfAnotherContainerIsNotTakenForDeadAsItsIdIsUnknownHere) {
  constexpr std::int64_t kNobody = 1 << 30;
  MoveNotice elsewhere(rig_.from_board(), clock_, rig_.plan.pair, {"here", kNobody, "00000000-1-1"});
  MoveNotice gone(rig_.from_board(), clock_, rig_.plan.pair, {"here", kNobody, process_mark(::getpid())});
  ASSERT_TRUE(elsewhere.enter(soon())->ours);
  EXPECT_FALSE(gone.enter(soon())->ours);
  ASSERT_TRUE(elsewhere.leave(true, soon()));
  ASSERT_TRUE(gone.enter(soon())->ours);
  EXPECT_TRUE(elsewhere.enter(soon())->ours);
}

TEST_F(MoverTest, WhoDoesNotTellAnyMoreIsTakenForDeadAndKnowsIt) {
  MoveNotice first(rig_.from_board(), clock_, rig_.plan.pair, {"one", 1});
  MoveNotice second(rig_.from_board(), clock_, rig_.plan.pair, {"two", 2});
  ASSERT_TRUE(first.enter(soon())->ours);
  ASSERT_FALSE(second.enter(soon())->ours);
  clock_.advance(MoveNotice::kSilent);
  const auto entry = second.enter(soon());
  ASSERT_TRUE(entry);
  EXPECT_TRUE(entry->ours);
  EXPECT_TRUE(entry->found) << "something may be left";
  EXPECT_LT(first.relied_until(), clock_.steady_now()) << "it writes nothing any more";
  EXPECT_FALSE(first.keep(soon()));
}

TEST_F(MoverTest, AnotherMoveOfTheQueueIsRefusedUntilThisOneHasEnded) {
  send("A");
  rig_.run(1);  // killed when the message was taken
  rig_.plan.pair.to = "elsewhere";
  const auto end = rig_.run(kNoLimit);
  ASSERT_EQ(end.state, State::failed);
  EXPECT_THAT(end.error.message(), HasSubstr("queue orders is being moved to orders2"));
}

TEST_F(MoverTest, WhatWasTakenWithoutANoticeIsNotTouchedUnlessItIsAdopted) {
  send("A");
  rig_.run(1);
  const auto notice = rig_.from_board().read(queue::Topic::schedules, "move/orders", soon());
  ASSERT_TRUE(rig_.from_board().take_down(queue::Topic::schedules, "move/orders", notice->version, soon()));
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(rig_.refusals, ElementsAre(Pair("A", HasSubstr("was taken by a move whose notice is lost"))));
  EXPECT_EQ(hidden(from_, "orders"), 1U);
  rig_.plan.resumed = true;
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(ids(to_, "orders2"), ElementsAre("A"));
}

TEST_F(MoverTest, AGroupStaysTogetherBehindItsFirst) {
  for (int i = 0; i < 4; ++i) {
    send("a" + std::to_string(i), "a");
    send("b" + std::to_string(i), "b");
  }
  const auto claimed = *from_.claim({"orders"}, 1, 1min, soon());
  ASSERT_EQ(claimed.front().message.id, "a0");
  int waits = 0;
  rig_.on_wait = [&] {
    if (++waits == 1) {
      EXPECT_THAT(ids(to_, "orders2"), UnorderedElementsAre("b0", "b1", "b2", "b3"));
    }
    if (waits == 3) {
      const queue::Completion done{.receipt = claimed[0].receipt};
      from_.settle({"orders"}, std::span(&done, 1), soon());
    }
  };
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(ids(from_, "orders"), IsEmpty());
  EXPECT_GE(waits, 3);
}

TEST_F(MoverTest, AGroupIsNotCarriedPastOneThatSomebodyTakesFirst) {
  for (int i = 0; i < 3; ++i) {
    send("a" + std::to_string(i), "a");
  }
  // Between the look and the taking its first is claimed.
  class Claims final : public test::ForwardingOperator {
   public:
    Claims(queue::Operator& beneath, test::Desk& desk, Deadline deadline)
        : ForwardingOperator(beneath), desk_(desk), deadline_(deadline) {}
    std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
      if (!std::exchange(claimed_, true)) {
        desk_.claim({"orders"}, 1, 1h, deadline_);
      }
      return beneath().change(changes, deadline);
    }

   private:
    test::Desk& desk_;
    const Deadline deadline_;
    bool claimed_ = false;
  } claims(from_.oper("orders"), from_, soon());
  MoveNotice notice(rig_.from_board(), clock_, rig_.plan.pair, {"here", 1});
  ASSERT_TRUE(notice.enter(soon())->ours);
  Mover mover({claims, to_.oper("orders2"), rig_.from_board(), rig_.to_board()}, clock_, &notice, rig_.plan);
  for (Mover::Step step = mover.step(); step.state == State::more; step = mover.step()) {
  }
  EXPECT_THAT(ids(to_, "orders2"), IsEmpty()) << "none of those behind it went";
  EXPECT_EQ(hidden(from_, "orders"), 1U) << "and they are seen again";
}

TEST_F(MoverTest, AMessageWithoutAResultIsCarriedAllTheSame) {
  send("A-1");
  send("A-2");
  test::ForgetfulOperator from(from_.oper("orders"));
  test::ForgetfulOperator to(to_.oper("orders2"));
  rig_.plan.batch = 2;
  MoveBatch batch({from, to, rig_.from_board(), rig_.to_board()}, rig_.plan.pair);
  const auto page = from_.oper("orders").list({.content = true, .native = true}, soon());
  for (const auto& message : page->messages) {
    batch.add(message, false);
  }
  for (int step = 0; step < 20 && !batch.empty(); ++step) {
    const auto ended = batch.step(soon());
    for (const auto& outcome : batch.take_outcomes()) {
      EXPECT_EQ(outcome.fate, outcome.id == "A-1" ? MoveBatch::Fate::carried : MoveBatch::Fate::left);
      EXPECT_EQ(outcome.doubtful, outcome.id == "A-2") << "the next look tells";
    }
  }
}

/// A queue of very many messages, and one that takes them all; neither keeps any.
class ManyMessages final : public test::ForwardingOperator {
 public:
  ManyMessages(queue::Operator& beneath, std::size_t pages) : ForwardingOperator(beneath), pages_(pages) {}

  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline /*deadline*/) override {
    queue::ListPage page;
    const std::size_t number = request.cursor.empty() ? 0 : std::stoul(request.cursor);
    for (std::size_t index = 0; number < pages_ && index < request.limit; ++index) {
      auto& record = page.messages.emplace_back();
      record.message.id = "a-message-on-page-" + std::to_string(number) + "-" + std::to_string(index);
      record.version = 1;
    }
    page.next = number + 1 < pages_ ? std::to_string(number + 1) : "";
    return page;
  }
  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline /*deadline*/) override {
    return std::vector<queue::ChangeResult>(changes.size(), {queue::ChangeStatus::applied, 2, {}});
  }
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode /*mode*/,
                                    Deadline /*deadline*/) override {
    return std::vector<queue::PutResult>(records.size());
  }

 private:
  const std::size_t pages_;
};

TEST_F(MoverTest, WhatHasBeenCarriedIsForgottenBeforeThePassIsOver) {
  constexpr std::size_t kPages = 160;
  ManyMessages from(from_.oper("orders"), kPages);
  ManyMessages to(to_.oper("orders2"), 0);
  rig_.plan.page = rig_.plan.batch = 250;
  rig_.plan.halves = {Half::standard};
  Mover mover({from, to, rig_.from_board(), rig_.to_board()}, clock_, nullptr, rig_.plan);
  const auto carry = [&](std::size_t pages) {
    while (mover.count().carried < pages * 250) {
      ASSERT_EQ(mover.step().state, State::more);
      clock_.advance(100ms);
    }
  };
  carry(kPages / 4);
  const std::size_t before = ::mallinfo2().uordblks;
  carry(kPages);
  EXPECT_LT(::mallinfo2().uordblks, before + 1'000'000) << "of each message some 130 bytes were kept";
}

TEST_F(MoverTest, GroupsMayBeLeft) {
  send("a", "a");
  send("plain");
  rig_.plan.leave_groups = true;
  ASSERT_EQ(rig_.run(kNoLimit).state, State::finished);
  EXPECT_THAT(ids(from_, "orders"), ElementsAre("a"));
  EXPECT_EQ(rig_.count.left.grouped, 1U);
}

/// On the real store, whose jobs keep the order of groups in the target.
TEST(MoverOrder, AGroupIsHandledInItsOrderInTheTargetWhileItIsCarried) {
  test::FakeClock clock;
  clock.set_steady(SystemClock().steady_now());
  SeededRandom random(3);
  test::TempFolder folder;
  const auto from = test::open_store(folder.file("from.db"), clock, random);
  const auto to = test::open_store(folder.file("to.db"), clock, random);
  const auto soon = [&clock] { return Deadline::after(clock, 60s); };
  for (int i = 0; i < 12; ++i) {
    const queue::NewMessage message{.id = std::to_string(100 + i), .body = "x", .group = i % 3 == 0 ? "a" : "b"};
    ASSERT_EQ(from->send("orders", std::span(&message, 1), soon()).front().status, queue::SendStatus::sent);
    clock.advance(1ms);
  }
  test::MoveRig rig(clock, *from, *to);
  std::map<std::string, std::vector<std::string>> handled;
  const auto work = [&] {
    queue::ClaimRequest request{.max = 10, .visibility = 30s};
    request.rules.order = queue::Order::group;
    const auto claimed = to->source({"orders2"}).claim(request, soon());
    ASSERT_TRUE(claimed);
    for (const auto& delivery : claimed->deliveries) {
      handled[delivery.message.group].push_back(delivery.message.id);
      const queue::Completion done{.receipt = delivery.receipt};
      to->settle({"orders2"}, std::span(&done, 1), soon());
    }
  };
  ASSERT_EQ(rig.run(kNoLimit, work).state, State::finished);
  for (int i = 0; i < 12; ++i) {
    work();
  }
  EXPECT_THAT(handled["a"], ElementsAre("100", "103", "106", "109"));
  EXPECT_THAT(handled["b"], ElementsAre("101", "102", "104", "105", "107", "108", "110", "111"));
}

TEST(MoveMark, ACopyIsKnownInAStoreThatKeepsWholeMilliseconds) {
  const MovePair pair{.from = "orders", .from_place = "a", .to = "orders2", .to_place = "b"};
  queue::StoredMessage copy;
  copy.invisible_until = moving_until(copy, WallTime(1'700'000'000s));
  copy.updated_at = pair.stamp();
  EXPECT_TRUE(is_copy_of(copy, pair));
  copy.updated_at = std::chrono::floor<std::chrono::milliseconds>(pair.stamp());
  ASSERT_NE(copy.updated_at, pair.stamp()) << "or this test shows nothing";
  EXPECT_TRUE(is_copy_of(copy, pair));
  copy.updated_at += 1ms;
  EXPECT_FALSE(is_copy_of(copy, pair));
}

}  // namespace
}  // namespace sluice::operate
