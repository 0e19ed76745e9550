#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/runtime/health_report.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using test::StoreCall;

class QueueProbeTest : public ::testing::Test {
 protected:
  std::optional<QueueRefusal> look(std::vector<std::string> names) { return look(std::move(names), queues_); }
  std::optional<QueueRefusal> look(std::vector<std::string> names, queue::Queues& queues) {
    return probe_queues(std::move(names), queues, clock_, log_, [](Duration) { return true; });
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  observe::Log log_{observe::LogLevel::error, observe::LogFormat::text};
};

TEST_F(QueueProbeTest, LooksOnceAtEachQueueHoweverManyJobsItHas) {
  EXPECT_FALSE(look({"b", "a", "b", "a"}));
  const auto calls = queues_.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].address.queue, "a");
  EXPECT_EQ(calls[1].address.queue, "b");
}

TEST_F(QueueProbeTest, AQueueThatDoesNotAnswerYetDoesNotForbidTheStart) {
  std::size_t looks = 0;
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::full, ErrorCode::timeout, ErrorCode::throttled}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "not now"));
    EXPECT_FALSE(look({"a", "b"}));
    looks += 2;
    EXPECT_EQ(queues_.count(StoreCall::list), looks);
  }
}

TEST_F(QueueProbeTest, WhatWaitingDoesNotMendForbidsIt) {
  for (const ErrorCode code : {ErrorCode::queue_missing, ErrorCode::denied, ErrorCode::corrupt, ErrorCode::invalid}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "mend it"));
    const auto refusal = look({"a"});
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->queue, "a");
    EXPECT_EQ(refusal->error.message(), "mend it");
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
    EXPECT_FALSE(look({"a"}, late));
    EXPECT_EQ(late.tries(), 3);
  }
}

TEST_F(QueueProbeTest, AStoreThatCannotBeOpenedForGoodForbidsTheStart) {
  QueuesThatOpenLate late(queues_, ErrorCode::corrupt);
  EXPECT_TRUE(look({"a"}, late));
  EXPECT_EQ(late.tries(), 1);
}

TEST_F(QueueProbeTest, AStoreIsNotWaitedForWhereNobodyWantsTheResult) {
  QueuesThatOpenLate late(queues_, ErrorCode::unavailable);
  EXPECT_TRUE(probe_queues({"a"}, late, clock_, log_, [](Duration) { return false; }));
  EXPECT_EQ(late.tries(), 1);
}

}  // namespace
}  // namespace sluice::runtime
