#include "host/operate/count_pace.hpp"

#include <gtest/gtest.h>

namespace sluice::operate {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST(CountPace, TellsHowFastACountShrinksAndWhenItIsEmpty) {
  CountPace pace(15s);
  EXPECT_FALSE(pace.per_second());
  pace.add(1s, 1000);
  EXPECT_FALSE(pace.per_second()) << "one look is no pace";
  pace.add(3s, 900);
  EXPECT_DOUBLE_EQ(*pace.per_second(), -50);
  EXPECT_EQ(*pace.empty_in(), 18s);
}

TEST(CountPace, ForgetsWhatIsLongAgo) {
  CountPace pace(15s);
  pace.add(1s, 100'000);
  for (int second = 2; second <= 40; ++second) {
    pace.add(std::chrono::seconds(second), 500 + static_cast<std::uint64_t>(second));
  }
  EXPECT_DOUBLE_EQ(*pace.per_second(), 1);
  EXPECT_FALSE(pace.empty_in()) << "it grows";
  pace.add(100s, 0);
  EXPECT_FALSE(pace.empty_in()) << "it is empty";
}

TEST(CountPace, PassesOverALookAtTheSameTime) {
  CountPace pace(10s);
  pace.add(1s, 10);
  pace.add(1500ms, 20);
  pace.add(1500ms, 1000);
  EXPECT_DOUBLE_EQ(*pace.per_second(), 20);
}

}  // namespace
}  // namespace sluice::operate
