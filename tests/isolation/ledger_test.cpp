#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "host/isolation/crash_handler.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/state_folder.hpp"
#include "tests/isolation/ledger_rig.hpp"
#include "tests/isolation/sanitized.hpp"

namespace sluice::isolation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> ids(const LedgerContents& contents) {
  std::vector<std::string> found;
  for (const HeldMessage& held : contents.held) {
    found.push_back(held.receipt.id);
  }
  return found;
}

class LedgerTest : public testing::Test {
 protected:
  /// A ledger as a host leaves it that is killed after `body`.
  void leave_ledger(const std::function<void(JobLedger&)>& body) {
    const int status = status_of([&] {
      const auto ledger = open_ledger_in(folder_.path());
      const auto job = open_job(ledger, {ledger_job()});
      body(*job);
      ::raise(SIGKILL);
    });
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  LedgerContents read() {
    auto contents = read_ledger(folder_.ledger());
    EXPECT_TRUE(contents) << contents.error().message();
    return contents ? *contents : LedgerContents{};
  }

  StateFolder folder_;
};

TEST_F(LedgerTest, KeepsWhatAKilledProcessHeld) {
  leave_ledger([](JobLedger& job) {
    job.hold(delivery("held", 3, 2));
    job.started(job.hold(delivery("running")), "running");
    const HeldSlot finished = job.hold(delivery("finished"));
    job.started(finished, "finished");
    job.ended(finished, true);
    const HeldSlot failed = job.hold(delivery("failed"));
    job.started(failed, "failed");
    job.ended(failed, false);
    job.drop(job.hold(delivery("settled")));
  });
  const LedgerContents contents = read();
  EXPECT_THAT(ids(contents), ElementsAre("held", "running", "finished", "failed"));
  EXPECT_EQ(contents.held[0].receipt, (queue::Receipt{"held", 3, 21}));
  EXPECT_EQ(contents.held[0].attempt, 2U);
  EXPECT_EQ(contents.held[0].job, "orders");
  EXPECT_EQ(contents.held[0].address, (queue::QueueAddress{"orders", queue::Half::standard}));
  EXPECT_FALSE(contents.held[0].running);
  EXPECT_TRUE(contents.held[1].running);
  EXPECT_FALSE(contents.held[2].running);
  EXPECT_FALSE(contents.held[1].finished);
  EXPECT_TRUE(contents.held[2].finished);
  EXPECT_FALSE(contents.held[3].finished);
  EXPECT_FALSE(contents.crash);
  EXPECT_EQ(contents.host, "host-a");
  EXPECT_EQ(contents.config, "/etc/sluice/host.toml");
}

TEST_F(LedgerTest, TellsAHostThatEndedItselfFromOneThatDied) {
  const WallTime ended{std::chrono::seconds(1'795'176'000)};
  status_of([&] {
    const auto ledger = open_ledger_in(folder_.path());
    ledger->note_unclean_end(ended, "job mails: message \"a\" was taken from its handler");
    std::_Exit(75);
  });
  const LedgerContents contents = read();
  ASSERT_TRUE(contents.unclean_end);
  EXPECT_EQ(contents.unclean_end->time, ended);
  EXPECT_EQ(contents.cause(), "drained, but not clean: job mails: message \"a\" was taken from its handler");
  auto orphan = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(orphan && *orphan);
  ASSERT_TRUE((*orphan)->archive({}));
  EXPECT_TRUE(read_ledger(folder_.ledgers().history().at(0))->unclean_end) << "history keeps it";
}

TEST_F(LedgerTest, KeepsWhatWasBeingCommitted) {
  leave_ledger([](JobLedger& job) {
    const auto finished = [&job](const std::string& id, Committing how) {
      const HeldSlot slot = job.hold(delivery(id));
      job.started(slot, id);
      job.ended(slot, false);
      job.committing(slot, how);
      return slot;
    };
    finished("together", Committing::together);
    finished("alone", Committing::alone);
    job.committing(finished("answered", Committing::alone), Committing::no);
    job.drop(finished("settled", Committing::together));
    job.committing(0, Committing::alone);
  });
  const LedgerContents contents = read();
  EXPECT_THAT(ids(contents), ElementsAre("together", "alone", "answered"));
  EXPECT_EQ(contents.held.at(0).committing, Committing::together);
  EXPECT_EQ(contents.held.at(1).committing, Committing::alone);
  EXPECT_EQ(contents.held.at(2).committing, Committing::no);
  EXPECT_FALSE(contents.held[1].running);
  // History keeps them.
  auto orphan = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(orphan && *orphan);
  ASSERT_TRUE((*orphan)->archive({}));
  const auto history = read_ledger(folder_.ledgers().history().at(0));
  ASSERT_TRUE(history);
  EXPECT_THAT(ids(*history), ElementsAre("together", "alone", "answered"));
}

TEST_F(LedgerTest, TellsAsWhomItOwnedWhatAndThatItTellsAll) {
  leave_ledger([](JobLedger& job) { job.hold(delivery("held")); });
  const LedgerContents contents = read();
  EXPECT_EQ(contents.incarnation, "host-a/12345678");
  EXPECT_THAT(contents.queues, ElementsAre("orders"));
  EXPECT_TRUE(contents.complete);
}

TEST_F(LedgerTest, OnlyTheQueuesOfJobsThatWereThereInTheEndAreItsOwn) {
  const auto ledger = open_ledger_in(folder_.path());
  open_job(ledger, {ledger_job("gone", "given up")});
  const auto first = open_job(ledger, {ledger_job("first", "b")});
  const auto second = open_job(ledger, {ledger_job("second", "a")});
  const auto third = open_job(ledger, {ledger_job("third", "b")});
  EXPECT_THAT(read().queues, ElementsAre("a", "b"));
}

TEST_F(LedgerTest, RenewedReceiptsAreTheOnesThatAreKept) {
  leave_ledger([](JobLedger& job) { job.renew(job.hold(delivery("a", 1)), {"a", 2, 99}); });
  EXPECT_EQ(read().held.at(0).receipt, (queue::Receipt{"a", 2, 99}));
}

TEST_F(LedgerTest, GrowsBeyondWhatItBeganWith) {
  constexpr int kMany = 5000;
  leave_ledger([](JobLedger& job) {
    for (int i = 0; i < kMany; ++i) {
      job.hold(delivery("m" + std::to_string(i)));
    }
  });
  EXPECT_EQ(read().held.size(), static_cast<std::size_t>(kMany));
}

TEST_F(LedgerTest, PlacesAreUsedAgain) {
  const auto ledger = open_ledger_in(folder_.path());
  const auto job = open_job(ledger, {ledger_job()});
  for (int i = 0; i < 10'000; ++i) {
    job->drop(job->hold(delivery("a")));
  }
  EXPECT_EQ(std::filesystem::file_size(folder_.ledger()), format::file_size(format::kSlotsAtFirst));
}

TEST_F(LedgerTest, AnIdThatDoesNotFitIsNotHeldAndDoesNoHarm) {
  const auto ledger = open_ledger_in(folder_.path());
  const auto job = open_job(ledger, {ledger_job()});
  const HeldSlot slot = job->hold(delivery(std::string(format::kIdLimit + 1, 'x')));
  EXPECT_EQ(slot, 0U);
  job->renew(slot, {});
  job->started(slot, "x");
  job->ended(slot, false);
  EXPECT_THAT(ids(read()), IsEmpty());
  EXPECT_FALSE(read().complete) << "whoever reads it knows that there was more";
  job->drop(slot);
  EXPECT_TRUE(read().complete) << "it is settled";
}

TEST_F(LedgerTest, TheReturnOfALostHandlerTouchesNobodyElsesPlace) {
  leave_ledger([](JobLedger& job) {
    const HeldSlot stuck = job.hold(delivery("stuck"));
    job.started(stuck, "stuck");
    job.drop(stuck);
    for (int i = 0; i < 200; ++i) {
      job.started(job.hold(delivery("m" + std::to_string(i))), "m");
    }
    job.ended(stuck, false);
  });
  const LedgerContents contents = read();
  EXPECT_EQ(contents.held.size(), 200U);
  for (const HeldMessage& held : contents.held) {
    EXPECT_TRUE(held.running) << held.receipt.id;
  }
}

TEST_F(LedgerTest, WhatTheHostHasSettledItselfIsLeftToNobody) {
  leave_ledger([](JobLedger& job) {
    const HeldSlot back = job.hold(delivery("back"));
    job.started(back, "back");
    job.given_back(back);
    job.ended(back, false);
    job.drop(back);
    const HeldSlot stuck = job.hold(delivery("stuck"));
    job.started(stuck, "stuck");
    job.given_back(stuck);
    job.hold(delivery("held"));
  });
  EXPECT_THAT(ids(read()), ElementsAre("held"));
  EXPECT_EQ(read().given_back, 1U);
  auto orphan = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(orphan && *orphan);
  ASSERT_TRUE((*orphan)->archive({}));
  EXPECT_EQ(read_ledger(folder_.ledgers().history().at(0))->given_back, 1U) << "history tells it too";
}

TEST_F(LedgerTest, JobsAreToldApartAndTheirPlacesComeBack) {
  const auto ledger = open_ledger_in(folder_.path());
  {
    const auto gone = open_job(ledger, {ledger_job("gone")});
    gone->hold(delivery("forgotten"));
  }
  const auto first = open_job(ledger, {ledger_job("first", "a")});
  const auto second = open_job(ledger, {{{"second", "p.so", "h"}, {"b", queue::Half::dlq}}});
  first->hold(delivery("1"));
  second->hold(delivery("2"));
  const LedgerContents contents = read();
  ASSERT_THAT(contents.held, testing::SizeIs(2));
  for (const HeldMessage& held : contents.held) {
    EXPECT_EQ(held.job, held.receipt.id == "1" ? "first" : "second");
    EXPECT_EQ(held.address.half, held.receipt.id == "1" ? queue::Half::standard : queue::Half::dlq);
  }
}

TEST_F(LedgerTest, MoreJobsThanThereIsRoomForDoWithout) {
  const auto ledger = open_ledger_in(folder_.path());
  std::vector<std::shared_ptr<JobLedger>> jobs;
  for (std::size_t i = 0; i < format::kJobs; ++i) {
    jobs.push_back(open_job(ledger, {ledger_job()}));
    ASSERT_TRUE(jobs.back());
  }
  {
    const auto one_more = open_job(ledger, {ledger_job()});
    EXPECT_TRUE(read().complete) << "it holds nothing yet";
    EXPECT_EQ(one_more->hold(delivery("a")), 0U);
    one_more->hold(delivery("b"));
    one_more->drop(0);
    EXPECT_FALSE(read().complete);
  }
  EXPECT_TRUE(read().complete) << "what it held went with it";
}

TEST_F(LedgerTest, ACleanEndLeavesNothingBehind) {
  {
    const auto ledger = open_ledger_in(folder_.path());
    const auto job = open_job(ledger, {ledger_job()});
    job->drop(job->hold(delivery("a")));
  }
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty());
}

TEST_F(LedgerTest, WhatAHostThatDiedWhileItMadeItsLedgerHasLeftIsRemoved) {
  std::filesystem::create_directories(folder_.path());
  const std::string dead = folder_.path() + "/1-1.ledger.new";
  const std::string under_way = folder_.path() + "/2-2.ledger.new";
  std::ofstream(dead) << "half";
  std::ofstream(under_way) << "half";
  std::filesystem::last_write_time(dead, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(open_ledger_in(folder_.path()));
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(under_way));
}

TEST_F(LedgerTest, OnlyItsOwnerMayReadIt) {
  const auto ledger = open_ledger_in(folder_.path());
  struct stat status {};
  ASSERT_EQ(::stat(folder_.ledger().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(folder_.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(LedgerTest, AFolderThatCannotBeMadeIsAnErrorInOneLine) {
  std::ofstream(folder_.path()) << "a file";
  const SystemClock clock;
  const auto ledger = HostLedger::create(folder_.path() + "/deeper", {"h", ""}, clock);
  ASSERT_FALSE(ledger);
  EXPECT_EQ(ledger.error().message(), "the folder " + folder_.path() +
                                          "/deeper cannot be made: Not a directory; a part of its path is no folder: "
                                          "set [host] state_dir to a folder elsewhere");
}

TEST_F(LedgerTest, EachCauseHasItsOwnMend) {
  const auto text = [](int number) { return state_file_error("the ledger cannot be made", number).message(); };
  EXPECT_EQ(text(ENOSPC), "the ledger cannot be made: No space left on device; make room on its disk");
  EXPECT_THAT(text(EROFS), HasSubstr("Read-only file system; mount its file system writable, or set [host] state_dir"));
  EXPECT_THAT(text(EACCES), HasSubstr("Permission denied; let user " + std::to_string(::geteuid()) + " write there"));
  EXPECT_THAT(text(EMFILE), HasSubstr("(ulimit -n)"));
  EXPECT_THAT(text(EFBIG), HasSubstr("(ulimit -f)"));
  EXPECT_EQ(state_file_error("", ENOSPC).code(), ErrorCode::full);
  EXPECT_EQ(state_file_error("", EROFS).code(), ErrorCode::denied);
}

// The kernel's own refusal, as on a full disk: a limit that no ledger fits in.
TEST_F(LedgerTest, AFileThatMayNotGrowNamesTheLimitAndLeavesNothing) {
  const int status = status_of([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const SystemClock clock;
    const auto ledger = HostLedger::create(folder_.path(), {"h", ""}, clock);
    const bool named = !ledger && ledger.error().code() == ErrorCode::full &&
                       ledger.error().message().find("cannot be given room") != std::string::npos &&
                       ledger.error().message().find("(ulimit -f)") != std::string::npos;
    ::_exit(named ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

#ifndef SLUICE_SANITIZED
TEST_F(LedgerTest, AFileThatIsCutOffUnderItEndsNobody) {
  for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{format::kSlotsAt} + 100}) {
    const int status = status_of([&] {
      const auto ledger = open_ledger_in(folder_.path());
      install_crash_handler(&ledger->crash_record());
      const auto job = open_job(ledger, {ledger_job()});
      const HeldSlot before = job->hold(delivery("before"));
      job->started(before, "before");
      if (!ledger->is_whole()) {
        ::_exit(1);
      }
      std::filesystem::resize_file(folder_.ledger(), left);
      for (std::uint32_t i = 0; i < 2 * format::kSlotsAtFirst; ++i) {
        const HeldSlot held = job->hold(delivery("later"));
        job->started(held, "later");
        job->ended(held, false);
      }
      job->ended(before, false);
      job->drop(before);
      open_job(ledger, {ledger_job("other")})->hold(delivery("other"));
      if (ledger->is_whole()) {
        ::_exit(2);
      }
    });
    EXPECT_EQ(status, 0) << "with " << left << " bytes left";
    std::filesystem::remove_all(folder_.path());
  }
}
#endif

TEST_F(LedgerTest, AFileThatWasReplacedUnderItIsLeftAlone) {
  {
    const auto ledger = open_ledger_in(folder_.path());
    EXPECT_TRUE(ledger->is_whole());
    const std::string file = folder_.ledger();
    std::ofstream(file + "-new") << "somebody else's";
    std::filesystem::rename(file + "-new", file);
    EXPECT_FALSE(ledger->is_whole());
  }
  EXPECT_NE(folder_.ledger(), "");
}

TEST_F(LedgerTest, AnOwnerThatLivesKeepsItsLedger) {
  const auto ledger = open_ledger_in(folder_.path());
  const auto taken = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(taken);
  EXPECT_FALSE(*taken);
  EXPECT_TRUE(has_owner(folder_.ledger()));
}

TEST_F(LedgerTest, AnOwnerThatIsGoneDoesNot) {
  leave_ledger([](JobLedger& job) { job.hold(delivery("a")); });
  EXPECT_FALSE(has_owner(folder_.ledger()));
}

TEST_F(LedgerTest, TwoHostsDoNotTakeTheSameOrphan) {
  leave_ledger([](JobLedger& job) { job.hold(delivery("a")); });
  const auto mine = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(mine && *mine);
  const auto second = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(second);
  EXPECT_FALSE(*second);
}

TEST_F(LedgerTest, HistoryKeepsWhatWasHeldAndWhatWasDoneAboutIt) {
  leave_ledger([](JobLedger& job) {
    job.hold(delivery("a"));
    job.drop(job.hold(delivery("b")));
    job.started(job.hold(delivery("c")), "c");
  });
  const auto orphan = OrphanLedger::take(folder_.ledger());
  ASSERT_TRUE(orphan && *orphan);
  const LedgerSettlement settlement{{0, 1, 1, 2, 4, 3}, WallTime(Duration(5)), "host-b"};
  ASSERT_TRUE((*orphan)->archive(settlement));
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty());
  const auto history = folder_.ledgers().history();
  ASSERT_THAT(history, testing::SizeIs(1));
  const auto read = read_ledger(history.front());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_THAT(ids(*read), ElementsAre("a", "c"));
  EXPECT_EQ(read->settlement.suspects, 1U);
  EXPECT_EQ(read->settlement.gone, 2U);
  EXPECT_EQ(read->settlement.finished, 4U);
  EXPECT_EQ(read->settlement.unsettled, 3U);
  EXPECT_EQ(read->settlement.by, "host-b");
  EXPECT_LT(std::filesystem::file_size(history.front()), format::file_size(3));
}

TEST_F(LedgerTest, TheOldestOfTheHistoryGoFirst) {
  std::filesystem::create_directories(folder_.path());
  for (const std::string name : {"3", "1", "2"}) {
    std::ofstream(folder_.path() + "/" + name + ".done") << "x";
  }
  folder_.ledgers().forget_all_but(2);
  EXPECT_THAT(folder_.ledgers().history(), ElementsAre(HasSubstr("/2.done"), HasSubstr("/3.done")));
}

class DamagedLedgerTest : public LedgerTest {
 protected:
  std::string why() {
    const auto taken = OrphanLedger::take(folder_.ledger());
    EXPECT_FALSE(taken);
    EXPECT_EQ(taken.error().code(), ErrorCode::corrupt);
    return taken.error().message();
  }
  void overwrite(std::streamoff at, const std::string& bytes) {
    std::fstream file(folder_.ledger(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << bytes;
  }
};

TEST_F(DamagedLedgerTest, AForeignFileIsRefused) {
  std::filesystem::create_directories(folder_.path());
  std::ofstream(folder_.path() + "/x.ledger") << "not one of ours";
  EXPECT_THAT(why(), HasSubstr("is no ledger"));
}

TEST_F(DamagedLedgerTest, ACutOffFileIsRefused) {
  leave_ledger([](JobLedger& job) { job.hold(delivery("a")); });
  std::filesystem::resize_file(folder_.ledger(), format::file_size(10));
  EXPECT_THAT(why(), HasSubstr("is cut off"));
}

TEST_F(DamagedLedgerTest, AnotherFormatIsRefused) {
  leave_ledger([](JobLedger& job) { job.hold(delivery("a")); });
  overwrite(8, std::string("\x63\0\0\0", 4));
  EXPECT_THAT(why(), HasSubstr("another version"));
}

TEST_F(DamagedLedgerTest, APlaceThatMakesNoSenseIsPassedOver) {
  leave_ledger([](JobLedger& job) {
    job.hold(delivery("a"));
    job.hold(delivery("b"));
  });
  overwrite(static_cast<std::streamoff>(format::kSlotsAt), std::string(8, '\xff'));
  const LedgerContents contents = read();
  EXPECT_THAT(ids(contents), ElementsAre("b"));
  EXPECT_EQ(contents.unreadable, 1U);
}

TEST_F(DamagedLedgerTest, WhatIsSetAsideIsNotFoundAgain) {
  std::filesystem::create_directories(folder_.path());
  std::ofstream(folder_.path() + "/x.ledger") << "not one of ours";
  const std::string aside = folder_.ledgers().set_aside(folder_.ledger());
  EXPECT_TRUE(std::filesystem::exists(aside));
  EXPECT_THAT(folder_.ledgers().open_ledgers(), IsEmpty());
}

}  // namespace
}  // namespace sluice::isolation
