#include <gtest/gtest.h>

#include <thread>

#include "host/plugin/handler_instance.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

TEST(Attempt, WithoutLimitNeverTimesOut) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(SteadyTime::max());
  clock.set_steady(SteadyTime::max() - 1ns);
  EXPECT_FALSE(attempt.timed_out());
  EXPECT_FALSE(attempt.stop_requested());
  EXPECT_EQ(attempt.time_left(), Duration::max());
}

TEST(Attempt, TimesOutAtItsDeadline) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 10s);
  EXPECT_EQ(attempt.time_left(), 10s);
  clock.advance(10s - 1ns);
  EXPECT_FALSE(attempt.stop_requested());
  clock.advance(1ns);
  EXPECT_TRUE(attempt.timed_out());
  EXPECT_TRUE(attempt.stop_requested());
  EXPECT_EQ(attempt.time_left(), 0s);
  clock.advance(1h);
  EXPECT_EQ(attempt.time_left(), 0s);
}

TEST(Attempt, StopIsNoTimeOut) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 10s);
  attempt.request_stop();
  EXPECT_TRUE(attempt.stop_requested());
  EXPECT_FALSE(attempt.timed_out());
  EXPECT_TRUE(attempt.extend(1s)) << "a draining host still lets a handler finish";
}

TEST(Attempt, ADrainLeavesNoMoreTimeThanItHas) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(SteadyTime::max());
  attempt.request_stop(clock.steady_now() + 10s);
  EXPECT_EQ(attempt.time_left(), 10s);
  attempt.request_stop(clock.steady_now() + 1h);
  EXPECT_EQ(attempt.time_left(), 10s) << "an end that was told stands";
  EXPECT_TRUE(attempt.extend(1h));
  EXPECT_EQ(attempt.time_left(), 10s);
  clock.advance(10s);
  EXPECT_EQ(attempt.time_left(), 0s);
  EXPECT_FALSE(attempt.timed_out()) << "the host's end is not the message's fault";
  attempt.arm(SteadyTime::max());
  EXPECT_EQ(attempt.time_left(), Duration::max());
}

TEST(Attempt, ALostLeaseLeavesNoTime) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 10s);
  attempt.lose_lease();
  EXPECT_EQ(attempt.time_left(), 0s);
  EXPECT_FALSE(attempt.timed_out());
}

TEST(Attempt, ArmsAfresh) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.lose_lease();
  attempt.arm(clock.steady_now() + 1s);
  EXPECT_FALSE(attempt.stop_requested());
  EXPECT_TRUE(attempt.extend(5s));
  EXPECT_EQ(attempt.time_left(), 5s);
}

TEST(Attempt, ExtendsFromNowAndSaturates) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 10s);
  clock.advance(12s);
  EXPECT_TRUE(attempt.extend(3s));
  EXPECT_FALSE(attempt.stop_requested());
  EXPECT_EQ(attempt.deadline(), clock.steady_now() + 3s);
  EXPECT_TRUE(attempt.extend(Duration::max()));
  EXPECT_EQ(attempt.deadline(), SteadyTime::max());
  EXPECT_TRUE(attempt.extend(-5s));
  EXPECT_TRUE(attempt.timed_out());
}

TEST(Attempt, CannotBeExtendedOnceTheLeaseIsLost) {
  FakeClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 10s);
  attempt.lose_lease();
  EXPECT_TRUE(attempt.stop_requested());
  EXPECT_FALSE(attempt.extend(1s));
  EXPECT_EQ(attempt.deadline(), clock.steady_now() + 10s);
}

TEST(Attempt, WaitReturnsAtOnceWhenStoppedOrWithoutTime) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.arm(SteadyTime::max());
  EXPECT_FALSE(attempt.wait_for_stop(0ns));
  EXPECT_FALSE(attempt.wait_for_stop(-1h));
  attempt.request_stop();
  EXPECT_TRUE(attempt.wait_for_stop(Duration::max()));
}

TEST(Attempt, WaitEndsAtTheDeadline) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 2ms);
  EXPECT_TRUE(attempt.wait_for_stop(1h));
}

TEST(Attempt, WaitEndsAtItsOwnTime) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.arm(clock.steady_now() + 1h);
  EXPECT_FALSE(attempt.wait_for_stop(2ms));
}

TEST(Attempt, StopFromAnotherThreadWakesEveryWaiter) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.arm(SteadyTime::max());
  std::atomic<int> woken{0};
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.emplace_back([&] { woken += attempt.wait_for_stop(Duration::max()) ? 1 : 0; });
    }
    attempt.request_stop();
  }
  EXPECT_EQ(woken, 4);
}

TEST(Attempt, ShorteningTheTimeOutWakesAWaiter) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.arm(SteadyTime::max());
  std::atomic<bool> stopped{false};
  {
    const std::jthread waiter([&] { stopped = attempt.wait_for_stop(Duration::max()); });
    EXPECT_TRUE(attempt.extend(1ms));
  }
  EXPECT_TRUE(stopped);
}

/// Notes what it is told.
class Notes final : public AttemptWatcher {
 public:
  void stop_requested(SteadyTime until, bool lease_lost) noexcept override {
    ++stops;
    end = until;
    lost = lease_lost;
  }
  void extended(Duration duration) noexcept override { extension = duration; }

  int stops = 0;
  bool lost = false;
  SteadyTime end{};
  Duration extension{};
};

TEST(AttemptWatcher, IsToldOfStopLossAndExtension) {
  const SystemClock clock;
  Attempt attempt(clock);
  Notes notes;
  attempt.watch(notes);
  attempt.extend(std::chrono::seconds(7));
  EXPECT_EQ(notes.extension, std::chrono::seconds(7));
  const SteadyTime end = clock.steady_now() + std::chrono::hours(1);
  attempt.request_stop(end);
  EXPECT_EQ(notes.stops, 1);
  EXPECT_EQ(notes.end, end);
  EXPECT_FALSE(notes.lost);
  attempt.lose_lease();
  EXPECT_EQ(notes.stops, 2);
  EXPECT_TRUE(notes.lost);
}

TEST(AttemptWatcher, IsToldAtOnceOfAStopThatWasThereBefore) {
  const SystemClock clock;
  Attempt attempt(clock);
  attempt.lose_lease();
  Notes notes;
  attempt.watch(notes);
  EXPECT_EQ(notes.stops, 1);
  EXPECT_TRUE(notes.lost);
}

TEST(AttemptWatcher, IsToldNothingOnceItNoLongerWatches) {
  const SystemClock clock;
  Attempt attempt(clock);
  Notes notes;
  attempt.watch(notes);
  attempt.unwatch(notes);
  attempt.request_stop();
  EXPECT_EQ(notes.stops, 0);
}

}  // namespace
}  // namespace sluice::plugin
