#include "host/runtime/host.hpp"

#include <gtest/gtest.h>

namespace sluice::runtime {
namespace {

TEST(ProgressLine, GroupsDigitsLeavesZeroesOutAndTellsTheRate) {
  const SteadyTime start{std::chrono::seconds(100)};
  ProgressLine line(start);
  work::LedgerSnapshot total;
  EXPECT_EQ(line.next(total, start + std::chrono::seconds(1)), "0 done; 0/s");
  total.claimed = 1'234'567;
  total.done = 1'234'000;
  total.rejected = 500;
  EXPECT_EQ(line.next(total, start + std::chrono::seconds(3)), "1,234,000 done, 500 rejected, 67 in flight; 617,250/s");
  EXPECT_EQ(line.next(total, start + std::chrono::seconds(3)), "1,234,000 done, 500 rejected, 67 in flight; 0/s");
}

}  // namespace
}  // namespace sluice::runtime
