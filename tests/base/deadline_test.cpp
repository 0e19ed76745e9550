#include "base/deadline.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

TEST(Deadline, IsSoLongAfterNow) {
  FakeClock clock;
  const Deadline deadline = Deadline::after(clock, 5s);
  EXPECT_FALSE(deadline.passed(clock.steady_now()));
  EXPECT_EQ(deadline.left(clock.steady_now()), 5s);
  clock.advance(5s);
  EXPECT_TRUE(deadline.passed(clock.steady_now()));
  EXPECT_EQ(deadline.left(clock.steady_now()), 0s);
}

TEST(Deadline, BeyondTheEndOfTheClockIsNever) {
  FakeClock clock;
  clock.advance(1h);
  const Deadline deadline = Deadline::after(clock, Duration::max());
  EXPECT_TRUE(deadline.is_never());
  EXPECT_FALSE(deadline.passed(clock.steady_now()));
  EXPECT_TRUE(Deadline::after(clock, Duration::max() - 30min).is_never());
}

}  // namespace
}  // namespace sluice::test
