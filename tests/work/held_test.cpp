// What is held: leases, hands, the settle queue.
#include <gtest/gtest.h>

#include "host/work/dispatcher.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/settler.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/work/flow_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using plugin::OutcomeStatus;

constexpr SteadyTime kGranted = SteadyTime(std::chrono::hours(1));

queue::Delivery delivery(const std::string& id) {
  queue::Delivery made;
  made.message.id = id;
  made.message.attempt = 1;
  made.receipt = {id, 1, 0};
  return made;
}

TEST(LeaseTerms, StopShortOfWhatTheSourceGrants) {
  const LeaseTerms terms({QueueLease{30s}});
  const Lease lease = terms.granted({"a", 1, 0}, kGranted + 30s);
  EXPECT_EQ(lease.ends_at, kGranted + 30s);
  EXPECT_EQ(lease.extend_at, kGranted + 15s);
  EXPECT_TRUE(terms.usable(lease, kGranted + 28s));
  EXPECT_FALSE(terms.usable(lease, kGranted + 29s));
  EXPECT_FALSE(terms.usable(lease, kGranted + 31s));
}

TEST(LeaseTerms, SeveralTriesFitBeforeTheEnd) {
  SeededRandom random(1);
  for (const Duration visibility : {Duration(200ms), Duration(30s), Duration(12h)}) {
    const LeaseTerms terms({QueueLease{visibility}});
    const Lease lease = terms.granted({"a", 1, 0}, kGranted + visibility);
    int tries = 0;
    for (SteadyTime now = lease.extend_at; terms.usable(lease, now); now = terms.retry_at(now, random)) {
      ++tries;
    }
    EXPECT_GE(tries, 4);
    EXPECT_LE(tries, 12);
    EXPECT_LE(lease.extend_at + terms.call_timeout(), terms.usable_until(lease)) << "one slow call must not lose it";
  }
}

TEST(InFlightTable, ReusePlacesAndKeepAddresses) {
  isolation::JobLedger none;
  InFlightTable in_flight(LeaseTerms({QueueLease{30s}}), none);
  Task& a = in_flight.admit(delivery("a"));
  Task& b = in_flight.admit(delivery("b"));
  Task& c = in_flight.admit(delivery("c"));
  in_flight.end(a, Ending::done);
  in_flight.tidy(a);
  EXPECT_EQ(in_flight.size(), 2U);
  EXPECT_EQ(b.message.id, "b");
  EXPECT_EQ(c.message.id, "c");
  Task& d = in_flight.admit(delivery("d"));
  EXPECT_EQ(&d, &a);
  EXPECT_TRUE(d.open());
  EXPECT_EQ(in_flight.size(), 3U);
}

TEST(InFlightTable, AMessageOfAnotherQueueWithTheSameIdIsAnotherMessage) {
  StepEffects effects;
  isolation::JobLedger none;
  InFlightTable in_flight(LeaseTerms({QueueLease{30s}}), none);
  in_flight.admit(delivery("a"));
  queue::Delivery other = delivery("a");
  other.receipt.part = 1;
  EXPECT_EQ(in_flight.resume(other, effects), nullptr) << "it would be ended by what becomes of the first one";
  queue::Delivery again = delivery("a");
  again.receipt.version = 2;
  EXPECT_NE(in_flight.resume(again, effects), nullptr);
}

TEST(InFlightTable, KeepATaskThatIsOpenOrWithItsWorker) {
  isolation::JobLedger none;
  InFlightTable in_flight(LeaseTerms({QueueLease{30s}}), none);
  Task& task = in_flight.admit(delivery("a"));
  in_flight.tidy(task);
  EXPECT_EQ(in_flight.size(), 1U);
  task.deal(0);
  in_flight.end(task, Ending::lost);
  in_flight.tidy(task);
  EXPECT_EQ(in_flight.size(), 1U);
  task.leave_worker();
  in_flight.tidy(task);
  EXPECT_EQ(in_flight.size(), 0U);
}

TEST(TaskDeathTest, RefusesWhatIsNoLegalStep) {
  Task task;
  EXPECT_DEATH(task.begin_settling(), "");
  EXPECT_DEATH(task.recall(), "");
  EXPECT_DEATH(task.begin_extending(), "");
  task.dispose(put_back(), kGranted);
  EXPECT_DEATH(task.deal(0), "");
  EXPECT_DEATH(task.dispose(put_back(), kGranted), "");
  task.begin_settling();
  EXPECT_DEATH(task.begin_extending(), "");
  task.end(false);
  EXPECT_DEATH(task.end(false), "");
}

std::optional<FinishedWork::Remembered> recognise(FinishedWork& finished, const queue::Message& message) {
  Task task;
  task.message = message;
  return finished.recognise(task);
}

TEST(FinishedWork, KnowsAMessageThatComesBackAsItWas) {
  FinishedWork finished;
  const auto finish = [&](const queue::Message& message) {
    Task task;
    task.message = message;
    task.dispose({queue::CompletionAction::remove, {}, {}, Ending::done, false}, kGranted);
    FinishedWork::keep(task);
    FinishedWork::shrink(task);
    EXPECT_LE(task.message.body.size(), kKeptBody);
    finished.remember(task, std::move(task.disposition));
  };
  queue::Message message = delivery("a").message;
  message.body = std::string(kKeptBody + 1, 'f');
  finish(message);
  queue::Message again = message;
  again.attempt = 2;
  const auto known = recognise(finished, again);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->disposition.action, queue::CompletionAction::remove);
  EXPECT_FALSE(recognise(finished, again)) << "once";
  finish(message);
  again.body = "edited";
  EXPECT_FALSE(recognise(finished, again));
  finish(message);
  again = message;
  again.sent_at += 1s;
  EXPECT_FALSE(recognise(finished, again)) << "sent afresh";
  message.body = "short";
  finish(message);
  EXPECT_TRUE(recognise(finished, message));
}

TEST(FinishedWork, TakesNoMessageOfAnotherQueueForTheOneThatItKnows) {
  FlowRig rig(1);
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  const queue::Claimed first = rig.messages(1);
  rig.flow.claimed(first, rig.now(), rig.effects);
  ASSERT_NE(rig.start(0), nullptr);
  rig.finish(0);
  ASSERT_EQ(rig.settle(queue::SettleStatus::lost), 1U);
  // One transaction has sent both, under one id.
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  queue::Claimed other = first;
  other.deliveries[0].receipt.part = 1;
  rig.flow.claimed(other, rig.now(), rig.effects);
  EXPECT_NE(rig.start(0), nullptr) << "nobody has run that one";
  rig.finish(0);
  rig.settle();
  ASSERT_GT(rig.flow.next_claim(rig.now()).count, 0U);
  rig.flow.claimed(first, rig.now(), rig.effects);
  EXPECT_EQ(rig.start(0), nullptr) << "it is remembered all the same";
}

TEST(FinishedWork, RemembersOnlyTheLatestAndOnlyWhatIsFinal) {
  FinishedWork finished;
  const auto finish = [&](const std::string& id, Ending ending) {
    Task task;
    task.message = delivery(id).message;
    task.dispose({queue::CompletionAction::remove, {}, {}, ending, false}, kGranted);
    finished.remember(task, std::move(task.disposition));
  };
  finish("retried", Ending::retried);
  EXPECT_FALSE(recognise(finished, delivery("retried").message));
  for (std::size_t i = 0; i <= kMaxRemembered; ++i) {
    finish(std::to_string(i), Ending::done);
  }
  EXPECT_FALSE(recognise(finished, delivery("0").message));
  EXPECT_TRUE(recognise(finished, delivery("1").message));
  EXPECT_TRUE(recognise(finished, delivery(std::to_string(kMaxRemembered)).message));
}

struct HandFixture {
  test::FakeClock clock;
  OneByOne batch{clock, 10s};
  std::vector<Task> tasks{4};
  SteadyTime now() const { return clock.steady_now(); }
};

TEST(WorkerBatch, RunsInOrderAndArmsTheAttempt) {
  HandFixture fixture;
  auto& [clock, batch, tasks] = fixture;
  batch.deal(tasks[0], SteadyTime::max());
  batch.deal(tasks[1], SteadyTime::max());
  EXPECT_EQ(batch.next(fixture.now()), &tasks[0]);
  EXPECT_EQ(batch.view().running, &tasks[0]);
  EXPECT_EQ(batch.view().times_out_at, fixture.now() + 10s);
  clock.advance(11s);
  EXPECT_TRUE(batch.attempt().stop_requested());
  batch.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(batch.next(fixture.now()), &tasks[1]);
  EXPECT_FALSE(batch.attempt().stop_requested()) << "armed afresh";
  batch.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(batch.next(fixture.now()), nullptr);
  std::vector<WorkerBatch::Finished> finished;
  batch.collect(finished);
  ASSERT_EQ(finished.size(), 2U);
  EXPECT_EQ(finished[0].took, 11s);
  EXPECT_EQ(finished[1].took, 0s);
  finished.clear();
  batch.collect(finished);
  EXPECT_TRUE(finished.empty());
}

TEST(WorkerBatch, GivesBackOnlyWhatHasNotStarted) {
  HandFixture fixture;
  auto& [clock, batch, tasks] = fixture;
  for (Task& task : tasks) {
    batch.deal(task, SteadyTime::max());
  }
  batch.next(fixture.now());
  EXPECT_FALSE(batch.recall(tasks[0]));
  EXPECT_TRUE(batch.recall(tasks[2]));
  EXPECT_FALSE(batch.recall(tasks[2]));
  std::vector<Task*> unstarted;
  batch.recall(unstarted);
  EXPECT_EQ(unstarted, (std::vector<Task*>{&tasks[1], &tasks[3]}));
  batch.finish({OutcomeStatus::done, {}, {}}, fixture.now());
  EXPECT_EQ(batch.next(fixture.now()), nullptr);
}

TEST(WorkerBatch, NeverStartsWhatHasExpired) {
  HandFixture fixture;
  auto& [clock, batch, tasks] = fixture;
  batch.deal(tasks[0], fixture.now() + 1s);
  batch.deal(tasks[1], fixture.now() + 1h);
  clock.advance(1s);
  EXPECT_EQ(batch.next(fixture.now()), &tasks[1]);
  std::vector<WorkerBatch::Finished> finished;
  batch.collect(finished);
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_TRUE(finished[0].expired);
  EXPECT_EQ(finished[0].task, &tasks[0]);
}

TEST(WorkerBatch, LosesOnlyTheLeaseOfTheMessageThatRuns) {
  HandFixture fixture;
  auto& [clock, batch, tasks] = fixture;
  batch.deal(tasks[0], SteadyTime::max());
  batch.deal(tasks[1], SteadyTime::max());
  batch.next(fixture.now());
  batch.lose_lease(tasks[1]);
  EXPECT_FALSE(batch.attempt().stop_requested());
  EXPECT_TRUE(batch.attempt().extend(1s));
  batch.lose_lease(tasks[0]);
  EXPECT_TRUE(batch.attempt().stop_requested());
  EXPECT_FALSE(batch.attempt().extend(1s));
}

TEST(WorkerBatch, AStopWithoutAnythingRunningDoesNotReachTheNextAttempt) {
  HandFixture fixture;
  fixture.batch.request_stop(SteadyTime::max());
  fixture.batch.deal(fixture.tasks[0], SteadyTime::max());
  fixture.batch.next(fixture.now());
  EXPECT_FALSE(fixture.batch.attempt().stop_requested());
}

TEST(WorkerBatch, WithoutATimeoutItNeverTimesOut) {
  const test::FakeClock clock;
  OneByOne batch(clock, Duration::zero());
  Task task;
  batch.deal(task, SteadyTime::max());
  batch.next(clock.steady_now());
  EXPECT_EQ(batch.view().times_out_at, SteadyTime::max());
}

TEST(SettleQueue, IsDueAtOnceWhenNothingElseComes) {
  SettleQueue queue;
  Task task;
  EXPECT_EQ(queue.due(kGranted, false), SteadyTime::max());
  task.finished_at = kGranted;
  queue.add(task);
  EXPECT_LE(queue.due(kGranted, false), kGranted);
  EXPECT_EQ(queue.due(kGranted, true), kGranted + kSettleLinger);
  EXPECT_EQ(queue.take(kGranted), std::vector<Task*>{&task});
  EXPECT_EQ(queue.size(), 0U);
}

TEST(SettleQueue, AFullBatchDoesNotLinger) {
  SettleQueue queue;
  std::vector<Task> tasks(kMaxSettleBatch + 5);
  for (Task& task : tasks) {
    queue.add(task);
  }
  EXPECT_LE(queue.due(kGranted, true), kGranted);
  EXPECT_EQ(queue.take(kGranted).size(), kMaxSettleBatch);
  EXPECT_EQ(queue.take(kGranted).size(), 5U);
}

TEST(SettleQueue, HurryMakesEverythingDue) {
  SettleQueue queue;
  Task task;
  queue.add_again(task, kGranted + 5s);
  EXPECT_EQ(queue.due(kGranted, false), kGranted + 5s);
  queue.hurry();
  EXPECT_LE(queue.due(kGranted, false), kGranted);
  EXPECT_EQ(queue.take(kGranted).size(), 1U);
}

TEST(SettleQueue, OldRetriesDoNotHoldUpFreshOnes) {
  SettleQueue queue;
  Task old;
  Task fresh;
  queue.add_again(old, kGranted + 1s);
  queue.add(fresh);
  EXPECT_EQ(queue.take(kGranted), std::vector<Task*>{&fresh});
}

}  // namespace
}  // namespace sluice::work
