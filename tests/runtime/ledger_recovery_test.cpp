#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "host/runtime/isolation_ward.hpp"
#include "host/stores/core/outcomes.hpp"
#include "tests/runtime/recovery_rig.hpp"

namespace sluice::runtime {
namespace {

using isolation::StateFolder;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kLease = std::chrono::minutes(10);

/// Stores with owners, as a recovery sees them.
class ToldOwners final : public queue::Owners {
 public:
  const std::string& incarnation() const override { return incarnation_; }
  Result<void> ended(const queue::EndedOwner& owner, Deadline /*deadline*/) override {
    if (failures > 0) {
      --failures;
      return Error(ErrorCode::unavailable, "the table is away");
    }
    const MutexLock lock(mutex_);
    told_.push_back(owner);
    return {};
  }
  std::vector<queue::EndedOwner> told() const {
    const MutexLock lock(mutex_);
    return told_;
  }

  int failures = 0;

 private:
  const std::string incarnation_ = "next/87654321";
  mutable Mutex mutex_;
  std::vector<queue::EndedOwner> told_ SLUICE_GUARDED_BY(mutex_);
};

class OrphanSettlementTest : public testing::Test {
 protected:
  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(10)); }

  /// Claims what is there, and dies of a signal with the first one running.
  void die(std::size_t messages, int signal) {
    std::vector<queue::NewMessage> sent(messages);
    for (std::size_t i = 0; i < messages; ++i) {
      sent[i].id = "m" + std::to_string(i);
    }
    for (const auto& result : desk_.send("orders", sent, deadline())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
    const auto claimed = desk_.claim(kOrders, messages, kLease, deadline());
    ASSERT_TRUE(claimed);
    ASSERT_THAT(*claimed, SizeIs(messages));
    isolation::status_of([&] {
      const auto ledger = isolation::open_ledger_in(folder_.path());
      isolation::install_crash_handler(&ledger->crash_record(), isolation::CrashNotice::none);
      const auto job = isolation::open_job(ledger, {isolation::ledger_job()});
      for (const queue::Delivery& delivery : *claimed) {
        const isolation::HeldSlot slot = job->hold(delivery);
        if (delivery.message.id == "m0") {
          job->started(slot, "m0");
        }
      }
      ::raise(signal);
    });
  }
  OrphanSettlement take() {
    auto orphan = isolation::OrphanLedger::take(folder_.ledger());
    EXPECT_TRUE(orphan && *orphan);
    auto steps = plan_recovery((*orphan)->contents(), {job_config()}, random_, clock_.wall_now());
    return {std::move(*orphan), std::move(steps)};
  }
  bool settle(OrphanSettlement& settlement) {
    return settlement.settle(queues_, owners_, clock_.steady_now(), deadline());
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  ToldOwners owners_;
  test::Desk desk_{queues_};
  StateFolder folder_;
};

TEST_F(OrphanSettlementTest, WhatWasHeldIsClaimableAtOnceWithItsAttemptGivenBack) {
  die(5, SIGABRT);
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  EXPECT_EQ(settlement.tally().counted, 1U);
  EXPECT_EQ(settlement.tally().released, 4U);
  const auto again = desk_.claim(kOrders, 10, kLease, deadline());
  ASSERT_TRUE(again);
  EXPECT_THAT(*again, SizeIs(4));
  for (const queue::Delivery& delivery : *again) {
    EXPECT_EQ(delivery.message.attempt, 1U);
    EXPECT_FALSE(delivery.suspect);
  }
  const auto bomb = desk_.get("orders", "m0", deadline());
  ASSERT_TRUE(bomb);
  EXPECT_THAT(bomb->failure.error, testing::HasSubstr("SIGABRT"));
  EXPECT_EQ(bomb->marks, queue::core::kSuspect);
}

TEST_F(OrphanSettlementTest, AKilledHostLeavesASuspect) {
  die(3, SIGKILL);
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  EXPECT_EQ(settlement.tally().suspects, 1U);
  EXPECT_EQ(settlement.tally().released, 2U);
  const auto suspect = desk_.get("orders", "m0", deadline());
  ASSERT_TRUE(suspect);
  EXPECT_EQ(suspect->marks, queue::core::kSuspect);
  EXPECT_EQ(suspect->message.attempt, 0U);
}

TEST_F(OrphanSettlementTest, OwnersAreToldOnceWhatItHeldIsSettled) {
  die(3, SIGKILL);
  OrphanSettlement settlement = take();
  queues_.fail_next(test::StoreCall::settle, 1, Error(ErrorCode::unavailable, "the store is away"));
  EXPECT_FALSE(settle(settlement));
  EXPECT_THAT(owners_.told(), IsEmpty()) << "nobody takes its shards before it is known what was at work";
  EXPECT_TRUE(settle(settlement));
  ASSERT_THAT(owners_.told(), SizeIs(1));
  EXPECT_EQ(owners_.told().front().incarnation, "host-a/12345678");
  EXPECT_EQ(owners_.told().front().queues, std::vector<std::string>{"orders"});
  EXPECT_TRUE(owners_.told().front().settled);
}

TEST_F(OrphanSettlementTest, OwnersThatCannotBeToldAreToldLaterAndNothingIsSettledTwice) {
  die(3, SIGKILL);
  OrphanSettlement settlement = take();
  owners_.failures = 2;
  EXPECT_FALSE(settle(settlement));
  EXPECT_EQ(settlement.trouble(), "the table is away");
  EXPECT_FALSE(settle(settlement));
  EXPECT_TRUE(settle(settlement));
  EXPECT_THAT(owners_.told(), SizeIs(1));
  EXPECT_EQ(settlement.tally().suspects + settlement.tally().released, 3U);
}

TEST_F(OrphanSettlementTest, AHostThatHeldNothingIsNoOwnerAnyMoreEither) {
  isolation::status_of([&] {
    const auto ledger = isolation::open_ledger_in(folder_.path());
    const auto job = isolation::open_job(ledger, {isolation::ledger_job()});
    ::raise(SIGKILL);
  });
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  ASSERT_THAT(owners_.told(), SizeIs(1));
  EXPECT_TRUE(owners_.told().front().settled);
}

TEST_F(OrphanSettlementTest, WhatALedgerDoesNotTellOfStaysInDoubt) {
  isolation::status_of([&] {
    const auto ledger = isolation::open_ledger_in(folder_.path());
    const auto job = isolation::open_job(ledger, {isolation::ledger_job()});
    job->started(job->hold(isolation::delivery(std::string(2000, 'x'))), "x");
    ::raise(SIGKILL);
  });
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  ASSERT_THAT(owners_.told(), SizeIs(1));
  EXPECT_FALSE(owners_.told().front().settled);
}

TEST_F(OrphanSettlementTest, WhatSomebodyElseHasTakenSinceIsLeftAlone) {
  die(3, SIGKILL);
  queues_.lose_receipts(kOrders);
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  EXPECT_EQ(settlement.tally().gone, 3U);
}

TEST_F(OrphanSettlementTest, AStoreThatIsAwayIsTriedAgainAndThenGivenUp) {
  die(3, SIGKILL);
  OrphanSettlement settlement = take();
  int tries = 0;
  do {
    queues_.fail_next(test::StoreCall::settle, 1, Error(ErrorCode::unavailable, "the store is away"));
    clock_.advance(settlement.due() - clock_.steady_now());
    ++tries;
    ASSERT_LT(tries, 100);
  } while (!settle(settlement));
  EXPECT_GT(tries, 3);
  EXPECT_FALSE(settlement.trouble().empty());
  ASSERT_TRUE(settlement.close(clock_.wall_now(), "next"));
  EXPECT_EQ(settlement.tally().unsettled, 3U);
  ASSERT_THAT(owners_.told(), SizeIs(1)) << "nobody waits for its leases all the same";
  EXPECT_FALSE(owners_.told().front().settled);
  EXPECT_THAT(folder_.ledgers().history(), SizeIs(1));
}

TEST_F(OrphanSettlementTest, AnEmptyLedgerLeavesNoHistory) {
  isolation::status_of([&] {
    const auto ledger = isolation::open_ledger_in(folder_.path());
    ::raise(SIGKILL);
  });
  OrphanSettlement settlement = take();
  EXPECT_TRUE(settle(settlement));
  ASSERT_TRUE(settlement.close(clock_.wall_now(), "next"));
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty());
  EXPECT_THAT(folder_.ledgers().history(), IsEmpty());
}

class LedgerRecoveryTest : public OrphanSettlementTest {
 protected:
  LedgerRecoveryTest() { std::filesystem::create_directories(folder_.path()); }

  RecoveryParts parts() {
    return {
        folder_.path(), {"next", "/etc/sluice/host.toml"}, queues_, owners_, machine_, random_, log_, events_, own_};
  }
  /// Waits for a fact that the recovery's thread brings about.
  template <typename Fact>
  bool comes_true(Fact fact) {
    const SteadyTime until = machine_.steady_now() + std::chrono::seconds(30);
    while (!fact() && machine_.steady_now() < until) {
      std::this_thread::yield();
    }
    return fact();
  }

  const SystemClock machine_;
  observe::Log log_{observe::LogLevel::off, observe::LogFormat::text};
  HostEvents events_;
  OwnLedger own_{folder_.path(), {"next", "/etc/sluice/host.toml"}, machine_, log_};  // not begun
};

TEST_F(LedgerRecoveryTest, SettlesWhatLiesThereWhenItStarts) {
  die(3, SIGKILL);
  LedgerRecovery recovery(parts());
  ASSERT_TRUE(recovery.start());
  EXPECT_TRUE(comes_true([&] { return folder_.ledgers().history().size() == 1; }));
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty());
  const auto ended = recovery.take_ended();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_THAT(ended[0].instance, testing::MatchesRegex("host-a:[0-9]+:12345678"))
      << "as its record on the boards has it";
  EXPECT_THAT(ended[0].why, testing::HasSubstr("nothing says why"));
  EXPECT_THAT(recovery.take_ended(), IsEmpty()) << "told once";
}

TEST_F(LedgerRecoveryTest, KeepsNoMoreHistoryOfHostsThatEndedUncleanAndHeldNothing) {
  for (int i = 100; i < 205; ++i) {
    std::ofstream(folder_.path() + "/1000000000-" + std::to_string(i) + ".done") << "old";
  }
  isolation::status_of([&] {
    isolation::open_ledger_in(folder_.path())->note_unclean_end(machine_.wall_now(), "a handler had not returned");
    ::_exit(75);
  });
  LedgerRecovery recovery(parts());
  ASSERT_TRUE(recovery.start());
  EXPECT_TRUE(comes_true([&] { return folder_.ledgers().history().size() == 100; }));
}

TEST_F(LedgerRecoveryTest, SettlesANeighbourThatDiesLaterAsSoonAsTheKernelSaysSo) {
  LedgerRecovery recovery(parts());
  ASSERT_TRUE(recovery.start());
  const SteadyTime begin = machine_.steady_now();
  die(3, SIGKILL);
  EXPECT_TRUE(comes_true([&] { return folder_.ledgers().history().size() == 1; }));
  EXPECT_LT(machine_.steady_now() - begin, std::chrono::seconds(8));  // It looks by itself every ten.
}

TEST_F(LedgerRecoveryTest, ALedgerOfAnotherHostFileIsNotItsAffair) {
  die(3, SIGKILL);
  const std::string theirs = folder_.ledger();
  RecoveryParts other = parts();
  other.owner.config = "/somewhere/else.toml";
  {
    LedgerRecovery recovery(other);
    ASSERT_TRUE(recovery.start());
    // It has looked at everything once a second, empty one of its own is gone.
    isolation::status_of([&] {
      const SystemClock clock;
      const auto mine = isolation::HostLedger::create(folder_.path(), other.owner, clock);
      ::raise(SIGKILL);
    });
    EXPECT_TRUE(comes_true([&] { return folder_.ledgers().open_ledgers().size() == 1; }));
  }
  EXPECT_EQ(folder_.ledger(), theirs);
}

TEST_F(LedgerRecoveryTest, TriesThisHostsOwnAgainWhereThereIsNone) {
  const std::string elsewhere = folder_.path() + "/own";
  std::ofstream(elsewhere) << "in the way";
  OwnLedger own(elsewhere, {"next", "/etc/sluice/host.toml"}, clock_, log_);
  own.begin();
  ASSERT_FALSE(own.trouble().empty());
  std::filesystem::remove(elsewhere);
  clock_.advance(kLedgerRetry);
  LedgerRecovery recovery(
      {folder_.path(), {"next", "/etc/sluice/host.toml"}, queues_, owners_, clock_, random_, log_, events_, own});
  ASSERT_TRUE(recovery.start());
  EXPECT_TRUE(comes_true([&] { return own.trouble().empty(); }));
}

TEST_F(LedgerRecoveryTest, AnUnreadableLedgerIsSetAside) {
  std::ofstream(folder_.path() + "/x.ledger") << "not one of ours";
  LedgerRecovery recovery(parts());
  ASSERT_TRUE(recovery.start());
  EXPECT_TRUE(comes_true([&] { return folder_.ledgers().open_ledgers().empty(); }));
  EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/x.ledger.unreadable"));
}

/// Keeps the warnings of a log, each as the values of its fields.
class Warnings final : public observe::LogTap {
 public:
  observe::LogLevel level() const override { return observe::LogLevel::warn; }
  void take(const observe::LogLine& line) override {
    std::string text;
    for (const observe::LogField& field : line.fields) {
      text.append(field.value()).append(" ");
    }
    const MutexLock lock(mutex_);
    all_.push_back(std::move(text));
  }
  /// Those with that text in them.
  std::vector<std::string> with(const std::string& part) {
    const MutexLock lock(mutex_);
    std::vector<std::string> some;
    std::copy_if(all_.begin(), all_.end(), std::back_inserter(some),
                 [&part](const std::string& text) { return text.find(part) != std::string::npos; });
    return some;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> all_ SLUICE_GUARDED_BY(mutex_);
};

// In a folder that is read-only it is met with each look, every ten seconds.
TEST_F(LedgerRecoveryTest, AnUnreadableLedgerThatCannotBeSetAsideIsToldOnceUntilItChanges) {
  const std::string file = folder_.path() + "/a.ledger";
  std::filesystem::create_directories(file + ".unreadable/in the way");
  std::ofstream(file) << "not one of ours";
  Warnings warnings;
  log_.tap(&warnings);
  LedgerRecovery recovery(parts());
  ASSERT_TRUE(recovery.start());
  // What comes behind it in the folder is looked at after it.
  const auto look = [&](const std::string& other) {
    std::ofstream(folder_.path() + "/" + other + ".ledger") << "nor this";
    EXPECT_TRUE(
        comes_true([&] { return std::filesystem::exists(folder_.path() + "/" + other + ".ledger.unreadable"); }));
  };
  look("b");
  look("c");
  EXPECT_THAT(warnings.with("/a.ledger"), SizeIs(1));
  std::filesystem::remove_all(file + ".unreadable");
  look("d");
  EXPECT_THAT(warnings.with("/a.ledger"), SizeIs(2)) << "it could be set aside now";
  EXPECT_TRUE(std::filesystem::exists(file + ".unreadable"));
  recovery.stop();
  log_.tap(nullptr);
}

}  // namespace
}  // namespace sluice::runtime
