#include "host/runtime/host_events.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace sluice::runtime {
namespace {

TEST(HostEvents, OneTerminationDrainsTwoStopHard) {
  HostEvents events;
  int hard_stops = 0;
  events.on_hard_stop([&] { ++hard_stops; });
  EXPECT_FALSE(events.terminating());
  events.signal(SIGTERM);
  EXPECT_TRUE(events.terminating());
  EXPECT_FALSE(events.hard_stop_requested());
  EXPECT_EQ(hard_stops, 0);
  events.signal(SIGINT);
  EXPECT_TRUE(events.hard_stop_requested());
  EXPECT_EQ(hard_stops, 1);
}

TEST(HostEvents, HangupsCollapseIntoOneReload) {
  HostEvents events;
  EXPECT_FALSE(events.take_reload());
  events.signal(SIGHUP);
  events.signal(SIGHUP);
  EXPECT_TRUE(events.take_reload());
  EXPECT_FALSE(events.take_reload());
  EXPECT_FALSE(events.terminating());
}

TEST(HostEvents, ASignalBeforeTheWaitIsNotMissed) {
  HostEvents events;
  events.signal(SIGHUP);
  events.wait_until(SteadyTime::max());
  EXPECT_TRUE(events.take_reload());
}

TEST(HostEvents, AWaitEndsWithTheSignalOfAnotherThread) {
  HostEvents events;
  std::jthread sender([&] { events.signal(SIGTERM); });
  while (!events.terminating()) {
    events.wait_until(SteadyTime::max());
  }
}

TEST(HostEvents, AWaitEndsAtItsTime) {
  HostEvents events;
  events.wait_until(SystemClock().steady_now());
  EXPECT_FALSE(events.terminating());
}

}  // namespace
}  // namespace sluice::runtime
