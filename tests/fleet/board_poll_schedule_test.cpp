#include "host/fleet/board_poll_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using Duty = BoardPollSchedule::Duty;

constexpr SteadyTime kStart{std::chrono::hours(1)};
const queue::BoardTraits kTable{.place = "t", .tells = false, .billed = true, .most_bytes = 16'384};
const queue::BoardTraits kFile{.place = "f", .tells = true, .billed = false, .most_bytes = 262'144};

/// Does what it says for so long; how often each.
std::map<Duty, int> run(BoardPollSchedule& poll_schedule, SteadyTime from, Duration span) {
  std::map<Duty, int> counts;
  for (SteadyTime now = from; now < from + span;) {
    const auto order = poll_schedule.next(now);
    if (order.duty == Duty::none) {
      EXPECT_GT(order.wake, now);
      now = order.wake;
    } else {
      ++counts[order.duty];
      poll_schedule.done(order.duty, now);
    }
  }
  return counts;
}

TEST(BoardPollSchedule, AnIdleHostLooksOftenAndTellsSeldom) {
  BoardPollSchedule table(kTable, kStart);
  table.size(900 - 160, 1);
  auto counts = run(table, kStart, 1h);
  EXPECT_NEAR(counts[Duty::look], 3'600, 2) << "within two polls";
  EXPECT_NEAR(counts[Duty::tell], 120, 1);
  EXPECT_EQ(counts[Duty::sweep], 1);
  BoardPollSchedule file(kFile, kStart);
  counts = run(file, kStart, 1h);
  EXPECT_NEAR(counts[Duty::look], 360, 1) << "the bell tells earlier";
  EXPECT_NEAR(counts[Duty::tell], 240, 1);
}

TEST(BoardPollSchedule, WhateverThereIsToTellCostsNoMoreOrIsToldOnceAMinute) {
  for (const std::size_t bytes : {100U, 2'000U, 16'000U}) {
    for (const std::size_t boards : {1U, 3U, 50U}) {
      BoardPollSchedule poll_schedule(kTable, kStart);
      poll_schedule.size(bytes, boards);
      auto counts = run(poll_schedule, kStart, 10h);
      const std::size_t units_each = (bytes + 160 + 1'023) / 1'024;
      const double units = static_cast<double>(counts[Duty::tell]) * static_cast<double>(units_each * boards);
      EXPECT_TRUE(units / 36'000 <= 0.1 || counts[Duty::tell] <= 601) << bytes << " bytes on " << boards << " boards";
      EXPECT_GE(counts[Duty::tell], 600) << "a host that is gone or unwell would be missed late";
    }
  }
}

TEST(BoardPollSchedule, TellsMoreOftenWhileSomebodyLooks) {
  BoardPollSchedule poll_schedule(kTable, kStart);
  run(poll_schedule, kStart, 5s);
  poll_schedule.watched_until(kStart + 65s);
  EXPECT_EQ(poll_schedule.interval(kStart + 5s), BoardPollSchedule::kTellWatchedBilled);
  auto counts = run(poll_schedule, kStart + 5s, 60s);
  EXPECT_NEAR(counts[Duty::tell], 20, 1);
  EXPECT_FALSE(poll_schedule.watched(kStart + 65s));
  EXPECT_EQ(poll_schedule.interval(kStart + 65s), BoardPollSchedule::kTellEveryBilled);
  counts = run(poll_schedule, kStart + 65s, 300s);
  EXPECT_NEAR(counts[Duty::tell], 10, 1);
}

TEST(BoardPollSchedule, AfterAWatchTheNextRecordComesWhenTheLastOneSaidSo) {
  for (const queue::BoardTraits& traits : {kFile, kTable}) {
    BoardPollSchedule poll_schedule(traits, kStart);
    const SteadyTime end = kStart + 60s;
    poll_schedule.watched_until(end);
    SteadyTime told = kStart;
    Duration announced{};
    for (SteadyTime now = kStart; now < end + 600s;) {
      const auto order = poll_schedule.next(now);
      if (order.duty == Duty::none) {
        now = order.wake;
        continue;
      }
      if (order.duty == Duty::tell) {
        EXPECT_TRUE(announced == Duration::zero() || now - told <= announced) << "a healthy host would be called late";
        announced = poll_schedule.interval(now);
        told = now;
      }
      poll_schedule.done(order.duty, now);
    }
  }
}

TEST(BoardPollSchedule, WhatHappensIsAttendedToAtOnce) {
  BoardPollSchedule poll_schedule(kFile, kStart);
  run(poll_schedule, kStart, 5s);
  const SteadyTime now = kStart + 5s;
  EXPECT_EQ(poll_schedule.next(now).duty, Duty::none);
  poll_schedule.look_soon();
  poll_schedule.tell_soon();
  EXPECT_EQ(poll_schedule.next(now).duty, Duty::look);
  poll_schedule.done(Duty::look, now);
  EXPECT_EQ(poll_schedule.next(now).duty, Duty::tell);
  poll_schedule.done(Duty::tell, now);
  EXPECT_EQ(poll_schedule.next(now).duty, Duty::none);
}

TEST(BoardPollSchedule, WhatFailsIsTriedMoreAndMoreSeldom) {
  BoardPollSchedule poll_schedule(kFile, kStart);
  std::vector<Duration> pauses;
  SteadyTime last = kStart;
  for (SteadyTime now = kStart; now < kStart + 600s;) {
    poll_schedule.look_soon();  // It is not tried earlier because somebody asks for it.
    const auto order = poll_schedule.next(now);
    if (order.duty == Duty::none) {
      now = order.wake;
    } else if (order.duty == Duty::look) {
      pauses.push_back(now - last);
      last = now;
      poll_schedule.failed(order.duty, now);
    } else {
      poll_schedule.done(order.duty, now);
    }
  }
  EXPECT_TRUE(std::is_sorted(pauses.begin(), pauses.end()));
  EXPECT_EQ(pauses.at(1), BoardPollSchedule::kFirstRetry);
  EXPECT_EQ(pauses.back(), BoardPollSchedule::kLastRetry);
  EXPECT_TRUE(poll_schedule.failing());
  poll_schedule.done(Duty::look, last);
  EXPECT_FALSE(poll_schedule.failing());
}

TEST(BoardPollSchedule, AHostThatMayNotWriteLooksAllTheSame) {
  BoardPollSchedule poll_schedule(kTable, kStart);
  int looks = 0;
  int tries = 0;
  for (SteadyTime now = kStart; now < kStart + 600s;) {
    const auto order = poll_schedule.next(now);
    if (order.duty == Duty::none) {
      now = order.wake;
    } else if (order.duty == Duty::tell) {
      ++tries;
      poll_schedule.failed(order.duty, now);
    } else {
      looks += order.duty == Duty::look ? 1 : 0;
      poll_schedule.done(order.duty, now);
    }
  }
  EXPECT_GE(looks, 598);
  EXPECT_LE(tries, 20);
  EXPECT_GE(tries, 10);
}

}  // namespace
}  // namespace sluice::fleet
