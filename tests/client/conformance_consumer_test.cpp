// Numbers 52 to 61 of DynamoMQ's own tests: its consumer's part is played by the engine of the host. A comment marks
// where ours deviates on purpose; docs/start/conformance.md has the list and the reasons.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "host/work/job.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using queue::Half;
using test::StoreCall;

constexpr int kMessages = 10;

Script always(sluice_status status) {
  return {.handle = [status](const std::string&, const sluice_context&) { return status; }, .create = {}};
}

/// Attempts, and a back-off that no test sits out.
std::function<void(JobSpec&)> attempts(std::uint32_t most) {
  return [most](JobSpec& spec) {
    spec.config.retry.max_attempts = most;
    spec.config.retry.base = 1h;
    spec.config.retry.max = 1h;
  };
}

void await_claim_failures(JobRig& rig, std::uint64_t count) {
  ASSERT_TRUE(rig.await_that([&] { return rig.metrics.count("claim_failed") >= count; }));
}

TEST(ConformanceConsumer, N52_ClosedWhileClaimsFailEndsInGoodOrder) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.set_fault_source([](StoreCall call, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    return call == StoreCall::claim ? std::optional(test::StoreFault{Error(ErrorCode::unavailable, "down")})
                                    : std::nullopt;
  });
  ASSERT_TRUE(rig.job->start());
  await_claim_failures(rig, 1);
  EXPECT_TRUE(rig.job->drain(rig.in(20s)).clean());
}

// Deviates: no error of the store ends a job that runs. Theirs meant only some to, and by a slip all of them do.
TEST(ConformanceConsumer, N53_ALastingErrorIsOutlived) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.fail_next(StoreCall::claim, 1, Error(ErrorCode::denied, "no right to do this"));
  rig.sim.fail_next(StoreCall::claim, 1, Error(ErrorCode::internal, "an answer nobody can read"));
  rig.send({"A-1"});
  ASSERT_TRUE(rig.job->start());
  EXPECT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.metrics.count("claim_failed"), 2U);
}

TEST(ConformanceConsumer, N54_TenMessagesAreProcessedAndDeleted) {
  JobRig rig(always(SLUICE_DONE));
  rig.send_many(kMessages);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == kMessages; }));
  EXPECT_EQ(rig.stats().total(), 0U);
  EXPECT_EQ(rig.stats(Half::dlq).total(), 0U);
}

// Deviates: there is no "without end" (their 0); the most attempts that can be asked for stand for it.
TEST(ConformanceConsumer, N55_WithoutAMaximumFailedMessagesAreKept) {
  JobRig rig(always(SLUICE_RETRY), attempts(1'000'000));
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send_many(kMessages);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.retried == kMessages; }));
  EXPECT_EQ(rig.stats().total(), static_cast<std::uint64_t>(kMessages));
  EXPECT_EQ(rig.stats(Half::dlq).total(), 0U);
}

TEST(ConformanceConsumer, N56_BelowTheMaximumFailedMessagesAreKept) {
  JobRig rig(always(SLUICE_RETRY), attempts(2));
  rig.send_many(kMessages);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.retried == kMessages; }));
  EXPECT_EQ(rig.stats().total(), static_cast<std::uint64_t>(kMessages));
}

TEST(ConformanceConsumer, N57_AtTheMaximumFailedMessagesAreDeadLetters) {
  JobRig rig(always(SLUICE_RETRY), attempts(1));
  rig.send_many(kMessages);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.rejected == kMessages; }));
  EXPECT_EQ(rig.stats().total(), 0U);
  EXPECT_EQ(rig.stats(Half::dlq).total(), static_cast<std::uint64_t>(kMessages));
}

/// A job on the DLQ, where ten messages lie.
std::unique_ptr<JobRig> failing_on_dead_letters(config::DeadLetterPolicy policy) {
  auto rig = std::make_unique<JobRig>(always(SLUICE_RETRY), [policy](JobSpec& spec) {
    attempts(1)(spec);
    spec.config.source = config::Source::dlq;
    spec.config.dead_letter = policy;
  });
  rig->send_many(kMessages);
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_TRUE(rig->desk.dead_letter("orders", "m-" + std::to_string(i), {}, Deadline::never()));
  }
  return rig;
}

TEST(ConformanceConsumer, N58_AtTheMaximumInTheDlqTheyAreDeletedWhenTold) {
  const auto rig = failing_on_dead_letters(config::DeadLetterPolicy::discard);
  ASSERT_TRUE(rig->job) << rig->error;
  rig->job->start();
  ASSERT_TRUE(rig->await_that([&] { return rig->stats(Half::dlq).total() == 0; }));
  EXPECT_EQ(rig->stats().total(), 0U);
}

// Deviates: unless told, nothing is deleted that nobody has worked off. Theirs drops it silently.
TEST(ConformanceConsumer, N58_AtTheMaximumInTheDlqTheyAreKeptOtherwise) {
  const auto rig = failing_on_dead_letters(config::DeadLetterPolicy::keep);
  ASSERT_TRUE(rig->job) << rig->error;
  rig->job->start();
  ASSERT_TRUE(rig->await([](const auto& ledger) { return ledger.ended() >= kMessages; }));
  EXPECT_TRUE(rig->job->drain(rig->in(20s)).clean());
  EXPECT_EQ(rig->stats(Half::dlq).total(), static_cast<std::uint64_t>(kMessages));
}

TEST(ConformanceConsumer, N59_PassingErrorsDoNotEndIt) {
  JobRig rig(always(SLUICE_DONE));
  for (const ErrorCode code : {ErrorCode::throttled, ErrorCode::unavailable, ErrorCode::timeout, ErrorCode::conflict}) {
    rig.sim.fail_next(StoreCall::claim, 1, Error(code, "again later"));
  }
  rig.send({"A-1"});
  ASSERT_TRUE(rig.job->start());
  EXPECT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.metrics.count("claim_failed"), 4U);
}

TEST(ConformanceConsumer, N60_ShutdownAfterAHundredMessages) {
  JobRig rig(always(SLUICE_DONE));
  rig.send_many(100);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 100; }));
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.done, 100U);
}

// Deviates: stopping with messages in the queue stops. Theirs goes on until the queue is empty, and this one never is:
// each message that is done has sent its successor.
TEST(ConformanceConsumer, N60_ShutdownWhileMessagesKeepComing) {
  std::atomic<int> successors = 0;
  std::function<void()> send_another;
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context&) {
                    send_another();
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}});
  send_another = [&] { rig.send({"s-" + std::to_string(++successors)}); };
  rig.send_many(100);
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done >= 200; }));
  const JobActivity report = rig.job->drain(rig.in(20s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(rig.stats().total(), 100U);
  EXPECT_EQ(rig.stats().in_flight, 0U);
}

TEST(ConformanceConsumer, N61_AHandlerThatTakesLongerThanTheShutdownMay) {
  Gate gate;
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context&) {
                    gate.pass();
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}});
  rig.send({"A-1"});
  ASSERT_TRUE(rig.job->start());
  ASSERT_TRUE(gate.await_arrivals(1));
  const JobActivity report = rig.job->drain(rig.in(50ms));
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.handlers_running(), 1U);
  EXPECT_EQ(rig.stats().ready, 1U) << "and what it was at is given back";
  gate.open();
  EXPECT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 0; }));
}

}  // namespace
}  // namespace sluice::work
