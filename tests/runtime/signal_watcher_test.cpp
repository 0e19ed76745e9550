#include "host/runtime/host_events.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "base/mutex.hpp"

namespace sluice::runtime {
namespace {

class SignalWatcherTest : public testing::Test {
 protected:
  SignalWatcherTest() { SignalWatcher::block_signals(); }

  void seen(int signal) {
    {
      const MutexLock lock(mutex_);
      signals_.push_back(signal);
    }
    changed_.notify_all();
  }
  void wait_for(std::size_t count) {
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, SteadyTime::max(), [&]() SLUICE_NO_TSA { return signals_.size() >= count; });
  }

  Mutex mutex_;
  Condition changed_;
  std::vector<int> signals_;
};

TEST_F(SignalWatcherTest, PassesOnWhatArrivesAlsoFromBeforeItsStart) {
  kill(getpid(), SIGHUP);
  SignalWatcher watcher([this](int signal) { seen(signal); });
  watcher.start();
  wait_for(1);
  kill(getpid(), SIGTERM);
  wait_for(2);
  watcher.stop();
  EXPECT_EQ(signals_, (std::vector<int>{SIGHUP, SIGTERM}));
}

TEST_F(SignalWatcherTest, StopsBeforeStartTwiceAndFromManyThreads) {
  SignalWatcher never([](int) {});
  never.stop();
  never.stop();
  for (int round = 0; round < 50; ++round) {
    SignalWatcher watcher([](int) {});
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
