// One job with its threads: what becomes of messages.
#include "host/work/job.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>

#include "tests/support/forwarding_source.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;
using queue::Half;

Script always(sluice_status status) {
  return {.handle = [status](const std::string&, const sluice_context&) { return status; }, .create = {}};
}

TEST(Job, WorksOffWhatIsThereAndWhatComes) {
  JobRig rig(always(SLUICE_DONE));
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send_many(3000);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 3000; }));
  rig.send({"late"});
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 3001; }));
  EXPECT_EQ(rig.stats().total(), 0U);
  const JobActivity report = rig.job->drain(rig.in(5s));
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.ledger.claimed, 3001U);
  EXPECT_EQ(rig.metrics.count("claimed"), 3001U);
  EXPECT_EQ(rig.metrics.count("done"), 3001U);
  EXPECT_EQ(rig.metrics.count("handled"), 3001U);
  EXPECT_EQ(rig.record().started.size(), 3001U);
}

/// As a source that may hand out by a lease of its own.
class ForgetfulSource final : public test::ForwardingSource {
 public:
  ForgetfulSource(std::unique_ptr<queue::Source> source, const std::atomic<bool>& holds)
      : ForwardingSource(std::move(source)), holds_(holds) {}

  bool holds(std::uint32_t /*part*/) override { return holds_; }

 private:
  const std::atomic<bool>& holds_;
};

TEST(Job, StartsNothingThatItsSourceHasLostMeanwhile) {
  std::atomic<bool> holds{false};
  JobRig rig(always(SLUICE_DONE), [&holds](std::unique_ptr<queue::Source> simulated) {
    return std::make_unique<ForgetfulSource>(std::move(simulated), holds);
  });
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send_many(20);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.released >= 20; }));
  EXPECT_TRUE(rig.record().started.empty());
  holds = true;
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 20; }));
  EXPECT_EQ(rig.stats().total(), 0U);
}

TEST(Job, EveryOutcomeEndsInItsColumn) {
  const std::map<std::string, sluice_status> outcomes{
      {"done", SLUICE_DONE},       {"retry", SLUICE_RETRY},     {"snooze", SLUICE_SNOOZE}, {"reject", SLUICE_REJECT},
      {"discard", SLUICE_DISCARD}, {"release", SLUICE_RELEASE}, {"fault", SLUICE_FAULT},   {"nonsense", 4711}};
  std::atomic<int> seen{0};
  Mutex mutex;
  std::set<std::string> once;
  JobRig rig({.handle =
                  [&](const std::string& id, const sluice_context&) {
                    const MutexLock lock(mutex);
                    if (!once.insert(id).second) {
                      return static_cast<sluice_status>(SLUICE_DONE);
                    }
                    ++seen;
                    return outcomes.at(id);
                  },
              .create = {}});
  for (const auto& [id, status] : outcomes) {
    rig.send({id});
  }
  rig.job->start();
  // All but the rejected and the discarded one come back once and are done then.
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 6; }));
  const LedgerSnapshot ledger = rig.job->ledger();
  EXPECT_EQ(ledger.retried, 3U);
  EXPECT_EQ(ledger.snoozed, 1U);
  EXPECT_EQ(ledger.released, 1U);
  EXPECT_EQ(ledger.rejected, 1U);
  EXPECT_EQ(ledger.discarded, 1U);
  EXPECT_EQ(ledger.claimed, ledger.ended());
  EXPECT_EQ(rig.stats().total(), 0U);
  EXPECT_EQ(rig.stats(Half::dlq).total(), 1U);
  EXPECT_EQ(rig.metrics.count("fault"), 2U) << "an unknown status is a fault";
}

TEST(Job, AttemptsAreUsedUpThenTheMessageIsDeadWithItsReason) {
  JobRig rig({.handle = [](const std::string&, const sluice_context&) -> sluice_status {
                throw std::runtime_error("the till is empty");
              },
              .create = {}});
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.rejected == 1; }));
  EXPECT_EQ(rig.record().started["A-1"], 3);
  EXPECT_EQ(rig.job->ledger().retried, 2U);
  const auto dead = rig.desk.get("orders", "A-1", Deadline::never());
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->half, Half::dlq);
  EXPECT_NE(dead->failure.error.find("the till is empty"), std::string::npos);
  EXPECT_EQ(dead->failure.handler, "scripted");
  EXPECT_EQ(dead->failure.host, "worker-a");
  EXPECT_EQ(dead->failure.attempts, 3U);
  EXPECT_GT(dead->failure.failed_at.time_since_epoch().count(), 0);
}

TEST(Job, APoisonousMessageNeverReachesItsHandlerAgain) {
  JobRig rig(always(SLUICE_DONE));
  rig.send({"poison"});
  // The first process that claimed it and died may have had it waiting only; three others ran it as a suspect.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(rig.await_that([&] { return rig.desk.claim({"orders"}, 1, 1ns, Deadline::never())->size() == 1; }));
  }
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.rejected == 1; }));
  EXPECT_TRUE(rig.record().started.empty());
  ASSERT_TRUE(rig.await_that([&] { return rig.metrics.count("exhausted") == 1; })) << "told after the ledger";
  const auto dead = rig.desk.get("orders", "poison", Deadline::never());
  EXPECT_EQ(dead->half, Half::dlq);
  EXPECT_FALSE(dead->failure.error.empty());
}

TEST(Job, WorksOnTheDeadLetterQueueWhenTold) {
  JobRig rig(always(SLUICE_DONE), [](JobSpec& spec) { spec.config.source = config::Source::dlq; });
  rig.send({"A-1", "A-2"});
  ASSERT_TRUE(rig.desk.dead_letter("orders", "A-1", {}, Deadline::never()));
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.stats(Half::dlq).total(), 0U);
  EXPECT_EQ(rig.stats().ready, 1U);
}

TEST(Job, ASerialHandlerHasAnInstanceForEachWorker) {
  Gate gate;
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context&) {
                    gate.pass();
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {},
              .concurrent = false});
  rig.send_many(20);
  rig.job->start();
  EXPECT_TRUE(gate.await_arrivals(4)) << "all four workers are in their handler at once";
  EXPECT_EQ(rig.job->activity().running.size(), 4U);
  gate.open();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 20; }));
  EXPECT_EQ(rig.record().instances, 4);
  EXPECT_EQ(rig.record().most_in_one_instance, 1);
  rig.job.reset();
  EXPECT_EQ(rig.record().destroyed, 4);
}

TEST(Job, AConcurrentHandlerHasOneInstance) {
  Gate gate;
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context&) {
                    gate.pass();
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}});
  rig.send_many(8);
  rig.job->start();
  EXPECT_TRUE(gate.await_arrivals(4));
  gate.open();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 8; }));
  EXPECT_EQ(rig.record().instances, 1);
  EXPECT_EQ(rig.record().most_in_one_instance, 4);
}

TEST(Job, AnInstanceThatCannotBeMadeIsAnErrorAndLeavesNothingBehind) {
  JobRig rig(
      {.handle = {}, .create = [](const std::string&, int instance) { return instance < 2; }, .concurrent = false});
  EXPECT_FALSE(rig.job);
  EXPECT_NE(rig.error.find("no instance for you"), std::string::npos) << rig.error;
  EXPECT_EQ(rig.record().instances, 2);
  EXPECT_EQ(rig.record().destroyed, 2);
}

TEST(Job, AThrowingCreateIsAnError) {
  JobRig rig({.handle = {}, .create = [](const std::string&, int) -> bool { throw std::runtime_error("no disk"); }});
  EXPECT_FALSE(rig.job);
  EXPECT_NE(rig.error.find("no disk"), std::string::npos) << rig.error;
}

TEST(Job, BecomesQuiescentAndIsNotWhileItHoldsSomething) {
  Gate gate;
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context&) {
                    gate.pass();
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}});
  EXPECT_FALSE(rig.job->activity().quiescent) << "it has not looked yet";
  rig.send({"later"}, 1h);
  rig.job->start();
  EXPECT_TRUE(rig.await_that([&] { return rig.job->activity().quiescent; })) << "what is delayed does not count";
  rig.send({"A-1"});
  ASSERT_TRUE(gate.await_arrivals(1));
  EXPECT_FALSE(rig.job->activity().quiescent);
  gate.open();
  EXPECT_TRUE(rig.await_that([&] { return rig.job->activity().quiescent; }));
  EXPECT_EQ(rig.job->ledger().done, 1U);
}

TEST(Job, ClaimsThatFailAreTriedAgain) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.fail_next(test::StoreCall::claim, 2, Error(ErrorCode::unavailable, "down"));
  rig.send({"A-1"});
  rig.job->start();
  EXPECT_FALSE(rig.job->activity().quiescent);
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.metrics.count("claim_failed"), 2U);
}

TEST(Job, SettlementsThatFailAreWrittenLater) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.fail_next(test::StoreCall::settle, 3, Error(ErrorCode::throttled, "slow down"));
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.metrics.count("settle_failed"), 3U);
  EXPECT_EQ(rig.record().started["A-1"], 1);
}

TEST(Job, ASettlementThatTheStoreRefusesHoldsUpNoOther) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.fail_message(test::StoreCall::settle, "bad", 1000, Error(ErrorCode::invalid, "too large"));
  rig.send({"bad", "good"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 1; }));
  EXPECT_EQ(rig.job->ledger().lost, 0U);
  const JobActivity report = rig.job->drain(rig.in(1s));
  EXPECT_EQ(report.ledger.stranded, 1U);
  EXPECT_FALSE(report.clean());
}

TEST(Job, AnUnknownOutcomeIsRepeatedAndNeverCountedTwice) {
  JobRig rig(always(SLUICE_DONE));
  rig.sim.apply_then_fail_next(test::StoreCall::settle, 1);
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.claimed == 1 && ledger.in_flight() == 0; }));
  EXPECT_GE(rig.sim.count(test::StoreCall::settle), 2U);
  EXPECT_EQ(rig.stats().total(), 0U);
  EXPECT_EQ(rig.record().started["A-1"], 1);
}

TEST(Job, AReceiptThatIsNoLongerOursIsLostAndTheHandlerHearsOfIt) {
  Gate gate;
  std::atomic<bool> told{false};
  JobRig rig({.handle =
                  [&](const std::string&, const sluice_context& context) {
                    gate.pass();
                    told = context.wait_for_stop(&context, 10'000'000'000) != 0;
                    return static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}},
             [](JobSpec& spec) { spec.leases.front().visibility = 400ms; });
  rig.send({"A-1"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  EXPECT_EQ(rig.sim.lose_receipts({"orders"}, 1h), 1U);
  gate.open();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.lost == 1; }));
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().running.size() == 0; }));
  EXPECT_TRUE(told);
  const JobActivity report = rig.job->drain(rig.in(5s));
  EXPECT_EQ(report.ledger.done, 0U);
  EXPECT_EQ(report.ledger.lost, 1U);
  EXPECT_EQ(rig.stats().in_flight, 1U) << "its new owner's claim stands";
  EXPECT_EQ(rig.metrics.count("lost"), 1U);
}

TEST(Job, WhereClaimsLookUpOwnIdsTheirKeysAreNotAskedFor) {
  JobRig rig(always(SLUICE_DONE), [](JobSpec& spec) { spec.config.idempotency.emplace(); });
  ASSERT_TRUE(rig.job) << rig.error;
  rig.send_many(300);
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 300; }));
  rig.send_many(300);  // under the same ids
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.discarded == 300; }));
  EXPECT_EQ(rig.metrics.count("handled"), 300U);
  EXPECT_EQ(rig.keys_asked, 0);
}

TEST(Job, TellsItsHandlerOfTheTimeout) {
  JobRig rig({.handle =
                  [](const std::string&, const sluice_context& context) {
                    return context.wait_for_stop(&context, 20'000'000'000) != 0
                               ? static_cast<sluice_status>(SLUICE_DISCARD)
                               : static_cast<sluice_status>(SLUICE_DONE);
                  },
              .create = {}},
             [](JobSpec& spec) { spec.config.timeout = 20ms; });
  rig.send({"A-1"});
  rig.job->start();
  EXPECT_TRUE(rig.await([](const auto& ledger) { return ledger.discarded == 1; }));
}

}  // namespace
}  // namespace sluice::work
