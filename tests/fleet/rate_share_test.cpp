#include "host/fleet/rate_share.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <list>
#include <map>

#include "base/random.hpp"

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::Ge;
using ::testing::Le;

constexpr RateShare::Pace kPace = RateShare::kFree;

/// The notice, which is changed only as it was read.
struct Board {
  std::string text;
  std::int64_t version = 0;
};

/// A host of the job, with clocks of its own. Time passes only for the whole test.
class Host {
 public:
  Host(std::string name, double limit, Board& board, Duration steady, Duration wall)
      : share_(std::move(name), limit, kPace), board_(board), steady_(steady), wall_(wall) {}

  SteadyTime steady(Duration now) const { return SteadyTime(now + steady_); }
  /// What it would claim by now.
  double rate(Duration now) const { return steady(now) < share_.lease().until ? share_.lease().rate : 0; }
  bool due(Duration now) const { return steady(now) >= share_.due(); }
  void renew(Duration now, const RateShare::Use& use) {
    read();
    write(now, use);
  }
  void read() { seen_ = board_; }
  /// By what was read last. False: somebody was in between.
  bool write(Duration now, const RateShare::Use& use) {
    const std::string text = share_.revise(seen_.text, use, WallTime(1'000'000s + now + wall_), steady(now));
    if (seen_.version != board_.version) {
      return false;
    }
    board_ = {text, seen_.version + 1};
    share_.posted(steady(now));
    return true;
  }
  /// The post has been made, and nobody has heard of it.
  void write_and_lose_the_answer(Duration now, const RateShare::Use& use) {
    board_ = {share_.revise(board_.text, use, WallTime(1'000'000s + now + wall_), steady(now)), board_.version + 1};
  }
  void end() { board_ = {share_.without_this_host(board_.text), board_.version + 1}; }
  const RateShare& share() const { return share_; }

 private:
  RateShare share_;
  Board& board_;
  Board seen_;
  const Duration steady_;
  const Duration wall_;
};

class RateShareTest : public ::testing::Test {
 protected:
  Host& add(double limit, Duration steady = 0s, Duration wall = 0s) {
    return hosts_.emplace_back("host-" + std::to_string(++added_), limit, board_, steady, wall);
  }
  /// All that live renew when they are to.
  void pass(Duration time, const std::vector<Host*>& alive, const RateShare::Use& use) {
    for (const Duration end = now_ + time; now_ < end; now_ += step_) {
      for (Host* const host : alive) {
        if (host->due(now_)) {
          host->renew(now_, use);
        }
      }
      EXPECT_THAT(sum(), Le(most_ + 1e-6)) << "at " << now_.count();
    }
  }
  double sum() const {
    double all = 0;
    for (const Host& host : hosts_) {
      all += host.rate(now_);
    }
    return all;
  }

  static constexpr RateShare::Use kHungry{.rate = 10, .short_of = true};
  static constexpr RateShare::Use kIdle{};
  double most_ = 100;
  int added_ = 0;
  Duration step_ = 100ms;
  Duration now_ = 1h;
  Board board_;
  std::list<Host> hosts_;
};

TEST_F(RateShareTest, OneHostHasItAll) {
  Host& host = add(100);
  EXPECT_EQ(host.rate(now_), 0) << "nothing before it is on the board";
  host.renew(now_, kIdle);
  EXPECT_DOUBLE_EQ(host.rate(now_), 100);
  now_ += kPace.rely;
  EXPECT_EQ(host.rate(now_), 0) << "it has not written for long";
}

TEST_F(RateShareTest, ANewHostWaitsUntilTheOtherHasGivenBack) {
  Host& old = add(100);
  old.renew(now_, kHungry);
  Host& fresh = add(100);
  fresh.renew(now_, kHungry);
  EXPECT_EQ(fresh.rate(now_), 0);
  now_ += 1s;
  old.renew(now_, kHungry);
  EXPECT_DOUBLE_EQ(old.rate(now_), 50);
  EXPECT_EQ(fresh.rate(now_), 0);
  fresh.renew(now_, kHungry);
  EXPECT_DOUBLE_EQ(fresh.rate(now_), 50);
  old.end();
  fresh.renew(now_, kHungry);
  EXPECT_DOUBLE_EQ(fresh.rate(now_), 100) << "what a host gave back is free at once";
}

TEST_F(RateShareTest, ThePartOfADeadHostIsFreeOnceItCannotRelyOnIt) {
  Host& dead = add(100);
  Host& other = add(100);
  pass(10s, {&dead, &other}, kHungry);
  EXPECT_DOUBLE_EQ(other.rate(now_), 50);
  pass(kPace.silent - 2s, {&other}, kHungry);
  EXPECT_DOUBLE_EQ(other.rate(now_), 50);
  pass(5s, {&other}, kHungry);
  EXPECT_DOUBLE_EQ(other.rate(now_), 100);
  EXPECT_EQ(dead.rate(now_), 0);
  // It was only frozen.
  pass(5s, {&dead, &other}, kHungry);
  EXPECT_DOUBLE_EQ(dead.rate(now_), 50);
}

TEST_F(RateShareTest, WhoNeedsMoreGetsWhatOthersDoNotUse) {
  Host& busy = add(100);
  Host& idle = add(100);
  for (int i = 0; i < 100; ++i, now_ += 1s) {
    busy.renew(now_, kHungry);
    idle.renew(now_, kIdle);
  }
  EXPECT_THAT(busy.rate(now_ - 1s), Ge(98));
  EXPECT_THAT(idle.rate(now_ - 1s), Ge(0.9));
}

TEST_F(RateShareTest, AHostWhoseRenewalFailedTakesNothingThatOthersHave) {
  Host& host = add(100);
  host.renew(now_, kHungry);
  Host& other = add(100);
  host.read();
  other.renew(now_, kHungry);
  EXPECT_FALSE(host.write(now_, kHungry));
  host.renew(now_, kHungry);
  host.write_and_lose_the_answer(now_, kIdle);
  other.renew(now_, kHungry);
  EXPECT_THAT(sum(), Le(100 + 1e-6));
}

TEST_F(RateShareTest, OfASmallLimitOneHostAtATimeHasAllOfIt) {
  most_ = 1.0 / 3600;
  step_ = 2s;
  Host& one = add(most_);
  Host& two = add(most_);
  Host& three = add(most_);
  std::map<const Host*, int> had;
  for (int hour = 0; hour < 24; ++hour) {
    pass(1h, {&one, &two, &three}, kHungry);
    for (const Host* const host : {&one, &two, &three}) {
      had[host] += host->rate(now_ - step_) > most_ * 0.99 ? 1 : 0;
    }
  }
  EXPECT_EQ(had[&one] + had[&two] + had[&three], 24);
  EXPECT_THAT(std::min({had[&one], had[&two], had[&three]}), Ge(3)) << "they take turns";
}

TEST_F(RateShareTest, WhatNobodyHasClaimedForLongIsACredit) {
  const double limit = 1.0 / 3600;
  Host& first = add(limit);
  first.renew(now_, kIdle);
  EXPECT_DOUBLE_EQ(first.share().lease().credit, 1) << "nobody has ever claimed";
  first.renew(now_, kHungry);
  EXPECT_DOUBLE_EQ(first.share().lease().credit, 0);
  first.end();
  now_ += 30min;
  Host& second = add(limit);
  second.renew(now_, kIdle);
  EXPECT_NEAR(second.share().lease().credit, 0.5, 1e-3);
  Host& third = add(limit);
  second.end();
  third.renew(now_, kIdle);
  EXPECT_NEAR(third.share().lease().credit, 0, 1e-3) << "it has been given once";
}

TEST_F(RateShareTest, ANoticeThatNobodyCanReadIsWrittenAnew) {
  board_ = {"\x01{", 7};
  Host& host = add(100);
  host.renew(now_, kIdle);
  EXPECT_DOUBLE_EQ(host.rate(now_), 100);
}

// Hosts come, die, freeze, end and lose answers, with clocks that differ by hours and days.
TEST_F(RateShareTest, HoweverHostsComeAndGoTheLimitHolds) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SeededRandom random(seed);
    const auto dice = [&random](double chance) { return random.unit() < chance; };
    board_ = {};
    hosts_.clear();
    most_ = std::pow(10.0, random.unit() * 6 - 3);
    std::map<Host*, Duration> alive;  // and until when they are frozen
    double used = 0;
    for (int step = 0; step < 6'000; ++step, now_ += 50ms) {
      if (alive.size() < 6 && dice(0.01)) {
        alive.emplace(&add(most_, std::chrono::hours(static_cast<int>(random.unit() * 1000)),
                           std::chrono::seconds(static_cast<int>(random.unit() * 2000) - 1000)),
                      now_);
      }
      for (auto at = alive.begin(); at != alive.end();) {
        Host& host = *at->first;
        if (now_ < at->second || !host.due(now_)) {
          ++at;
          continue;
        }
        const RateShare::Use use{.rate = random.unit() * most_, .short_of = dice(0.5)};
        if (dice(0.01)) {
          at = alive.erase(at);  // without a word
          continue;
        }
        if (dice(0.01)) {
          // Its job is told of nothing more before.
          at = alive.erase(at);
          hosts_.erase(std::find_if(hosts_.begin(), hosts_.end(), [&host](const Host& one) { return &one == &host; }));
          break;
        }
        if (dice(0.02)) {
          host.read();
          at->second = now_ + std::chrono::milliseconds(static_cast<int>(random.unit() * 30'000));
        } else if (dice(0.05)) {
          host.write_and_lose_the_answer(now_, use);
        } else if (dice(0.1)) {
          host.write(now_, use);  // by what it read before it was frozen
        } else {
          host.renew(now_, use);
        }
        ++at;
      }
      ASSERT_THAT(sum(), Le(most_ * (1 + 1e-6) + 1e-8)) << "seed " << seed << ", step " << step;
      used += sum();
    }
    EXPECT_GT(used, most_ * 600) << "seed " << seed << ": it is used as well";
  }
}

}  // namespace
}  // namespace sluice::fleet
