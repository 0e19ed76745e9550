#include "host/stores/sqlite/commit_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "host/stores/sqlite/schema.hpp"
#include "host/stores/sqlite/store_thread.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::sqlite {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;

class CommitQueueTest : public ::testing::Test {
 public:
  CommitQueueTest() {
    queue::SqliteOptions options;
    options.path = folder_.file("store.db");
    file_ = std::make_unique<StoreFile>(options);
    auto writer = file_->open_writer();
    EXPECT_TRUE(writer) << writer.error().message();
    writer_ = std::move(*writer);
    auto second = file_->open_checkpointer();
    EXPECT_TRUE(second) << second.error().message();
    checkpointer_ = std::make_unique<Checkpointer>(std::move(*second), Checkpointer::Report());
    flusher_ = std::make_unique<Flusher>(*file_, *checkpointer_);
    commits_ = std::make_unique<CommitQueue>(
        clock_,
        CommitQueue::Tools{
            .file = *file_, .connection = *writer_, .checkpointer = *checkpointer_, .flusher = *flusher_},
        CommitQueue::Hooks{.begin = [this] { ++transactions_; }, .finish = [] {}});
  }
  ~CommitQueueTest() override {
    commits_->request_stop();
    EXPECT_TRUE(commits_->ended_by(SteadyTime::max()));
    flusher_->request_stop();
    EXPECT_TRUE(flusher_->ended_by(SteadyTime::max()));
  }

 protected:
  CommitQueue::Task insert(const std::string& name, bool flush = true) {
    return {.work = [this,
                     name] { writer_->execute(("INSERT INTO sluice_queues (name) VALUES ('" + name + "')").c_str()); },
            .flush = flush};
  }
  std::vector<std::string> names() {
    return test::raw_sql(file_->path(), "SELECT name FROM sluice_queues ORDER BY name");
  }

  /// Leads a transaction that ends when `released` is called.
  class Holder {
   public:
    explicit Holder(CommitQueueTest& test)
        : thread_([this, &test] {
            EXPECT_TRUE(test.commits_->run({.work =
                                                [this] {
                                                  holding_.release();
                                                  let_go_.acquire();
                                                }},
                                           Deadline::never()));
          }) {
      holding_.acquire();
    }
    void release() { let_go_.release(); }

   private:
    std::binary_semaphore holding_{0};
    std::binary_semaphore let_go_{0};
    std::jthread thread_;
  };

  /// Each of these names inserted by a thread of its own; who succeeded, by the time that `holder` has let go.
  std::vector<bool> insert_together(Holder& holder, const std::vector<std::string>& names) {
    std::vector<std::atomic<bool>> inserted(names.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < names.size(); ++i) {
        threads.emplace_back([&, i] { inserted[i] = commits_->run(insert(names[i]), Deadline::never()).has_value(); });
      }
      holder.release();
    }
    return {inserted.begin(), inserted.end()};
  }

  test::TempFolder folder_;
  test::FakeClock clock_;
  std::unique_ptr<StoreFile> file_;
  std::unique_ptr<Connection> writer_;
  std::atomic<int> transactions_ = 0;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::unique_ptr<Flusher> flusher_;
  std::unique_ptr<CommitQueue> commits_;
};

TEST_F(CommitQueueTest, CommitsOne) {
  EXPECT_TRUE(commits_->run(insert("a"), Deadline::never()));
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(transactions_, 1);
}

TEST_F(CommitQueueTest, ThoseWhoWaitShareATransaction) {
  Holder holder(*this);
  EXPECT_EQ(insert_together(holder, {"a", "b", "c", "d"}), std::vector<bool>(4, true));
  EXPECT_EQ(names().size(), 4U);
  EXPECT_LE(transactions_, 5);
}

TEST_F(CommitQueueTest, NobodyJoinsATransactionThatHasLastedLong) {
  const auto slow = [this](const std::string& name) {
    CommitQueue::Task task = insert(name);
    task.work = [work = std::move(task.work)] {
      work();
      const SteadyTime end = machine_after(CommitQueue::kWanted);
      while (machine_now() < end) {
      }
    };
    return task;
  };
  std::atomic<int> inserted = 0;
  {
    Holder holder(*this);
    std::vector<std::jthread> threads;
    for (const char* const name : {"a", "b", "c"}) {
      threads.emplace_back([&, name] { inserted += commits_->run(slow(name), Deadline::never()) ? 1 : 0; });
    }
    holder.release();
  }
  EXPECT_EQ(inserted, 3);
  EXPECT_EQ(names().size(), 3U);
  EXPECT_EQ(transactions_, 4) << "one each, and the holder's";
}

TEST_F(CommitQueueTest, OneThatFailsFailsAlone) {
  EXPECT_TRUE(commits_->run(insert("taken"), Deadline::never()));
  Holder holder(*this);
  EXPECT_EQ(insert_together(holder, {"a", "taken", "b"}), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "taken"}));
  EXPECT_TRUE(commits_->run(insert("later"), Deadline::never())) << "a failure leaves nothing behind";
}

TEST_F(CommitQueueTest, WaitsNoLongerThanTheDeadline) {
  Holder holder(*this);
  const auto late = commits_->run(insert("late"), Deadline::after(clock_, 20ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::timeout);
  holder.release();
  EXPECT_TRUE(commits_->run(insert("after"), Deadline::never()));
  EXPECT_EQ(names(), std::vector<std::string>{"after"});
}

TEST_F(CommitQueueTest, PassedDeadlineRunsNothing) {
  const auto late = commits_->run(insert("late"), Deadline::at(clock_.steady_now()));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::timeout);
  EXPECT_EQ(transactions_, 0);
}

TEST_F(CommitQueueTest, ManyThreadsLoseNothing) {
  constexpr int kThreads = 8;
  constexpr int kEach = 25;
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([this, thread] {
        for (int i = 0; i < kEach; ++i) {
          const auto done = commits_->run(insert(std::to_string(thread) + "-" + std::to_string(i), i % 2 == 0),
                                          Deadline::after(clock_, 60s));
          EXPECT_TRUE(done) << done.error().message();
        }
      });
    }
  }
  EXPECT_EQ(names().size(), static_cast<std::size_t>(kThreads) * kEach);
  EXPECT_LE(transactions_, kThreads * kEach);
}

}  // namespace
}  // namespace sluice::queue::sqlite
