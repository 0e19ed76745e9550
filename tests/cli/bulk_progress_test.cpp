#include <gtest/gtest.h>

#include "host/cli/commands/bulk.hpp"

namespace sluice::cli {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(BulkProgress, SaysRateAndTimeLeft) {
  const BulkProgress counted(SteadyTime{}, 2135);
  EXPECT_EQ(counted.text(0, SteadyTime{} + 5s), "");
  EXPECT_EQ(counted.text(135, SteadyTime{} + 100ms), "") << "a single batch is no rate";
  EXPECT_EQ(counted.text(135, SteadyTime{} + 10s), ", 14/s, 2m left");
  EXPECT_EQ(counted.text(2135, SteadyTime{} + 10s), ", 214/s");
  EXPECT_EQ(BulkProgress(SteadyTime{}, std::nullopt).text(35, SteadyTime{} + 10s), ", 3.5/s");
}

}  // namespace
}  // namespace sluice::cli
