#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "dynamo/credentials/chain.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"

namespace sluice::dynamo {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

/// A source whose answers a test sets, and which can be made to wait.
struct CachingTest : testing::Test {
  Result<Credentials> load() {
    MutexLock lock(mutex);
    const int call = ++loads;
    changed.notify_all();
    changed.wait_until(mutex, SteadyTime::max(), [&]() SLUICE_NO_TSA { return !held; });
    if (failing) {
      return Error(ErrorKind::no_credentials, "the source is away");
    }
    Credentials out;
    out.access_key_id = fixed_key.empty() ? "K" + std::to_string(call) : fixed_key;
    out.secret_access_key = "s";
    out.source = "test";
    if (expiry) {
      out.expires_at = expiry;
    } else if (lifetime > Duration::zero()) {
      out.expires_at = clock.wall_now() + lifetime;
    }
    return out;
  }
  std::string key() {
    const auto found = provider.get(Deadline::never());
    return found ? found->access_key_id : found.error().message;
  }
  void set_held(bool value) {
    const MutexLock lock(mutex);
    held = value;
    changed.notify_all();
  }
  void wait_for_loads(int count) {
    const MutexLock lock(mutex);
    changed.wait_until(mutex, SteadyTime::max(), [&]() SLUICE_NO_TSA { return loads >= count; });
  }

  test::FakeClock clock;
  test::FakeRandom random{0.999999};
  Mutex mutex;
  Condition changed;
  int loads = 0;
  bool held = false;
  std::atomic<bool> failing = false;
  Duration lifetime = hours(1);
  std::optional<WallTime> expiry;
  std::string fixed_key;
  CachingProvider provider{[this](Deadline) { return load(); }, clock, random};
};

TEST_F(CachingTest, KeepsCredentialsUntilTheAdvisoryWindow) {
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(44));
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(1));
  EXPECT_EQ(key(), "K2");
  EXPECT_EQ(key(), "K2");
  EXPECT_EQ(loads, 2);
}

TEST_F(CachingTest, KeepsLongLivedKeysForEver) {
  lifetime = Duration::zero();
  EXPECT_EQ(key(), "K1");
  clock.advance(hours(10'000));
  EXPECT_EQ(key(), "K1");
}

TEST_F(CachingTest, DoesNotAskForShortLivedOnesWithEveryCall) {
  lifetime = minutes(15);
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(5));
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(7));
  EXPECT_EQ(key(), "K2");
}

TEST_F(CachingTest, LetsOthersGoOnWhileOneRefreshes) {
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(46));
  set_held(true);
  std::string refreshed;
  std::jthread first([&] { refreshed = key(); });
  wait_for_loads(2);
  EXPECT_EQ(key(), "K1");
  set_held(false);
  first.join();
  EXPECT_EQ(refreshed, "K2");
}

TEST_F(CachingTest, MakesAllWaitForOneRefreshInTheMandatoryWindow) {
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(51));
  set_held(true);
  std::atomic<int> renewed = 0;
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { renewed += key() == "K2" ? 1 : 0; });
  }
  wait_for_loads(2);
  set_held(false);
  threads.clear();
  EXPECT_EQ(renewed, 4);
  EXPECT_EQ(loads, 2);
}

TEST_F(CachingTest, UsesTheLastOnesUntilTheyExpireWhileTheSourceIsAway) {
  EXPECT_EQ(key(), "K1");
  failing = true;
  clock.advance(minutes(59));
  EXPECT_EQ(key(), "K1");
  clock.advance(minutes(1));
  EXPECT_EQ(key(), "the source is away");
  failing = false;
  clock.advance(minutes(2));
  EXPECT_EQ(key(), "K4");
}

TEST_F(CachingTest, SpacesItsAttempts) {
  failing = true;
  EXPECT_EQ(key(), "the source is away");
  EXPECT_EQ(key(), "the source is away");
  EXPECT_EQ(loads, 1);
  clock.advance(seconds(1));
  EXPECT_EQ(key(), "the source is away");
  EXPECT_EQ(loads, 2);
  clock.advance(seconds(1));  // two seconds by now
  EXPECT_EQ(key(), "the source is away");
  EXPECT_EQ(loads, 2);
  for (int i = 0; i < 100; ++i) {
    clock.advance(minutes(1));
    key();
  }
  EXPECT_EQ(loads, 102);  // never more than a minute apart
}

TEST_F(CachingTest, ALoadThatItsCallersDeadlineEndedHoldsUpNobodyElse) {
  failing = true;
  EXPECT_FALSE(provider.get(Deadline::at(clock.steady_now())));
  failing = false;
  EXPECT_EQ(key(), "K2");
}

TEST_F(CachingTest, ALoadThatItsCallersDeadlineEndedIsSpacedWhileTheLastOnesAreValid) {
  EXPECT_EQ(key(), "K1");
  for (const minutes later : {minutes(46), minutes(5)}) {
    clock.advance(later);
    failing = true;
    EXPECT_TRUE(provider.get(Deadline::at(clock.steady_now())));
    const int made = loads;
    EXPECT_EQ(key(), "K1");
    EXPECT_EQ(loads, made);
  }
}

TEST_F(CachingTest, AsksNowAndThenWhenTheSourceGivesTheSameOnesAgain) {
  expiry = clock.wall_now() + hours(1);
  fixed_key = "SAME";
  EXPECT_EQ(key(), "SAME");
  clock.advance(minutes(46));
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(key(), "SAME");
  }
  EXPECT_EQ(loads, 2);
  clock.advance(minutes(1));
  fixed_key = "NEWER";
  expiry = clock.wall_now() + hours(1);
  EXPECT_EQ(key(), "NEWER");
  clock.advance(minutes(30));
  EXPECT_EQ(key(), "NEWER");
  EXPECT_EQ(loads, 3);
}

TEST_F(CachingTest, ReplacesRefusedOnesOnce) {
  const auto first = provider.get(Deadline::never());
  provider.refused(*first);
  EXPECT_EQ(key(), "K2");
  provider.refused(*first);  // somebody who was slower to notice
  EXPECT_EQ(key(), "K2");
}

TEST_F(CachingTest, OnesThatAreRefusedAgainAreNotReplacedWithEveryCall) {
  const auto loads_after_refusals = [this] {
    for (int i = 0; i < 10; ++i) {
      const auto found = provider.get(Deadline::never());
      EXPECT_TRUE(found);  // so that AWS says why they are no good
      provider.refused(*found);
    }
    return loads;
  };
  for (const int made : {2, 3, 4}) {
    EXPECT_EQ(loads_after_refusals(), made);
    clock.advance(seconds(5));
  }
  clock.advance(minutes(10));  // they were good for a while, and are replaced as those before
  EXPECT_EQ(loads_after_refusals(), 5);
  clock.advance(seconds(1));
  EXPECT_EQ(loads_after_refusals(), 6);
}

TEST_F(CachingTest, SaysSoWhenOnlyExpiredOnesAreToBeHad) {
  expiry = clock.wall_now() - seconds(1);
  EXPECT_EQ(key(), "the credentials from test have expired already; is this machine's clock right?");
}

TEST_F(CachingTest, WaitsNoLongerThanTheDeadline) {
  set_held(true);
  std::jthread first([&] { key(); });
  wait_for_loads(1);
  const auto second = provider.get(Deadline::at(clock.steady_now()));
  EXPECT_EQ(second.error().kind, ErrorKind::timeout);
  set_held(false);
}

}  // namespace
}  // namespace sluice::dynamo
