#include "host/runtime/depth_sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "base/random.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using testing::HasSubstr;
using testing::Not;

class DepthSamplerTest : public testing::Test {
 protected:
  SystemClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  observe::Metrics metrics_;
  std::latch asked_{1};
  std::latch answers_{1};
  DepthSampler sampler_{[] {
                          return std::vector<queue::QueueAddress>{{"orders", queue::Half::standard}};
                        },
                        queues_, metrics_, clock_, std::chrono::hours(1)};
};

// A drain waited for the store's time-out, once a queue, when somebody had read the metrics.
TEST_F(DepthSamplerTest, IsLeftWhileAStoreDoesNotAnswer) {
  queues_.set_fault_source([this](test::StoreCall, const queue::QueueAddress&) -> std::optional<test::StoreFault> {
    asked_.count_down();
    answers_.wait();
    return test::StoreFault{Error(ErrorCode::timeout, "no answer")};
  });
  ASSERT_TRUE(sampler_.start());
  sampler_.asked();
  asked_.wait();
  EXPECT_FALSE(sampler_.leave());
  answers_.count_down();
}

TEST_F(DepthSamplerTest, EndsAtOnceWhereNothingIsAsked) {
  ASSERT_TRUE(sampler_.start());
  EXPECT_TRUE(sampler_.leave());
  sampler_.asked();
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("orders")));
}

}  // namespace
}  // namespace sluice::runtime
