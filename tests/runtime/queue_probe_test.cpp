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
  Result<void> look(std::vector<std::string> names) {
    return probe_queues(std::move(names), queues_, clock_, log_,
                        [](const std::string& queue, const Error& error) { return queue + ": " + error.message(); });
  }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  observe::Log log_{observe::LogLevel::error, observe::LogFormat::text};
};

TEST_F(QueueProbeTest, LooksOnceAtEachQueueHoweverManyJobsItHas) {
  EXPECT_TRUE(look({"b", "a", "b", "a"}));
  const auto calls = queues_.calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].address.queue, "a");
  EXPECT_EQ(calls[1].address.queue, "b");
}

TEST_F(QueueProbeTest, AQueueThatDoesNotAnswerYetDoesNotForbidTheStart) {
  std::size_t looks = 0;
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::full, ErrorCode::timeout, ErrorCode::throttled}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "not now"));
    EXPECT_TRUE(look({"a", "b"}));
    looks += 2;
    EXPECT_EQ(queues_.count(StoreCall::list), looks);
  }
}

TEST_F(QueueProbeTest, WhatWaitingDoesNotMendForbidsIt) {
  for (const ErrorCode code : {ErrorCode::queue_missing, ErrorCode::denied, ErrorCode::corrupt, ErrorCode::invalid}) {
    queues_.fail_next(StoreCall::list, 1, Error(code, "mend it"));
    const auto looked = look({"a"});
    ASSERT_FALSE(looked);
    EXPECT_EQ(looked.error().code(), code);
    EXPECT_EQ(looked.error().message(), "a: mend it");
  }
}

}  // namespace
}  // namespace sluice::runtime
