#include "host/runtime/host_events.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <vector>

namespace sluice::runtime {
namespace {

class WatchdogTest : public testing::Test {
 protected:
  void left(int status) {
    status_ = status;
    status_.notify_all();
  }
  int wait_for_the_end() {
    status_.wait(-1);
    return status_;
  }
  SteadyTime now() const { return std::chrono::steady_clock::now(); }

  std::atomic<int> status_{-1};
  Watchdog watchdog_{[this](int status) { left(status); }};
};

TEST_F(WatchdogTest, EndsTheProcessAtItsTimeWithItsLastWords) {
  std::atomic<bool> said{false};
  watchdog_.set_last_words([&] { return Watchdog::Ending{75, [&] { said = true; }}; });
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now());
  EXPECT_EQ(wait_for_the_end(), 75);
  EXPECT_TRUE(said);
  EXPECT_FALSE(watchdog_.begin_last_words(0)) << "they have been said";
}

TEST_F(WatchdogTest, TheEndIsOnlyEverBroughtForward) {
  watchdog_.set_last_words([] { return Watchdog::Ending{0, {}}; });
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now() + std::chrono::hours(2));
  watchdog_.end_by(now() + std::chrono::milliseconds(1));
  watchdog_.end_by(now() + std::chrono::hours(1));
  EXPECT_EQ(wait_for_the_end(), 0);
}

TEST_F(WatchdogTest, WhatTheHostHasSaidIsNotSaidAgainAndItsStatusStands) {
  std::atomic<bool> said{false};
  watchdog_.set_last_words([&] { return Watchdog::Ending{75, [&] { said = true; }}; });
  ASSERT_TRUE(watchdog_.start().has_value());
  EXPECT_TRUE(watchdog_.begin_last_words(0));
  watchdog_.end_by(now());
  EXPECT_EQ(wait_for_the_end(), 0);
  EXPECT_FALSE(said);
}

TEST_F(WatchdogTest, LastWordsThatHangDoNotKeepTheProcess) {
  std::atomic<bool> let_go{false};
  watchdog_.set_last_words([&]() -> Watchdog::Ending {
    let_go.wait(false);
    return {0, {}};
  });
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now());
  EXPECT_EQ(wait_for_the_end(), Watchdog::kUnknownStatus);
  let_go = true;
  let_go.notify_all();
  watchdog_.stop();
}

TEST_F(WatchdogTest, TheStatusOfWordsThatHangInTheSayingStands) {
  std::atomic<bool> let_go{false};
  watchdog_.set_last_words([&] { return Watchdog::Ending{0, [&] { let_go.wait(false); }}; });
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now());
  EXPECT_EQ(wait_for_the_end(), 0);
  let_go = true;
  let_go.notify_all();
  watchdog_.stop();
}

TEST_F(WatchdogTest, LastWordsForWhichThereIsNoMemoryDoNotEither) {
  watchdog_.set_last_words([]() -> Watchdog::Ending { throw std::bad_alloc(); });
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now());
  EXPECT_EQ(wait_for_the_end(), Watchdog::kUnknownStatus);
}

TEST_F(WatchdogTest, StopsBeforeStartTwiceAndWithoutHavingEndedAnything) {
  watchdog_.stop();
  ASSERT_TRUE(watchdog_.start().has_value());
  watchdog_.end_by(now() + std::chrono::hours(1));
  watchdog_.stop();
  watchdog_.stop();
  EXPECT_EQ(status_, -1);
}

}  // namespace
}  // namespace sluice::runtime
