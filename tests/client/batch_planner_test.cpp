#include <gtest/gtest.h>

#include "client/src/send_queue.hpp"

namespace sluice::client::detail {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

constexpr SteadyTime kNow{1h};
const BatchPlanner kPlanner(5ms, 200);

TEST(BatchPlanner, WaitsForEverWhenThereIsNothing) {
  const BatchOrder order = kPlanner.next(0, {}, true, kNow);
  EXPECT_EQ(order.take, 0U);
  EXPECT_EQ(order.wait_until, SteadyTime::max());
}

TEST(BatchPlanner, LetsLessThanABatchLinger) {
  const BatchOrder order = kPlanner.next(24, kNow - 2ms, false, kNow);
  EXPECT_EQ(order.take, 0U);
  EXPECT_EQ(order.wait_until, kNow + 3ms);
  EXPECT_EQ(kPlanner.next(24, kNow - 5ms + 1ns, false, kNow).take, 0U);
  EXPECT_EQ(kPlanner.next(24, kNow - 5ms, false, kNow).take, 24U);
}

TEST(BatchPlanner, SendsWholeBatchesAndKeepsTheRest) {
  EXPECT_EQ(kPlanner.next(25, kNow, false, kNow).take, 25U);
  EXPECT_EQ(kPlanner.next(49, kNow - 1h, false, kNow).take, 25U) << "the rest's own oldest decides about the rest";
  EXPECT_EQ(kPlanner.next(75, kNow, false, kNow).take, 75U);
}

TEST(BatchPlanner, SendsNoMoreThanALotAtOnce) {
  EXPECT_EQ(kPlanner.next(10'000, kNow, false, kNow).take, 200U);
  EXPECT_EQ(kPlanner.next(10'000, kNow, true, kNow).take, 200U);
}

TEST(BatchPlanner, HurryWaitsForNobody) { EXPECT_EQ(kPlanner.next(1, kNow, true, kNow).take, 1U); }

TEST(BatchPlanner, ALingerOfAnyLengthIsAFarTime) {
  const BatchPlanner patient(Duration::max(), 200);
  const BatchOrder order = patient.next(1, kNow, false, kNow);
  EXPECT_EQ(order.take, 0U);
  EXPECT_GT(order.wait_until, kNow + 1000h);
  const BatchPlanner hasty(Duration::zero(), 200);
  EXPECT_EQ(hasty.next(1, kNow, false, kNow).take, 1U);
}

}  // namespace
}  // namespace sluice::client::detail
