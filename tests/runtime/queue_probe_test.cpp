#include "host/runtime/health_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using test::StoreCall;

class QueueProbeTest : public ::testing::Test {
 protected:
  std::optional<QueueProbe::Verdict> look(std::vector<std::string> queues) {
    QueueProbe probe(queues_, clock_, log_);
    HasEnded ended;
    EXPECT_TRUE(probe.start(std::move(queues), [&ended] { ended.set(); }));
    ended.wait();
    return probe.verdict();
  }

  class HasEnded {
   public:
    void set() {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    void wait() {
      const MutexLock lock(mutex_);
      changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return ended_; });
    }

   private:
    Mutex mutex_;
    Condition changed_;
    bool ended_ SLUICE_GUARDED_BY(mutex_) = false;
  };

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  observe::Log log_{observe::LogLevel::error, observe::LogFormat::text};
};

TEST_F(QueueProbeTest, LooksOnceAtEachQueueHoweverManyJobsItHas) {
  const auto verdict = look({"b", "a", "b", "a"});
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->refusal);
  const auto calls = queues_.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].address.queue, "a");
  EXPECT_EQ(calls[1].address.queue, "b");
}

TEST_F(QueueProbeTest, AQueueThatDoesNotAnswerYetDoesNotForbidTheStart) {
  std::size_t looks = 0;
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::full, ErrorCode::timeout, ErrorCode::throttled}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "not now"));
    const auto verdict = look({"a", "b"});
    ASSERT_TRUE(verdict);
    EXPECT_FALSE(verdict->refusal);
    looks += 2;
    EXPECT_EQ(queues_.count(StoreCall::list), looks);
  }
}

TEST_F(QueueProbeTest, WhatWaitingDoesNotMendForbidsIt) {
  for (const ErrorCode code : {ErrorCode::queue_missing, ErrorCode::denied, ErrorCode::corrupt, ErrorCode::invalid}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "mend it"));
    const auto verdict = look({"a"});
    ASSERT_TRUE(verdict);
    ASSERT_TRUE(verdict->refusal);
    EXPECT_EQ(verdict->refusal->queue, "a");
    EXPECT_EQ(verdict->refusal->error.message(), "mend it");
  }
}

/// Queues whose store can be opened only at the third try, and then are those beneath.
class QueuesThatOpenLate final : public queue::Queues {
 public:
  explicit QueuesThatOpenLate(queue::Queues& beneath, ErrorCode code) : beneath_(beneath), code_(code) {}

  Result<std::unique_ptr<queue::Source>> open_source(const queue::QueueAddress& address) override {
    return beneath_.open_source(address);
  }
  Result<std::unique_ptr<queue::Sender>> open_sender(const std::string& queue) override {
    return beneath_.open_sender(queue);
  }
  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override {
    if (++tries_ < 3) {
      return Error(code_, "not yet");
    }
    return beneath_.open_operator(queue);
  }
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override {
    return beneath_.open_board(queue);
  }
  int tries() const { return tries_; }

 private:
  queue::Queues& beneath_;
  const ErrorCode code_;
  int tries_ = 0;
};

TEST_F(QueueProbeTest, AStoreThatCannotBeOpenedYetIsWaitedFor) {
  for (const ErrorCode code : {ErrorCode::full, ErrorCode::unavailable}) {
    QueuesThatOpenLate late(queues_, code);
    QueueProbe probe(late, clock_, log_);
    HasEnded ended;
    EXPECT_TRUE(probe.start({"a"}, [&ended] { ended.set(); }));
    ended.wait();
    EXPECT_FALSE(probe.verdict()->refusal);
    EXPECT_EQ(late.tries(), 3);
  }
}

TEST_F(QueueProbeTest, AStoreThatCannotBeOpenedForGoodForbidsTheStart) {
  QueuesThatOpenLate late(queues_, ErrorCode::corrupt);
  QueueProbe probe(late, clock_, log_);
  HasEnded ended;
  EXPECT_TRUE(probe.start({"a"}, [&ended] { ended.set(); }));
  ended.wait();
  ASSERT_TRUE(probe.verdict()->refusal);
  EXPECT_EQ(late.tries(), 1);
}

TEST_F(QueueProbeTest, HasNoResultBeforeItHasLooked) {
  const QueueProbe probe(queues_, clock_, log_);
  EXPECT_FALSE(probe.verdict());
}

}  // namespace
}  // namespace sluice::runtime
