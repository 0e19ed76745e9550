// What is held: leases, hands, the settle queue.
#include <gtest/gtest.h>

#include "host/work/hand.hpp"
#include "host/work/lease_book.hpp"
#include "host/work/settle_queue.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using plugin::OutcomeStatus;

constexpr SteadyTime kStart = SteadyTime(std::chrono::hours(1));

queue::Message message(const std::string& id) {
  queue::Message made;
  made.id = id;
  made.attempt = 1;
  return made;
}

TEST(LeaseTerms, StopShortOfWhatTheSourceGrants) {
  const LeaseTerms terms(30s);
  const Lease lease = terms.granted({"a", 1, 0}, kStart + 30s);
  EXPECT_EQ(lease.ends_at, kStart + 30s);
  EXPECT_EQ(lease.extend_at, kStart + 15s);
  EXPECT_TRUE(terms.usable(lease, kStart + 28s));
  EXPECT_FALSE(terms.usable(lease, kStart + 29s));
  EXPECT_FALSE(terms.usable(lease, kStart + 31s));
}

TEST(LeaseTerms, SeveralTriesFitBeforeTheEnd) {
  SeededRandom random(1);
  for (const Duration visibility : {Duration(200ms), Duration(30s), Duration(12h)}) {
    const LeaseTerms terms(visibility);
    const Lease lease = terms.granted({"a", 1, 0}, kStart + visibility);
    int tries = 0;
    for (SteadyTime now = lease.extend_at; terms.usable(lease, now); now = terms.retry_at(now, random)) {
      ++tries;
    }
    EXPECT_GE(tries, 4);
    EXPECT_LE(tries, 12);
    EXPECT_LE(lease.extend_at + terms.call_timeout(), terms.usable_until(lease)) << "one slow call must not lose it";
  }
}

TEST(LeaseBook, ReusesPlacesAndKeepsAddresses) {
  LeaseBook book;
  Task& a = book.add(message("a"), {});
  Task& b = book.add(message("b"), {});
  Task& c = book.add(message("c"), {});
  a.open = false;
  book.tidy(a);
  EXPECT_EQ(book.size(), 2U);
  EXPECT_EQ(b.message.id, "b");
  EXPECT_EQ(c.message.id, "c");
  Task& d = book.add(message("d"), {});
  EXPECT_EQ(&d, &a);
  EXPECT_TRUE(d.open);
  EXPECT_EQ(book.size(), 3U);
}

TEST(LeaseBook, AHeldOrOpenTaskStays) {
  LeaseBook book;
  Task& task = book.add(message("a"), {});
  book.tidy(task);
  EXPECT_EQ(book.size(), 1U);
  task.open = false;
  task.holds = 1;
  book.tidy(task);
  EXPECT_EQ(book.size(), 1U);
  task.holds = 0;
  book.tidy(task);
  EXPECT_EQ(book.size(), 0U);
}

struct HandFixture {
  test::FakeClock clock;
  Hand hand{clock, 10s};
  std::vector<Task> tasks{4};
  SteadyTime now() const { return clock.steady_now(); }
};

TEST(Hand, RunsInOrderAndArmsTheAttempt) {
  HandFixture fixture;
  auto& [clock, hand, tasks] = fixture;
  hand.deal(tasks[0], SteadyTime::max());
  hand.deal(tasks[1], SteadyTime::max());
  EXPECT_EQ(hand.next(fixture.now()), &tasks[0]);
  EXPECT_EQ(hand.view().running, &tasks[0]);
  EXPECT_EQ(hand.view().times_out_at, fixture.now() + 10s);
  clock.advance(11s);
  EXPECT_TRUE(hand.attempt().stop_requested());
  hand.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(hand.next(fixture.now()), &tasks[1]);
  EXPECT_FALSE(hand.attempt().stop_requested()) << "armed afresh";
  hand.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(hand.next(fixture.now()), nullptr);
  std::vector<Hand::Finished> finished;
  hand.collect(finished);
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].took, 11s);
  EXPECT_EQ(finished[1].took, 0s);
  finished.clear();
  hand.collect(finished);
  EXPECT_TRUE(finished.empty());
}

TEST(Hand, GivesBackOnlyWhatHasNotStarted) {
  HandFixture fixture;
  auto& [clock, hand, tasks] = fixture;
  for (Task& task : tasks) {
    hand.deal(task, SteadyTime::max());
  }
  hand.next(fixture.now());
  EXPECT_FALSE(hand.recall(tasks[0]));
  EXPECT_TRUE(hand.recall(tasks[2]));
  EXPECT_FALSE(hand.recall(tasks[2]));
  std::vector<Task*> unstarted;
  hand.recall(unstarted);
  EXPECT_EQ(unstarted, (std::vector<Task*>{&tasks[1], &tasks[3]}));
  hand.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(hand.next(fixture.now()), nullptr);
}

TEST(Hand, NeverStartsWhatHasExpired) {
  HandFixture fixture;
  auto& [clock, hand, tasks] = fixture;
  hand.deal(tasks[0], fixture.now() + 1s);
  hand.deal(tasks[1], fixture.now() + 1h);
  clock.advance(1s);
  EXPECT_EQ(hand.next(fixture.now()), &tasks[1]);
  std::vector<Hand::Finished> finished;
  hand.collect(finished);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_TRUE(finished[0].expired);
  EXPECT_EQ(finished[0].task, &tasks[0]);
}

TEST(Hand, LosesOnlyTheLeaseOfTheMessageThatRuns) {
  HandFixture fixture;
  auto& [clock, hand, tasks] = fixture;
  hand.deal(tasks[0], SteadyTime::max());
  hand.deal(tasks[1], SteadyTime::max());
  hand.next(fixture.now());
  hand.lose_lease(tasks[1]);
  EXPECT_FALSE(hand.attempt().stop_requested());
  EXPECT_TRUE(hand.attempt().extend(1s));
  hand.lose_lease(tasks[0]);
  EXPECT_TRUE(hand.attempt().stop_requested());
  EXPECT_FALSE(hand.attempt().extend(1s));
}

TEST(Hand, AStopWithoutAnythingRunningDoesNotReachTheNextAttempt) {
  HandFixture fixture;
  fixture.hand.request_stop();
  fixture.hand.deal(fixture.tasks[0], SteadyTime::max());
  fixture.hand.next(fixture.now());
  EXPECT_FALSE(fixture.hand.attempt().stop_requested());
}

TEST(Hand, WithoutATimeoutItNeverTimesOut) {
  const test::FakeClock clock;
  Hand hand(clock, Duration::zero());
  Task task;
  hand.deal(task, SteadyTime::max());
  hand.next(clock.steady_now());
  EXPECT_EQ(hand.view().times_out_at, SteadyTime::max());
}

TEST(SettleQueue, IsDueAtOnceWhenNothingElseComes) {
  SettleQueue queue;
  Task task;
  EXPECT_EQ(queue.due(kStart, false), SteadyTime::max());
  queue.add(task, kStart);
  EXPECT_LE(queue.due(kStart, false), kStart);
  EXPECT_EQ(queue.due(kStart, true), kStart + kSettleLinger);
  EXPECT_EQ(task.holds, 1U);
  EXPECT_EQ(queue.take(kStart), std::vector<Task*>{&task});
  EXPECT_EQ(queue.size(), 0U);
}

TEST(SettleQueue, AFullBatchDoesNotLinger) {
  SettleQueue queue;
  std::vector<Task> tasks(kMaxSettleBatch + 5);
  for (Task& task : tasks) {
    queue.add(task, kStart);
  }
  EXPECT_LE(queue.due(kStart, true), kStart);
  EXPECT_EQ(queue.take(kStart).size(), kMaxSettleBatch);
  EXPECT_EQ(queue.take(kStart).size(), 5U);
}

TEST(SettleQueue, BackOffGrowsAndIsBounded) {
  SeededRandom random(5);
  Duration least{};
  for (std::uint32_t tries = 1; tries < 40; ++tries) {
    SettleQueue queue;
    Task task;
    task.tries = tries;
    queue.add_again(task, kStart, random);
    const Duration wait = queue.due(kStart, false) - kStart;
    EXPECT_GT(wait, 20ms);
    EXPECT_LE(wait, 5s);
    EXPECT_GE(wait, least / 2) << tries;
    least = std::min<Duration>(wait, 2500ms);
    EXPECT_TRUE(queue.take(kStart).empty());
    EXPECT_EQ(queue.take(kStart + wait).size(), 1U);
  }
}

TEST(SettleQueue, HurryMakesEverythingDue) {
  SeededRandom random(5);
  SettleQueue queue;
  Task task;
  task.tries = 10;
  queue.add_again(task, kStart, random);
  queue.hurry(kStart);
  EXPECT_LE(queue.due(kStart, false), kStart);
  EXPECT_EQ(queue.take(kStart).size(), 1U);
}

TEST(SettleQueue, OldRetriesDoNotHoldUpFreshOnes) {
  SeededRandom random(5);
  SettleQueue queue;
  Task old;
  old.tries = 5;
  Task fresh;
  queue.add_again(old, kStart, random);
  queue.add(fresh, kStart);
  EXPECT_EQ(queue.take(kStart), std::vector<Task*>{&fresh});
}

}  // namespace
}  // namespace sluice::work
