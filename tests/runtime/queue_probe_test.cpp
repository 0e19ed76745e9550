#include "host/runtime/queue_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_store.hpp"

namespace sluice::runtime {
namespace {

using test::StoreCall;

class QueueProbeTest : public ::testing::Test {
 protected:
  std::optional<Result<void>> look(std::vector<std::string> queues) {
    QueueProbe probe(store_, clock_, log_);
    HasEnded ended;
    probe.start(std::move(queues), [&ended] { ended.set(); });
    ended.wait();
    return probe.result();
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
  test::SimStore store_{clock_, random_};
  observe::Log log_{observe::LogLevel::error, observe::LogFormat::text};
};

TEST_F(QueueProbeTest, LooksOnceAtEachQueueHoweverManyJobsItHas) {
  const auto result = look({"b", "a", "b", "a"});
  ASSERT_TRUE(result);
  EXPECT_TRUE(*result);
  const auto calls = store_.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].address.queue, "a");
  EXPECT_EQ(calls[1].address.queue, "b");
}

TEST_F(QueueProbeTest, AQueueThatDoesNotAnswerYetDoesNotForbidTheStart) {
  store_.fail_next(StoreCall::list, 1, Error(ErrorCode::unavailable, "no answer"));
  const auto result = look({"a", "b"});
  ASSERT_TRUE(result);
  EXPECT_TRUE(*result);
  EXPECT_EQ(store_.count(StoreCall::list), 2U);
}

TEST_F(QueueProbeTest, WhatWaitingDoesNotMendForbidsIt) {
  for (const ErrorCode code : {ErrorCode::queue_missing, ErrorCode::denied, ErrorCode::corrupt, ErrorCode::invalid}) {
    store_.fail_next(StoreCall::list, 1, Error(code, "mend it"));
    const auto result = look({"a"});
    ASSERT_TRUE(result);
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().message(), "mend it");
  }
}

TEST_F(QueueProbeTest, HasNoResultBeforeItHasLooked) {
  const QueueProbe probe(store_, clock_, log_);
  EXPECT_FALSE(probe.result());
}

}  // namespace
}  // namespace sluice::runtime
