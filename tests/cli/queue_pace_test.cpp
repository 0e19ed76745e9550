#include <gtest/gtest.h>

#include "host/cli/commands/bulk.hpp"
#include "host/cli/views/queue_report.hpp"

namespace sluice::cli {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(QueuePace, TellsHowFastAQueueShrinksAndWhenItIsEmpty) {
  QueuePace pace;
  EXPECT_FALSE(pace.per_second());
  pace.add(SteadyTime{} + 1s, 1000);
  EXPECT_FALSE(pace.per_second()) << "one look is no pace";
  pace.add(SteadyTime{} + 3s, 900);
  EXPECT_DOUBLE_EQ(*pace.per_second(), -50);
  EXPECT_EQ(*pace.empty_in(), 18s);
}

TEST(QueuePace, ForgetsWhatIsLongAgo) {
  QueuePace pace;
  pace.add(SteadyTime{} + 1s, 100'000);
  for (int second = 2; second <= 40; ++second) {
    pace.add(SteadyTime{} + second * 1s, 500 + static_cast<std::uint64_t>(second));
  }
  EXPECT_DOUBLE_EQ(*pace.per_second(), 1);
  EXPECT_FALSE(pace.empty_in()) << "it grows";
  pace.add(SteadyTime{} + 100s, 0);
  EXPECT_FALSE(pace.empty_in()) << "it is empty";
}

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
