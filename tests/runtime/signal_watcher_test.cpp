#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "host/runtime/host_events.hpp"

namespace sluice::runtime {
namespace {

class SignalWatcherTest : public testing::Test {
 protected:
  SignalWatcherTest() { SignalWatcher::block_signals(); }

  HostEvents events_;
};

TEST_F(SignalWatcherTest, PassesOnWhatArrivesAlsoFromBeforeItsStart) {
  kill(getpid(), SIGHUP);
  SignalWatcher watcher(events_);
  watcher.start();
  events_.wait_until(SteadyTime::max());
  EXPECT_TRUE(events_.take_reload());
  EXPECT_FALSE(events_.terminating());
  kill(getpid(), SIGTERM);
  events_.wait_until(SteadyTime::max());
  EXPECT_TRUE(events_.terminating());
  watcher.stop();
  EXPECT_FALSE(events_.take_reload());
}

TEST_F(SignalWatcherTest, StopsBeforeStartTwiceAndFromManyThreads) {
  SignalWatcher never(events_);
  never.stop();
  never.stop();
  for (int round = 0; round < 50; ++round) {
    SignalWatcher watcher(events_);
    watcher.start();
    std::vector<std::jthread> stoppers;
    for (int i = 0; i < 4; ++i) {
      stoppers.emplace_back([&] { watcher.stop(); });
    }
  }
}

TEST_F(SignalWatcherTest, SurvivesAClosedPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  close(ends[1]);
}

}  // namespace
}  // namespace sluice::runtime
