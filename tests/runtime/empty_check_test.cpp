#include <gtest/gtest.h>

#include "base/random.hpp"
#include "host/runtime/health_report.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_operator.hpp"
#include "tests/support/forwarding_queues.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::runtime {
namespace {

using queue::Half;

/// Queues whose cheap counts see nothing, as an index that lags behind does.
class LaggingQueues final : public test::ForwardingQueues {
 public:
  using ForwardingQueues::ForwardingQueues;

  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override {
    auto opened = ForwardingQueues::open_operator(queue);
    if (!opened) {
      return opened;
    }
    return std::make_unique<LaggingOperator>(std::move(*opened));
  }

 private:
  struct Owned {
    std::unique_ptr<queue::Operator> owned;
  };
  class LaggingOperator final : private Owned, public test::ForwardingOperator {
   public:
    explicit LaggingOperator(std::unique_ptr<queue::Operator> beneath)
        : Owned{std::move(beneath)}, ForwardingOperator(*owned) {}
    Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override {
      return request.consistent ? beneath().stats(request, deadline) : queue::QueueStats{};
    }
  };
};

class EmptyCheckTest : public testing::Test {
 protected:
  void send(Duration delay = {}) {
    const queue::NewMessage message{.id = {}, .body = "x", .delay = delay};
    ASSERT_EQ(desk_.send("orders", {&message, 1}, Deadline::never()).front().status, queue::SendStatus::sent);
  }
  std::vector<queue::QueueAddress> orders() const { return {{"orders", Half::standard}}; }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  test::Desk desk_{queues_};
};

TEST_F(EmptyCheckTest, WhatIsDueOrInFlightIsNotEmptyAndWhatIsDelayedIs) {
  EmptyCheck check(queues_, clock_);
  EXPECT_TRUE(*check.empty(orders()));
  send(std::chrono::hours(1));
  EXPECT_TRUE(*check.empty(orders()));
  send();
  EXPECT_FALSE(*check.empty(orders()));
  ASSERT_EQ(desk_.claim(orders().front(), 1, std::chrono::minutes(1), Deadline::never())->size(), 1U);
  EXPECT_FALSE(*check.empty(orders()));
}

TEST_F(EmptyCheckTest, AnIndexThatLagsBehindDoesNotMakeAQueueEmpty) {
  LaggingQueues lagging(queues_);
  send();
  EXPECT_FALSE(*EmptyCheck(lagging, clock_).empty(orders()));
}

TEST_F(EmptyCheckTest, AQueueThatCannotBeCountedIsNamed) {
  EmptyCheck check(queues_, clock_);
  queues_.fail_next(test::StoreCall::stats, 1, Error(ErrorCode::unavailable, "no answer"));
  const auto counted = check.empty(orders());
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().message(), "cannot count what is left in queue orders: no answer");
  EXPECT_TRUE(*check.empty(orders()));
}

}  // namespace
}  // namespace sluice::runtime
