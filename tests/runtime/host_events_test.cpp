#include "host/runtime/host_events.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

namespace sluice::runtime {
namespace {

TEST(HostEvents, OneTerminationDrainsTwoStopHard) {
  HostEvents events;
  std::vector<int> told;
  events.on_termination([&](int nth) { told.push_back(nth); });
  EXPECT_FALSE(events.terminating());
  events.signal(SIGTERM);
  EXPECT_TRUE(events.terminating());
  EXPECT_FALSE(events.hard_stop_requested());
  EXPECT_EQ(told, std::vector<int>{1});
  events.signal(SIGINT);
  EXPECT_TRUE(events.hard_stop_requested());
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
}

TEST(HostEvents, AskingForADrainNeverStopsHard) {
  HostEvents events;
  std::vector<int> told;
  events.on_termination([&](int nth) { told.push_back(nth); });
  EXPECT_TRUE(events.ask_drain());
  EXPECT_TRUE(events.terminating());
  EXPECT_FALSE(events.ask_drain());
  EXPECT_FALSE(events.hard_stop_requested());
  EXPECT_EQ(told, std::vector<int>{1});
}

TEST(HostEvents, AnActionThatWasReplacedIsNotCalledAnyMore) {
  HostEvents events;
  std::atomic<bool> inside{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  events.on_termination([&](int) {
    inside = true;
    inside.notify_all();
    may_end.wait(false);
    ended = true;
  });
  std::jthread watcher([&] { events.signal(SIGTERM); });
  inside.wait(false);
  std::jthread lets_go([&] {
    may_end = true;
    may_end.notify_all();
  });
  events.on_termination({});
  EXPECT_TRUE(ended) << "whatever it refers to may go now";
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
