// A disk that hangs, fails or loses its files: nobody waits beyond his deadline, and nothing is claimed to be safe that
// is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/stores/sqlite/disk.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class DiskFaultsTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreDesk> open() {
    queue::SqliteOptions options;
    options.path = file_;
    auto queues = queue::open_sqlite_queues(options, clock_, random_);
    EXPECT_TRUE(queues) << queues.error().message();
    return std::make_unique<StoreDesk>(std::move(*queues));
  }
  queue::SendResult send(StoreDesk& store, const std::string& id, Deadline deadline = Deadline::never()) {
    const queue::NewMessage message{.id = id, .body = "x"};
    return store.send("orders", std::span(&message, 1), deadline).at(0);
  }
  std::vector<queue::Delivery> claim(StoreDesk& store, std::size_t max) {
    auto claimed = store.claim({"orders"}, max, 30s, Deadline::never());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return std::move(*claimed);
  }
  queue::SettleResult settle(StoreDesk& store, const queue::Delivery& delivery, Deadline deadline) {
    const queue::Completion completion{.receipt = delivery.receipt};
    return store.settle({"orders"}, std::span(&completion, 1), deadline).at(0);
  }
  Deadline soon() { return Deadline::after(clock_, 100ms); }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  SystemClock clock_;
  SeededRandom random_{1};
  Disk disk_;
};

TEST_F(DiskFaultsTest, WhatIsAnsweredIsOnTheDisk) {
  auto store = open();
  for (int i = 0; i < 3; ++i) {
    const int before = disk_.flushes("-wal");
    ASSERT_EQ(send(*store, "id" + std::to_string(i)).status, queue::SendStatus::sent);
    EXPECT_GT(disk_.flushes("-wal"), before) << "a send";
  }
  for (const auto& delivery : claim(*store, 3)) {
    const int before = disk_.flushes("-wal");
    ASSERT_EQ(settle(*store, delivery, Deadline::never()).status, queue::SettleStatus::applied);
    EXPECT_GT(disk_.flushes("-wal"), before) << "a settlement";
  }
}

TEST_F(DiskFaultsTest, WhatTheLogLosesWhenItBeginsAnewIsOnTheDisk) {
  auto store = open();
  const int before = disk_.flushes("store.db");
  for (int i = 0; i < 30; ++i) {
    const queue::NewMessage message{.body = std::string(1024 * 1024, 'x')};
    ASSERT_EQ(store->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  }
  store.reset();
  EXPECT_GT(disk_.flushes("store.db"), before) << "a checkpoint";
}

std::uint32_t word_at(const std::string& name, std::streamoff place) {
  std::ifstream file(name, std::ios::binary);
  std::uint32_t word = 0;
  file.seekg(place).read(reinterpret_cast<char*>(&word), sizeof word);
  return word;
}

// What is committed while a checkpoint is under way stays behind, so that without more it would never reach the end of
// the log while writers go on.
TEST_F(DiskFaultsTest, TheLogBeginsAnewBesideWritersThatNeverPause) {
  // SQLite's file formats: a salt in the log's header that changes when it begins anew, and in its index how many of
  // its pages a checkpoint has written.
  const auto salt = [this] { return word_at(file_ + "-wal", 16); };
  const auto written = [this] { return word_at(file_ + "-shm", 96); };
  auto store = open_store(file_, clock_, random_);
  ASSERT_EQ(send(*store, "first").status, queue::SendStatus::sent);
  const std::uint32_t before = salt();
  ASSERT_EQ(written(), 0U);
  disk_.hang();
  while (disk_.hanging() == 0) {
    const queue::NewMessage message{.body = std::string(256 * 1024, 'x')};
    ASSERT_EQ(store->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  }
  ASSERT_EQ(send(*store, "behind it").status, queue::SendStatus::sent);
  disk_.let_go();
  while (written() == 0) {
    std::this_thread::yield();
  }
  // Twice as much again would bring the next checkpoint.
  const auto end = std::filesystem::file_size(file_ + "-wal") + 8 * 1024 * 1024;
  for (int i = 0; salt() == before && std::filesystem::file_size(file_ + "-wal") < end; ++i) {
    ASSERT_EQ(send(*store, std::to_string(i)).status, queue::SendStatus::sent);
  }
  EXPECT_NE(salt(), before);
}

TEST_F(DiskFaultsTest, ADiskThatHangsHoldsNobodyBeyondHisDeadline) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  const auto held = claim(*store, 1);
  disk_.hang();
  EXPECT_EQ(send(*store, "b", soon()).error.code(), ErrorCode::unknown_outcome);
  const auto settled = settle(*store, held.at(0), soon());
  EXPECT_EQ(settled.status, queue::SettleStatus::failed);
  EXPECT_EQ(settled.error.code(), ErrorCode::unknown_outcome);
  EXPECT_TRUE(store->stats({"orders"}, soon()));
  EXPECT_EQ(disk_.hanging(), 1) << "everybody has come back, and the disk has not";
  disk_.let_go();
  EXPECT_EQ(settle(*store, held[0], Deadline::never()).status, queue::SettleStatus::applied)
      << "a repetition of what took effect is no loss";
  EXPECT_EQ(all_ids(*store, "orders"), std::vector<std::string>{"b"});
}

TEST_F(DiskFaultsTest, TheEndDoesNotWaitForADiskThatHangs) {
  auto store = open();
  disk_.hang();
  EXPECT_EQ(send(*store, "a", soon()).error.code(), ErrorCode::unknown_outcome);
  store.reset();
  EXPECT_EQ(disk_.hanging(), 1) << "it has ended before the disk came back";
}

TEST_F(DiskFaultsTest, WhatCouldNotBeFlushedIsNotClaimedToBeSafeUntilItIs) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  const auto held = claim(*store, 1);
  disk_.fail(EIO);
  for (int i = 0; i < 3; ++i) {
    const auto settled = settle(*store, held.at(0), Deadline::never());
    EXPECT_EQ(settled.status, queue::SettleStatus::failed);
    EXPECT_EQ(settled.error.code(), ErrorCode::unknown_outcome);
  }
  EXPECT_TRUE(claim(*store, 5).empty()) << "nothing that is finished is handed out again";
  disk_.fail(0);
  const int before = disk_.flushes("store.db");
  EXPECT_EQ(settle(*store, held[0], Deadline::never()).status, queue::SettleStatus::applied);
  EXPECT_GT(disk_.flushes("store.db"), before) << "the system forgets what it could not write to the log";
  EXPECT_EQ(send(*store, "b").status, queue::SendStatus::sent);
}

TEST_F(DiskFaultsTest, ACheckpointWithoutAnAnswerIsBuiltUpon) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  auto held = claim(*store, 1);
  queue::Receipt& receipt = held.at(0).receipt;
  queue::Source& source = store->source({"orders"});
  disk_.fail(EIO);
  EXPECT_EQ(source.checkpoint(receipt, "1", nullptr, Deadline::never()).error.code(), ErrorCode::unknown_outcome);
  disk_.fail(0);
  const auto second = source.checkpoint(receipt, "2", nullptr, Deadline::never());
  ASSERT_EQ(second.status, queue::SettleStatus::applied) << second.error.message();
  EXPECT_EQ(store->get("orders", "a", Deadline::never())->message.checkpoint, "2");
  receipt.version = second.version;
  disk_.fail(EIO);
  EXPECT_EQ(source.checkpoint(receipt, "3", nullptr, Deadline::never()).status, queue::SettleStatus::failed);
  disk_.fail(0);
  EXPECT_EQ(settle(*store, held[0], Deadline::never()).status, queue::SettleStatus::applied);
  EXPECT_EQ(all_ids(*store, "orders"), std::vector<std::string>());
}

TEST_F(DiskFaultsTest, WhatALedgerHeldIsSettledWithOneFlush) {
  auto store = open();
  const std::vector<queue::NewMessage> messages(1000);
  store->send("orders", messages, Deadline::never());
  std::vector<queue::Completion> completions;
  for (const auto& delivery : claim(*store, 1000)) {
    completions.push_back({.receipt = delivery.receipt, .action = queue::CompletionAction::release});
  }
  ASSERT_EQ(completions.size(), 1000U);
  const int before = disk_.flushes("-wal");
  for (const auto& result : store->settle({"orders"}, completions, Deadline::never())) {
    ASSERT_EQ(result.status, queue::SettleStatus::applied);
  }
  EXPECT_EQ(disk_.flushes("-wal"), before + 1);
}

TEST_F(DiskFaultsTest, AFileThatCannotBeReadIsNotCalledDamaged) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(send(*open(), "id" + std::to_string(i)).status, queue::SendStatus::sent);
  }
  int failed = 0;
  for (int reads = 0;; ++reads) {
    disk_.fail_reads("store.db", reads, EIO);
    auto queues = queue::open_sqlite_queues({.path = file_}, clock_, random_);
    std::optional<Error> error;
    if (queues) {
      StoreDesk store(std::move(*queues));
      const auto claims = store.claim({"orders"}, 10, 1ms, Deadline::never());
      error = claims ? std::nullopt : std::optional(claims.error());
    } else {
      error = queues.error();
    }
    const bool reached = disk_.failed_reads();
    disk_.fail_reads("", 0, 0);
    if (!reached) {
      break;
    }
    if (error) {
      ++failed;
      EXPECT_EQ(error->code(), ErrorCode::unavailable) << reads << ": " << error->message();
    }
  }
  EXPECT_GT(failed, 10);
  EXPECT_EQ(all_ids(*open(), "orders").size(), 100U);
}

TEST_F(DiskFaultsTest, ALogThatIsTakenAwayIsNoticedAtOnce) {
  for (const char* suffix : {"-wal", "-shm"}) {
    auto store = open();
    ASSERT_EQ(send(*store, std::string("before ") + suffix).status, queue::SendStatus::sent);
    std::filesystem::rename(file_ + suffix, file_ + ".away");
    const auto refused = send(*store, "lost");
    EXPECT_EQ(refused.status, queue::SendStatus::failed);
    EXPECT_EQ(refused.error.code(), ErrorCode::queue_missing);
    EXPECT_THAT(refused.error.message(), HasSubstr(std::string("store.db") + suffix));
    EXPECT_FALSE(store->claim({"orders"}, 1, 30s, Deadline::never()));
    std::filesystem::copy_file(file_ + ".away", file_ + suffix);
    EXPECT_EQ(send(*store, "lost").error.code(), ErrorCode::queue_missing) << "a copy is another file";
    std::filesystem::rename(file_ + ".away", file_ + suffix);
    EXPECT_EQ(send(*store, std::string("after ") + suffix).status, queue::SendStatus::sent);
  }
}

TEST_F(DiskFaultsTest, AnEndInOrderSavesWhatLayInALogThatWasRemoved) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  std::filesystem::remove(file_ + "-wal");
  std::filesystem::remove(file_ + "-shm");
  EXPECT_EQ(send(*store, "b").error.code(), ErrorCode::queue_missing);
  store.reset();
  EXPECT_EQ(all_ids(*open(), "orders"), std::vector<std::string>{"a"});
}

TEST_F(DiskFaultsTest, NobodyWritesBesideALogThatWasRemovedUntilItIsSaved) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  std::filesystem::remove(file_ + "-wal");
  std::filesystem::remove(file_ + "-shm");
  const auto refused = queue::open_sqlite_queues({.path = file_}, clock_, random_);
  ASSERT_FALSE(refused) << "what it accepts is overwritten when the first one ends";
  EXPECT_EQ(refused.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(refused.error().message(),
              HasSubstr("store.db-shm\" was removed while other processes have the store open"));
  store.reset();
  store = open();
  EXPECT_EQ(send(*store, "b").status, queue::SendStatus::sent);
  store.reset();
  EXPECT_EQ(all_ids(*open(), "orders"), (std::vector<std::string>{"a", "b"}));
}

TEST_F(DiskFaultsTest, NobodyOpensThePathOfAFileThatWasMovedAwayFromThoseWhoHaveIt) {
  auto store = open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(send(*store, "m" + std::to_string(i)).status, queue::SendStatus::sent);
  }
  std::filesystem::rename(file_, file_ + ".away");
  const auto refused = queue::open_sqlite_queues({.path = file_}, clock_, random_);
  ASSERT_FALSE(refused) << "SQLite would remove the log, and what it holds";
  EXPECT_THAT(refused.error().message(), HasSubstr("moved away"));
  EXPECT_FALSE(std::filesystem::exists(file_)) << "nothing was made in its place";
  std::filesystem::rename(file_ + ".away", file_);
  EXPECT_EQ(send(*store, "last").status, queue::SendStatus::sent);
  EXPECT_EQ(all_ids(*open(), "orders").size(), 101U);
}

TEST_F(DiskFaultsTest, NobodyOpensABackupThatWasPutInThePlaceOfTheFileThatOthersHave) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  store.reset();
  std::filesystem::copy_file(file_, file_ + ".backup");
  store = open();
  ASSERT_EQ(send(*store, "b").status, queue::SendStatus::sent);
  std::filesystem::rename(file_ + ".backup", file_);
  const auto refused = queue::open_sqlite_queues({.path = file_}, clock_, random_);
  ASSERT_FALSE(refused) << "the log that lies there is of another file";
  EXPECT_THAT(refused.error().message(), HasSubstr("another one was put in its place"));
  store.reset();
  EXPECT_EQ(all_ids(*open(), "orders"), std::vector<std::string>{"a"}) << "it is whole, as it was when it was copied";
}

// As a process leaves it that was opening the store when its files were removed.
TEST_F(DiskFaultsTest, NobodyWritesToALogThatHasTakenTheRemovedOnesPlace) {
  const std::vector<std::vector<std::string>> cases{{"-wal"}, {"-shm"}, {"-wal", "-shm"}};
  for (const auto& removed : cases) {
    auto store = open();
    ASSERT_EQ(send(*store, removed.front() + removed.back()).status, queue::SendStatus::sent);
    for (const auto& suffix : removed) {
      std::filesystem::remove(file_ + suffix);
    }
    std::ofstream(file_ + "-wal", std::ios::app).flush();
    const auto refused = queue::open_sqlite_queues({.path = file_}, clock_, random_);
    ASSERT_FALSE(refused) << removed.front() << removed.back();
    EXPECT_EQ(refused.error().code(), ErrorCode::unavailable);
    store.reset();
  }
  EXPECT_THAT(all_ids(*open(), "orders"), UnorderedElementsAre("-wal-wal", "-shm-shm", "-wal-shm"));
}

TEST_F(DiskFaultsTest, WhatLayInALogThatWasRemovedIsSavedOnceThatIsSeen) {
  auto store = open();
  ASSERT_EQ(send(*store, "a").status, queue::SendStatus::sent);
  std::filesystem::remove(file_ + "-wal");
  std::filesystem::remove(file_ + "-shm");
  EXPECT_EQ(send(*store, "b").error.code(), ErrorCode::queue_missing);
  // What is left when this process is killed now.
  const std::string left = folder_.file("left.db");
  std::filesystem::copy_file(file_, left);
  auto queues = queue::open_sqlite_queues({.path = left}, clock_, random_);
  ASSERT_TRUE(queues) << queues.error().message();
  StoreDesk after(std::move(*queues));
  EXPECT_EQ(all_ids(after, "orders"), std::vector<std::string>{"a"});
}

TEST_F(DiskFaultsTest, WhatIsMadeIsForThisUserAlone) {
  const ::mode_t before = ::umask(0);
  std::filesystem::create_directory(folder_.path() / "there");
  queue::SqliteOptions options;
  options.path = folder_.file("there/made/deep/store.db");
  auto queues = queue::open_sqlite_queues(options, clock_, random_);
  ::umask(before);
  ASSERT_TRUE(queues) << queues.error().message();
  const auto mode = [&](const std::string& name) {
    struct stat status {};
    EXPECT_EQ(::stat(folder_.file(name).c_str(), &status), 0) << name;
    return status.st_mode & 0777U;
  };
  EXPECT_EQ(mode("there"), 0777U) << "what was there is its owner's affair";
  EXPECT_EQ(mode("there/made"), 0700U);
  EXPECT_EQ(mode("there/made/deep"), 0700U);
  for (const char* suffix : {"", "-wal", "-shm", "-door"}) {
    EXPECT_EQ(mode(std::string("there/made/deep/store.db") + suffix), 0600U) << suffix;
  }
}

}  // namespace
}  // namespace sluice::test
