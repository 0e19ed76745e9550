// Others on the same file: readers that stay, writers that never pause, and hosts that wait for what they send.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <semaphore>
#include <thread>

#include "host/stores/sqlite/commit_queue.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_lock_file.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

class NeighboursTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreDesk> open() { return open_store(file_, clock_, random_); }
  void send(StoreDesk& store, std::size_t body = 1) {
    const queue::NewMessage message{.body = std::string(body, 'x')};
    ASSERT_EQ(store.send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  }
  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  SystemClock clock_;
  SeededRandom random_{1};
};

/// A connection behind the store's back that keeps a snapshot.
class SlowReader {
 public:
  explicit SlowReader(const std::string& file) {
    if (sqlite3_open(file.c_str(), &handle_) != SQLITE_OK ||
        sqlite3_exec(handle_, "BEGIN; SELECT count(*) FROM sluice_messages", nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(handle_));
    }
  }
  ~SlowReader() { sqlite3_close(handle_); }
  SlowReader(const SlowReader&) = delete;
  SlowReader& operator=(const SlowReader&) = delete;

 private:
  sqlite3* handle_ = nullptr;
};

/// How often the threads of this process, or this one, have given up the processor, to wait for something.
long waits_so_far(int who = RUSAGE_SELF) {
  rusage usage{};
  ::getrusage(who, &usage);
  return usage.ru_nvcsw;
}

TEST_F(NeighboursTest, AReaderThatStaysCostsNoCommitAnythingAndIsReported) {
  std::atomic<int> reports = 0;
  queue::SqliteOptions options;
  options.report = [&reports](const std::string& warning) {
    EXPECT_THAT(warning, ::testing::HasSubstr("fuser"));
    ++reports;
  };
  auto store = open_store(file_, clock_, random_, options);
  send(*store);
  {
    const SlowReader reader(file_);
    for (int i = 0; i < 300; ++i) {
      send(*store, 1024 * 1024);
    }
    ASSERT_GT(std::filesystem::file_size(file_ + "-wal"), 256U * 1024 * 1024);
    const auto before = waits_so_far();
    constexpr int kCommits = 50;
    for (int i = 0; i < kCommits; ++i) {
      send(*store);
    }
    EXPECT_LT(waits_so_far() - before, kCommits * 10) << "whoever waits for a reader looks at it fifty times in 200 ms";
  }
  EXPECT_EQ(reports, 1);
  // Once it has gone the log is taken in again.
  for (int i = 0; i < 1000 && std::filesystem::file_size(file_ + "-wal") > 65U * 1024 * 1024; ++i) {
    send(*store, 1024 * 1024);
  }
  EXPECT_LE(std::filesystem::file_size(file_ + "-wal"), 65U * 1024 * 1024);
}

/// A lock on one byte of a file, as another process has it.
class ByteLock {
 public:
  ByteLock(const std::string& path, short kind, off_t byte) : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    struct flock range {};
    range.l_type = kind;
    range.l_start = byte;
    range.l_len = 1;
    EXPECT_EQ(::fcntl(file_, F_OFD_SETLK, &range), 0);
  }
  ~ByteLock() { ::close(file_); }
  ByteLock(const ByteLock&) = delete;
  ByteLock& operator=(const ByteLock&) = delete;

 private:
  const int file_;
};

TEST_F(NeighboursTest, WritersTakeTurns) {
  auto lock_file = queue::sqlite::StoreLockFile::open(folder_.file("door"));
  ASSERT_TRUE(lock_file);
  // The third byte is locked by who waits; this one is as slow to look as he could be.
  const auto waits_for_next_turn = [&](bool wanted) {
    std::optional<ByteLock> somebody;
    lock_file->take_turn();
    if (wanted) {
      somebody.emplace(folder_.file("door"), F_RDLCK, 2);
    }
    lock_file->give_turn_back();
    const long before = waits_so_far(RUSAGE_THREAD);
    lock_file->take_turn();
    const long waits = waits_so_far(RUSAGE_THREAD) - before;
    somebody.reset();
    lock_file->give_turn_back();
    return waits;
  };
  EXPECT_EQ(waits_for_next_turn(false), 0) << "whoever is alone has the next turn at once";
  EXPECT_GE(waits_for_next_turn(true), 1) << "whoever waits comes next";
  EXPECT_EQ(waits_for_next_turn(false), 0);
}

TEST_F(NeighboursTest, AProcessThatKeepsTheTurnKeepsNobodyFromWriting) {
  auto store = open();
  send(*store);
  const ByteLock stopped(file_ + "-door", F_WRLCK, 0);
  const SystemClock clock;
  for (int i = 0; i < 20; ++i) {
    const queue::NewMessage message{.body = "x"};
    const auto sent = store->send("orders", std::span(&message, 1), Deadline::after(clock, 10s)).at(0);
    ASSERT_EQ(sent.status, queue::SendStatus::sent) << sent.error.message();
  }
}

TEST_F(NeighboursTest, AProcessThatNeverComesToItsTurnDoesNotHoldUpTheOthers) {
  auto lock_file = queue::sqlite::StoreLockFile::open(folder_.file("door"));
  ASSERT_TRUE(lock_file);
  const ByteLock stopped(folder_.file("door"), F_RDLCK, 2);
  constexpr int kTurns = 400;
  const long before = waits_so_far(RUSAGE_THREAD);
  for (int i = 0; i < kTurns; ++i) {
    lock_file->take_turn();
    lock_file->give_turn_back();
  }
  EXPECT_LT(waits_so_far(RUSAGE_THREAD) - before, kTurns / 2) << "it is let go first each time";
}

TEST_F(NeighboursTest, ATurnEndsWithItsProcess) {
  const std::string path = folder_.file("door");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto lock_file = queue::sqlite::StoreLockFile::open(path);
    lock_file->take_turn();
    const char taken = '1';
    static_cast<void>(::write(ends[1], &taken, 1));
    ::pause();
    ::_exit(0);
  }
  char taken = 0;
  ASSERT_EQ(::read(ends[0], &taken, 1), 1);
  std::jthread killer([child] { ::kill(child, SIGKILL); });
  auto lock_file = queue::sqlite::StoreLockFile::open(path);
  lock_file->take_turn();
  lock_file->give_turn_back();
  ::close(ends[0]);
  ::close(ends[1]);
  ::waitpid(child, nullptr, 0);
}

/// A source that waits, and how often it was told that something is there.
class Waiting {
 public:
  explicit Waiting(queue::Queues& queues, const queue::QueueAddress& address = {"orders"})
      : source_(*queues.open_source(address)) {
    source_->start({.on_ready =
                        [this] {
                          ++told_;
                          ready_.release();
                        },
                    .lost = {}});
  }
  std::size_t claim(std::size_t max = 10) {
    auto claimed = source_->claim({.max = max, .visibility = 30s}, Deadline::never());
    EXPECT_TRUE(claimed);
    return claimed->deliveries.size();
  }
  /// Why a claim is refused.
  ErrorCode claim_refused(const queue::ClaimRequest& request) {
    const auto claimed = source_->claim(request, Deadline::never());
    EXPECT_FALSE(claimed);
    return claimed ? ErrorCode::internal : claimed.error().code();
  }
  bool told_within(Duration span) { return ready_.try_acquire_for(span); }
  int told() const { return told_; }
  void stop() { source_->stop(); }

 private:
  std::atomic<int> told_ = 0;
  std::counting_semaphore<> ready_{0};
  std::unique_ptr<queue::Source> source_;
};

TEST_F(NeighboursTest, AHostIsWokenByWhatAnotherProcessSends) {
  auto host = open();
  auto sender = open();  // what it shares with the host is what another process would: the files
  Waiting waiting(host->queues());
  Waiting second(host->queues());
  Waiting other_queue(host->queues(), {"invoices"});
  for (int round = 0; round < 50; ++round) {
    EXPECT_EQ(waiting.claim(), 0U);
    EXPECT_EQ(second.claim(), 0U);
    send(*sender);
    ASSERT_TRUE(waiting.told_within(10s));
    ASSERT_TRUE(second.told_within(10s)) << "each of several";
    EXPECT_EQ(waiting.claim(), 1U);
  }
  EXPECT_EQ(other_queue.told(), 0);
}

TEST_F(NeighboursTest, WhateverBecomesOfTheDoorEndsNobody) {
  auto host = open();
  auto sender = open();
  Waiting waiting(host->queues());
  const auto comes = [&] {
    EXPECT_EQ(waiting.claim(), 0U);
    send(*sender);
    return waiting.told_within(10s) && waiting.claim() == 1;
  };
  EXPECT_TRUE(comes());
  std::filesystem::resize_file(file_ + "-door", 0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(comes()) << "truncated";
  }
  std::ofstream(file_ + "-door") << std::string(100'000, '\xFF');
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(comes()) << "overwritten";
  }
}

TEST_F(NeighboursTest, AHostIsWokenByTheRoomThatAnotherProcessMakes) {
  auto host = open();
  auto other = open();
  for (int i = 0; i < 4; ++i) {
    send(*other);
  }
  const queue::ClaimRequest limited{.max = 10, .visibility = 30s, .rules = {.max_in_flight = 2}};
  const auto source = *other->queues().open_source({"orders"});
  const auto held = source->claim(limited, Deadline::never());
  ASSERT_TRUE(held);
  ASSERT_EQ(held->deliveries.size(), 2U);
  Waiting waiting(host->queues());
  for (const queue::Delivery& delivery : held->deliveries) {
    EXPECT_EQ(waiting.claim_refused(limited), ErrorCode::over_limit);
    const queue::Completion done{.receipt = delivery.receipt};
    ASSERT_EQ(source->settle({&done, 1}, Deadline::never()).front().status, queue::SettleStatus::applied);
    ASSERT_TRUE(waiting.told_within(10s)) << "it would find the room by polling alone";
    source->claim(limited, Deadline::never());  // fills the room again
  }
}

TEST_F(NeighboursTest, AHostIsWokenByTheRoomThatAnOperatorMakes) {
  auto host = open();
  send(*host);
  send(*host);
  const queue::ClaimRequest limited{.max = 10, .visibility = 30s, .rules = {.max_in_flight = 1}};
  const auto held = (*host->queues().open_source({"orders"}))->claim(limited, Deadline::never());
  ASSERT_TRUE(held);
  ASSERT_EQ(held->deliveries.size(), 1U);
  Waiting waiting(host->queues());
  EXPECT_EQ(waiting.claim_refused(limited), ErrorCode::over_limit);
  const queue::Change removal{.id = held->deliveries[0].message.id, .action = queue::ChangeAction::remove};
  const auto oper = *host->queues().open_operator("orders");
  ASSERT_EQ(oper->change({&removal, 1}, Deadline::never()).front().status, queue::ChangeStatus::applied);
  EXPECT_TRUE(waiting.told_within(10s)) << "it would find the room by polling alone";
}

TEST_F(NeighboursTest, AWakeOutlivesALogThatBeginsAnew) {
  auto host = open();
  auto sender = open();
  Waiting waiting(host->queues());
  for (int round = 0; round < 40; ++round) {
    EXPECT_EQ(waiting.claim(), 0U);
    send(*sender, 1024 * 1024);
    ASSERT_TRUE(waiting.told_within(10s));
    EXPECT_EQ(waiting.claim(), 1U);
  }
}

TEST_F(NeighboursTest, WhatComesBetweenLookingAndWaitingIsHeard) {
  auto host = open();
  auto sender = open();
  Waiting waiting(host->queues());
  constexpr int kMessages = 500;
  std::jthread sending([&] {
    for (int i = 0; i < kMessages; ++i) {
      send(*sender);
    }
  });
  std::size_t claimed = 0;
  while (claimed < kMessages) {
    const std::size_t found = waiting.claim();
    claimed += found;
    if (found < 10 && claimed < kMessages) {
      ASSERT_TRUE(waiting.told_within(10s)) << claimed;
    }
  }
}

TEST_F(NeighboursTest, AHostDoesNotWakeItselfAndIsToldOnceBetweenTwoClaims) {
  auto host = open();
  auto sender = open();
  Waiting waiting(host->queues());
  EXPECT_EQ(waiting.claim(), 0U);
  for (int i = 0; i < 100; ++i) {
    send(*sender);
  }
  ASSERT_TRUE(waiting.told_within(10s));
  EXPECT_EQ(waiting.claim(1000), 100U);
  EXPECT_EQ(waiting.told(), 1);
  // Its own settlements, and a claim of what is left.
  EXPECT_EQ(waiting.claim(), 0U);
  EXPECT_EQ(waiting.told(), 1);
}

TEST_F(NeighboursTest, NothingIsToldOnceStopped) {
  auto host = open();
  auto sender = open();
  Waiting waiting(host->queues());
  EXPECT_EQ(waiting.claim(), 0U);
  waiting.stop();
  send(*sender);
  send(*host);
  EXPECT_EQ(waiting.told(), 0);
}

TEST_F(NeighboursTest, IdleSourcesCostNothing) {
  auto host = open();
  std::vector<std::unique_ptr<Waiting>> jobs;
  for (int i = 0; i < 10; ++i) {
    jobs.push_back(std::make_unique<Waiting>(host->queues(), queue::QueueAddress{"queue " + std::to_string(i)}));
    jobs.back()->claim();
  }
  // Something to wait for that never comes.
  std::binary_semaphore never{0};
  // Whoever wakes for nothing does so each time. On a busy machine the threads may still be on their way to their wait.
  long fewest = std::numeric_limits<long>::max();
  for (int window = 0; window < 3 && fewest >= 10; ++window) {
    const auto before = waits_so_far();
    EXPECT_FALSE(never.try_acquire_for(500ms));
    fewest = std::min(fewest, waits_so_far() - before);
  }
  // One wake of each job would be ten.
  EXPECT_LT(fewest, 10) << "a thread woke for nothing";
}

}  // namespace
}  // namespace sluice::test
