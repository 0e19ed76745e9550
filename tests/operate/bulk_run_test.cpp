#include "host/operate/bulk_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operate/forgetful_operator.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::operate {
namespace {

using queue::ChangeAction;
using queue::Half;
using test::StoreCall;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = BulkRun::Step::State;
using Fate = BulkOutcome::Fate;

constexpr const char* kBulkQueue = "orders";

class BulkRunTest : public testing::Test {
 protected:
  /// Sends M-000, M-001, ... one microsecond apart, with bodies {"n": 0}, {"n": 1}, ...
  void send(int count) {
    for (int message = 0; message < count; ++message) {
      queue::NewMessage one;
      one.id = id(sent_);
      one.body = "{\"n\":" + std::to_string(sent_++) + "}";
      one.content_type = queue::kJson;
      clock_.advance(std::chrono::microseconds(1));
      ASSERT_EQ(desk_.send(kBulkQueue, std::span(&one, 1), Deadline::never()).front().status, queue::SendStatus::sent);
    }
    clock_.advance(std::chrono::seconds(1));
    sim_.forget_calls();
  }

  static std::string id(int number) {
    std::string text = std::to_string(number);
    return "M-" + std::string(text.size() < 3 ? 3 - text.size() : 0, '0') + text;
  }

  void dead_letter_all() {
    for (int message = 0; message < sent_; ++message) {
      clock_.advance(std::chrono::microseconds(1));
      ASSERT_TRUE(desk_.dead_letter(kBulkQueue, id(message),
                                    {.error = "e", .handler = "h", .host = {}, .attempts = 1, .failed_at = {}},
                                    Deadline::never()));
    }
    clock_.advance(std::chrono::seconds(1));
    sim_.forget_calls();
  }

  static BulkPlan plan_for(ChangeAction action) {
    BulkPlan plan;
    plan.work = queue::Change{.id = {}, .action = action};
    return plan;
  }

  static Filter where(const char* text) { return *Filter::parse(text); }

  /// Steps to the end or the first failure; time passes when the run asks for it.
  BulkRun::Step finish(BulkRun& run) {
    for (int step = 0; step < 100'000; ++step) {
      auto taken = run.step();
      outcomes_.insert(outcomes_.end(), taken.outcomes.begin(), taken.outcomes.end());
      if (taken.state == State::wait) {
        clock_.advance(taken.until - clock_.steady_now());
      } else if (taken.state != State::more) {
        return taken;
      }
    }
    ADD_FAILURE() << "the run does not end";
    return {};
  }

  std::vector<std::string> ids_with(Fate fate) const {
    std::vector<std::string> ids;
    for (const auto& outcome : outcomes_) {
      if (outcome.fate == fate) {
        ids.push_back(outcome.id);
      }
    }
    return ids;
  }

  std::uint64_t total(Half half = Half::standard) {
    return desk_.stats({kBulkQueue, half}, Deadline::never())->total();
  }

  test::FakeClock clock_;
  test::FakeRandom random_;
  test::SimQueues sim_{clock_, random_};
  test::Desk desk_{sim_};
  std::vector<BulkOutcome> outcomes_;
  int sent_ = 0;
};

TEST_F(BulkRunTest, RemovesEverythingInBatches) {
  send(603);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.unconditional = true;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  EXPECT_EQ(finish(run).state, State::finished);
  EXPECT_EQ(run.count().done, 603U);
  EXPECT_EQ(ids_with(Fate::done).size(), 603U);
  EXPECT_EQ(total(), 0U);
  // 3 pages of 250, and batches of 25 of each.
  EXPECT_EQ(sim_.count(StoreCall::list), 3U);
  EXPECT_EQ(sim_.count(StoreCall::change), 10U + 10U + 5U);
  EXPECT_EQ(run.step().state, State::finished) << "and it stays there";
}

TEST_F(BulkRunTest, ChangesOnlyWhatMatches) {
  send(100);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.filter = where("data.n >= 30 and data.n < 33");
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(run);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(30), id(31), id(32)));
  EXPECT_EQ(run.count().seen, 100U);
  EXPECT_EQ(run.count().matched, 3U);
  EXPECT_EQ(total(), 97U);
}

TEST_F(BulkRunTest, RedrivesTheDeadLetterHalf) {
  send(60);
  dead_letter_all();
  BulkPlan plan = plan_for(ChangeAction::redrive);
  plan.half = Half::dlq;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(run);
  EXPECT_EQ(run.count().done, 60U);
  EXPECT_EQ(total(), 60U);
  EXPECT_EQ(total(Half::dlq), 0U);
  EXPECT_EQ(desk_.get(kBulkQueue, id(5), Deadline::never())->message.attempt, 0U);
}

TEST_F(BulkRunTest, LeavesAloneWhatIsInFlightUnlessForced) {
  send(4);
  ASSERT_EQ(desk_.claim({kBulkQueue}, 2, std::chrono::minutes(1), Deadline::never())->size(), 2U);
  BulkRun careful(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  finish(careful);
  EXPECT_EQ(careful.count().done, 2U);
  EXPECT_EQ(careful.count().skipped, 2U);
  EXPECT_EQ(outcomes_.front().error.message().substr(0, 19), "is in flight until ");
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.force = true;
  BulkRun forced(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(forced);
  EXPECT_EQ(forced.count().done, 2U);
  EXPECT_EQ(total(), 0U);
}

// On a leased table a message at work is ready by its record: it was taken from under its handler.
TEST_F(BulkRunTest, LeavesAloneWhatAHostTellsOf) {
  send(60);
  int asked = 0;
  const auto plan_with_hosts = [&] {
    BulkPlan plan = plan_for(ChangeAction::remove);
    plan.rate = 20;  // five at a time, in twelve batches a quarter of a second apart
    plan.at_work = [&] {
      ++asked;
      AtWork told{{{Half::standard, id(0)}, "web-1"}, {{Half::dlq, id(1)}, "web-1"}};
      if (asked > 1) {
        told.emplace(std::pair(Half::standard, id(59)), "web-2");
      }
      return told;
    };
    return plan;
  };
  BulkRun careful(desk_.oper(kBulkQueue), clock_, plan_with_hosts());
  finish(careful);
  EXPECT_THAT(ids_with(Fate::skipped), ElementsAre(id(0), id(59))) << "the second was taken up meanwhile";
  EXPECT_EQ(outcomes_.front().error.message(), "is in flight: host web-1 has it at work");
  EXPECT_TRUE(outcomes_.front().was_in_flight);
  EXPECT_EQ(careful.count().done, 58U);
  EXPECT_EQ(asked, 3) << "once a second";
  BulkPlan named = plan_with_hosts();
  named.ids = {id(0)};
  named.any_state = true;
  outcomes_.clear();
  BulkRun any(desk_.oper(kBulkQueue), clock_, std::move(named));
  finish(any);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(0)));
  EXPECT_TRUE(outcomes_.front().was_in_flight) << "its caller warns";
}

TEST_F(BulkRunTest, ChangesMessagesThatAreNamedWhereverTheyLie) {
  send(5);
  ASSERT_TRUE(desk_.dead_letter(kBulkQueue, id(1), {}, Deadline::never()));
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.ids = {id(1), "nobody", id(3)};
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan);
  finish(run);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(1), id(3)));
  EXPECT_THAT(ids_with(Fate::failed), ElementsAre("nobody"));
  EXPECT_TRUE(run.complete());
  EXPECT_EQ(total(), 3U);
  plan.ids = {id(0), id(2)};
  plan.half = Half::dlq;
  plan.this_half_only = true;
  outcomes_.clear();
  BulkRun elsewhere(desk_.oper(kBulkQueue), clock_, plan);
  finish(elsewhere);
  EXPECT_THAT(ids_with(Fate::skipped), ElementsAre(id(0), id(2)));
  plan.this_half_only = false;
  plan.dry_run = true;
  BulkRun tried(desk_.oper(kBulkQueue), clock_, plan);
  finish(tried);
  EXPECT_THAT(ids_with(Fate::planned), ElementsAre(id(0), id(2)));
  EXPECT_EQ(total(), 3U);
}

TEST_F(BulkRunTest, WhatIsMeantForMessagesInFlightTakesThem) {
  send(2);
  ASSERT_EQ(desk_.claim({kBulkQueue}, 1, std::chrono::minutes(1), Deadline::never())->size(), 1U);
  BulkPlan plan = plan_for(ChangeAction::set_visibility);
  plan.any_state = true;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(run);
  EXPECT_EQ(run.count().done, 2U);
  EXPECT_TRUE(outcomes_.front().was_in_flight);
}

TEST_F(BulkRunTest, SkipsWhatSomebodyChangesMeanwhile) {
  send(3);
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  run.step();  // the list
  const queue::Change touched{.id = id(1), .action = ChangeAction::move_to_front};
  desk_.change(kBulkQueue, std::span(&touched, 1), Deadline::never());
  ASSERT_TRUE(desk_.remove(kBulkQueue, id(2), Deadline::never()));
  finish(run);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(0)));
  EXPECT_THAT(ids_with(Fate::skipped), ElementsAre(id(1), id(2)));
  EXPECT_EQ(outcomes_[1].error.message(), "changed meanwhile");
  EXPECT_EQ(outcomes_[2].error.message(), "gone meanwhile");
  EXPECT_EQ(total(), 1U);
}

TEST_F(BulkRunTest, APurgeLeavesWhatMovesToTheOtherHalf) {
  send(3);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.unconditional = true;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  run.step();  // the list
  ASSERT_TRUE(desk_.dead_letter(kBulkQueue, id(1), {}, Deadline::never()));
  const queue::Change touched{.id = id(2), .action = ChangeAction::move_to_front};
  desk_.change(kBulkQueue, std::span(&touched, 1), Deadline::never());
  finish(run);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(0), id(2)));
  EXPECT_THAT(ids_with(Fate::skipped), ElementsAre(id(1)));
  EXPECT_EQ(outcomes_[1].error.message(), "moved to the dead-letter half meanwhile");
  EXPECT_EQ(total(Half::dlq), 1U);
}

TEST_F(BulkRunTest, ADryRunChangesNothingAndKnowsTheCost) {
  send(30);
  BulkPlan plan = plan_for(ChangeAction::delay);
  plan.filter = where("data.n < 10");
  plan.dry_run = true;
  plan.tariff = {config::Layout::dynamomq, kBulkQueue};
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(run);
  EXPECT_EQ(run.count().done, 10U);
  EXPECT_EQ(ids_with(Fate::planned).size(), 10U);
  EXPECT_EQ(sim_.count(StoreCall::change), 0U);
  EXPECT_EQ(run.planned_cost().write_units, 30.0) << "item, and out of and into the index";
  EXPECT_EQ(run.planned_cost().read_units, 0.0);
  EXPECT_EQ(run.resume_token(), "");
}

TEST_F(BulkRunTest, ALimitIsExact) {
  send(60);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.limit = 30;
  plan.page = 20;
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan);
  EXPECT_EQ(finish(run).state, State::finished);
  EXPECT_EQ(run.count().done, 30U);
  EXPECT_EQ(total(), 30U);
  plan.dry_run = true;
  BulkRun dry(desk_.oper(kBulkQueue), clock_, plan);
  finish(dry);
  EXPECT_EQ(dry.count().done, 30U);
}

TEST_F(BulkRunTest, ALimitReadsNoMoreThanItNeeds) {
  send(200);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.limit = 5;
  plan.dry_run = true;
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan);
  finish(run);
  EXPECT_EQ(run.count().done, 5U);
  EXPECT_EQ(run.count().seen, 25U) << "a batch, and not a page";
  plan.filter = where("data.n >= 100");
  BulkRun filtered(desk_.oper(kBulkQueue), clock_, plan);
  finish(filtered);
  EXPECT_EQ(filtered.count().done, 5U);
  EXPECT_EQ(filtered.count().seen, 200U) << "nobody knows where the next match is";
}

TEST_F(BulkRunTest, KeepsToItsRateByTheClock) {
  send(200);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.rate = 40;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  const SteadyTime begun = clock_.steady_now();
  std::size_t most = 0;
  std::uint64_t before = 0;
  for (auto step = run.step(); step.state != State::finished; step = run.step()) {
    most = std::max<std::size_t>(most, run.count().done - before);
    before = run.count().done;
    const std::chrono::duration<double> passed = clock_.steady_now() - begun;
    ASSERT_LE(static_cast<double>(run.count().done), 10 + 40 * passed.count() + 1e-6);
    if (step.state == State::wait) {
      ASSERT_GT(step.until, clock_.steady_now());
      clock_.advance(step.until - clock_.steady_now());
    }
  }
  EXPECT_EQ(run.count().done, 200U);
  EXPECT_EQ(most, 10U) << "four batches a second";
  const std::chrono::duration<double> passed = clock_.steady_now() - begun;
  EXPECT_NEAR(passed.count(), 190.0 / 40, 0.01);
}

TEST_F(BulkRunTest, ASlowRateGoesOneByOne) {
  send(3);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.rate = 0.5;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  const SteadyTime begun = clock_.steady_now();
  finish(run);
  EXPECT_EQ(sim_.count(StoreCall::change), 3U);
  EXPECT_EQ(clock_.steady_now() - begun, std::chrono::seconds(4));
}

TEST_F(BulkRunTest, StopsBetweenBatchesAndGoesOnFromItsCursor) {
  send(100);
  BulkPlan plan = plan_for(ChangeAction::set_visibility);
  plan.page = 30;
  BulkRun first(desk_.oper(kBulkQueue), clock_, plan);
  while (first.count().done < 55) {
    first.step();
  }
  EXPECT_EQ(first.count().done, 55U) << "a page of 30 in 25 and 5, then 25";
  ASSERT_NE(first.resume_token(), "");
  ASSERT_TRUE(plan.resume_at(first.resume_token()));
  BulkRun second(desk_.oper(kBulkQueue), clock_, plan);
  finish(second);
  EXPECT_EQ(second.count().done, 70U) << "the page under way again, and the rest";
  EXPECT_EQ(ids_with(Fate::done).front(), id(30));
  EXPECT_EQ(ids_with(Fate::done).back(), id(99));
}

TEST_F(BulkRunTest, ARunThatIsTakenUpHasTheRestOfItsLimit) {
  send(100);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.limit = 70;
  plan.page = 50;
  for (const std::uint64_t stops_at : {std::uint64_t{25}, std::uint64_t{50}}) {
    BulkRun stopped(desk_.oper(kBulkQueue), clock_, plan);
    while (stopped.count().done < 25) {
      stopped.step();
    }
    plan.limit = 70;  // as the same command says again
    ASSERT_TRUE(plan.resume_at(stopped.resume_token()));
    EXPECT_EQ(plan.limit, 70 - stops_at);
  }
  BulkRun last(desk_.oper(kBulkQueue), clock_, plan);
  finish(last);
  EXPECT_EQ(last.count().done, 20U);
  EXPECT_EQ(total(), 30U);
  EXPECT_EQ(last.resume_token().find("rest="), std::string::npos) << "nothing is left of the limit";
}

// What is edited or given back stays where it is, so that its page alone would not tell where to go on.
TEST_F(BulkRunTest, ARunThatIsTakenUpDoesNothingTwice) {
  send(100);
  for (const BulkWork& work : {BulkWork(std::vector<queue::ContentEdit>{{.path = {"data", "m"}, .json = "1.50"}}),
                               BulkWork(queue::Change{.id = {}, .action = ChangeAction::set_visibility})}) {
    BulkPlan plan;
    plan.work = work;
    plan.limit = 60;
    plan.page = 50;
    BulkRun stopped(desk_.oper(kBulkQueue), clock_, plan);
    while (stopped.count().done < 25) {
      stopped.step();
    }
    ASSERT_TRUE(plan.resume_at(stopped.resume_token()));
    EXPECT_EQ(plan.limit, 35U);
    BulkRun second(desk_.oper(kBulkQueue), clock_, plan);
    outcomes_.clear();
    finish(second);
    EXPECT_EQ(ids_with(Fate::done).front(), id(25));
    EXPECT_EQ(ids_with(Fate::done).back(), id(59));
  }
}

// What is delayed or reset lies behind what is left.
TEST_F(BulkRunTest, ARunThatIsTakenUpPassesOverNothing) {
  send(100);
  for (const ChangeAction action : {ChangeAction::delay, ChangeAction::reset}) {
    BulkPlan plan;
    plan.work = queue::Change{.id = {}, .action = action, .after = std::chrono::hours(1)};
    plan.limit = 60;
    plan.page = 500;
    BulkRun stopped(desk_.oper(kBulkQueue), clock_, plan);
    while (stopped.count().done < 25) {
      stopped.step();
    }
    const std::uint64_t rest = 60 - stopped.count().done;
    ASSERT_TRUE(plan.resume_at(stopped.resume_token()));
    BulkRun second(desk_.oper(kBulkQueue), clock_, plan);
    finish(second);
    EXPECT_EQ(second.count().done, rest);
  }
}

TEST_F(BulkRunTest, ATokenWithoutARestIsAPlaceAlone) {
  BulkPlan plan;
  EXPECT_TRUE(plan.resume_at("rest="));
  EXPECT_EQ(plan.cursor, "rest=") << "the store says that it is no place";
  EXPECT_EQ(plan.limit, 0U);
  plan.limit = 5;
  EXPECT_TRUE(plan.resume_at("rest=9;"));
  EXPECT_EQ(plan.limit, 5U) << "a smaller one that is given now holds";
  EXPECT_EQ(plan.cursor, "");
}

TEST_F(BulkRunTest, ATokenOfWhichNothingIsLeftIsNoLimitOfNone) {
  BulkPlan plan;
  EXPECT_EQ(plan.resume_at("rest=0;").error().code(), ErrorCode::invalid);
}

TEST_F(BulkRunTest, AFailureOfTheStoreStopsItAndItCanGoOn) {
  send(60);
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  sim_.fail_next(StoreCall::list, 1, Error(ErrorCode::unavailable, "down"));
  auto step = run.step();
  EXPECT_EQ(step.state, State::failed);
  EXPECT_EQ(step.error.message(), "down");
  run.step();
  run.step();
  sim_.fail_next(StoreCall::change, 1, Error(ErrorCode::throttled, "slow down"));
  step = run.step();
  EXPECT_EQ(step.state, State::failed);
  EXPECT_EQ(run.count().done, 25U);
  EXPECT_THAT(step.outcomes, IsEmpty());
  EXPECT_EQ(finish(run).state, State::finished);
  EXPECT_EQ(run.count().done, 60U);
  EXPECT_EQ(run.count().failed, 0U);
}

TEST_F(BulkRunTest, AFailureOfOneMessageIsCounted) {
  send(30);
  sim_.fail_message(StoreCall::change, id(7), 1, Error(ErrorCode::internal, "odd"));
  sim_.fail_message(StoreCall::change, id(8), 1, Error(ErrorCode::throttled, "slow down"));
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  EXPECT_EQ(finish(run).state, State::finished);
  EXPECT_EQ(run.count().done, 28U);
  EXPECT_EQ(run.count().failed, 2U);
  EXPECT_THAT(ids_with(Fate::failed), ElementsAre(id(7), id(8)));
  EXPECT_EQ(total(), 2U);
}

TEST_F(BulkRunTest, WhatArrivesMeanwhileStays) {
  send(30);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.unconditional = true;
  plan.page = 10;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  for (int step = 0; step < 1000 && run.step().state != State::finished; ++step) {
    // A producer that is faster than the run.
    clock_.advance(std::chrono::milliseconds(1));
    for (int sent = 0; sent < 30; ++sent) {
      queue::NewMessage one;
      one.body = "x";
      desk_.send(kBulkQueue, std::span(&one, 1), Deadline::never());
    }
  }
  EXPECT_EQ(run.count().done, 30U);
  EXPECT_EQ(run.step().state, State::finished);
  EXPECT_GT(total(), 0U);
}

TEST_F(BulkRunTest, EachMessageIsDelayedOnce) {
  send(70);
  BulkPlan plan = plan_for(ChangeAction::delay);
  std::get<queue::Change>(plan.work).after = std::chrono::hours(1);
  plan.page = 20;
  BulkRun run(desk_.oper(kBulkQueue), clock_, std::move(plan));
  finish(run);
  EXPECT_EQ(run.count().done, 70U);
  EXPECT_EQ(desk_.stats({kBulkQueue}, Deadline::never())->delayed, 70U);
}

TEST_F(BulkRunTest, DelayedMessagesFromBeforeAreTaken) {
  queue::NewMessage late;
  late.id = "late";
  late.delay = std::chrono::hours(1);
  desk_.send(kBulkQueue, std::span(&late, 1), Deadline::never());
  clock_.advance(std::chrono::seconds(1));
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  finish(run);
  EXPECT_EQ(run.count().done, 1U);
}

TEST_F(BulkRunTest, EditsContentOneByOne) {
  send(5);
  ASSERT_EQ(desk_.claim({kBulkQueue}, 1, std::chrono::minutes(1), Deadline::never())->size(), 1U);
  BulkPlan plan = plan_for(ChangeAction::remove);
  plan.work = std::vector<queue::ContentEdit>{{.path = {"data", "m"}, .json = "1.50"}};
  plan.filter = where("data.n != 3");
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan);
  finish(run);
  EXPECT_THAT(ids_with(Fate::done), ElementsAre(id(1), id(2), id(4)));
  EXPECT_THAT(ids_with(Fate::skipped), ElementsAre(id(0)));
  EXPECT_THAT(desk_.get(kBulkQueue, id(1), Deadline::never())->message.body, HasSubstr("1.50"));
  plan.work = std::vector<queue::ContentEdit>{{.path = {"data", "no", "way"}, .json = "1"}};
  outcomes_.clear();
  BulkRun wrong(desk_.oper(kBulkQueue), clock_, plan);
  EXPECT_EQ(finish(wrong).state, State::finished);
  EXPECT_EQ(wrong.count().failed, 3U);
}

TEST_F(BulkRunTest, AMessageWithoutAResultHasFailed) {
  send(2);
  test::ForgetfulOperator forgetful(desk_.oper(kBulkQueue));
  for (const bool unconditional : {false, true}) {
    BulkPlan plan = plan_for(ChangeAction::remove);
    plan.unconditional = unconditional;
    BulkRun run(forgetful, clock_, plan);
    EXPECT_EQ(finish(run).state, State::finished);
    EXPECT_EQ(run.count().failed, 1U);
    EXPECT_THAT(outcomes_.back().error.message(), HasSubstr("gave no result for this message"));
    send(2);
  }
}

TEST_F(BulkRunTest, AnEmptyQueueIsDoneAtOnce) {
  BulkRun run(desk_.oper(kBulkQueue), clock_, plan_for(ChangeAction::remove));
  EXPECT_EQ(finish(run).state, State::finished);
  EXPECT_EQ(run.count().seen, 0U);
}

}  // namespace
}  // namespace sluice::operate
