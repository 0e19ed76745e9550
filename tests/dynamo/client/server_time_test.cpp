#include "dynamo/server_time.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using namespace std::chrono_literals;

class ServerTimeTest : public ::testing::Test {
 protected:
  /// An answer of a server whose clock is `skew` from ours.
  void answer(Duration skew, Duration elapsed = 4ms) {
    time_.learn(std::chrono::floor<std::chrono::seconds>(wall_ + skew - elapsed / 2), wall_, steady_, elapsed);
  }
  void pass(Duration span) {
    wall_ += span;
    steady_ += span;
  }
  ClockReading reading() const { return *time_.reading(wall_, steady_); }

  ServerTime time_;
  WallTime wall_{1'767'323'045'123ms};
  SteadyTime steady_{1000s};
};

TEST_F(ServerTimeTest, KnowsNothingBeforeTheFirstAnswer) {
  EXPECT_FALSE(time_.reading(wall_, steady_));
  time_.learn({}, wall_, steady_, 4ms);
  EXPECT_FALSE(reading().dated);
  EXPECT_EQ(reading().skew, 0s);
}

TEST_F(ServerTimeTest, LeavesARightClockAlone) {
  for (int i = 0; i < 100; ++i) {
    answer(0s);
    EXPECT_EQ(reading().skew, 0s);
    EXPECT_EQ(reading().doubt, 0s);
    pass(137ms);
  }
}

TEST_F(ServerTimeTest, ComesCloseWithManyAnswers) {
  answer(1h);
  EXPECT_LE(std::chrono::abs(reading().skew - 1h), reading().doubt);
  EXPECT_LE(reading().doubt, 503ms);
  for (int i = 0; i < 100; ++i) {
    pass(137ms);
    answer(1h);
  }
  EXPECT_LE(std::chrono::abs(reading().skew - 1h), reading().doubt);
  EXPECT_LE(reading().doubt, 20ms);
}

TEST_F(ServerTimeTest, NoticesThatTheClockWasSet) {
  answer(0s);
  wall_ += 1h;
  EXPECT_TRUE(reading().moved);
  EXPECT_GE(reading().doubt, 1h);
  answer(-1h);
  EXPECT_FALSE(reading().moved);
  EXPECT_LT(reading().doubt, 1s);
}

TEST_F(ServerTimeTest, DoubtsServersThatDisagree) {
  answer(0s);
  pass(1s);
  answer(3h);
  EXPECT_GE(reading().doubt, 2h);
  pass(1s);
  answer(3h);
  EXPECT_LT(reading().doubt, 1s);
}

}  // namespace
}  // namespace sluice::dynamo
