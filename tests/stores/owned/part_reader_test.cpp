#include "host/stores/owned/part_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/stores/owned/sort_keys.hpp"

namespace sluice::queue::owned {
namespace {

using namespace std::chrono_literals;
using Kind = ReadOrder::Kind;

class PartReaderTest : public ::testing::Test {
 protected:
  Moment at(Duration since) const { return {WallTime(1'767'323'045s) + since, SteadyTime(1000s) + since}; }
  std::string key(Duration due, Priority priority = Priority::normal) const {
    return first_sort_key(priority, WallTime(1'767'323'045s) + due);
  }
  /// Answers every order to the end with nothing.
  int run_dry(PartReader& reader, Duration now, const PartReader::Known& known) {
    int reads = 0;
    while (const auto order = reader.next(known, at(now))) {
      reader.done(*order, {}, at(now).steady);
      ++reads;
    }
    return reads;
  }
};

TEST_F(PartReaderTest, AnIdlePartIsReadFromItsHeadOnceASecondWithOneRequest) {
  PartReader reader(at(0s).steady, false);
  const auto first = reader.next({}, at(0s));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->kind, Kind::all);
  EXPECT_TRUE(first->consistent);
  reader.done(*first, {}, at(0s).steady);
  EXPECT_FALSE(reader.behind());
  EXPECT_TRUE(reader.found_empty());
  EXPECT_FALSE(reader.next({}, at(900ms)));
  const auto second = reader.next({}, at(1s));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->consistent);
}

TEST_F(PartReaderTest, WhatIsNotDueYetIsKnownForAWhileOnceAllHasBeenSeen) {
  PartReader reader(at(0s).steady, false);
  EXPECT_FALSE(reader.later(at(0s).steady)) << "nothing has been read";
  reader.done(*reader.next({}, at(0s)), {.later = 3}, at(0s).steady);
  EXPECT_EQ(reader.later(at(0s).steady).value_or(PartReader::Later{}).records, 3U);
  EXPECT_EQ(reader.later(at(10s).steady).value_or(PartReader::Later{}).records, 3U);
  EXPECT_FALSE(reader.later(at(11s).steady)) << "nobody has looked since";
  reader.done(*reader.next({}, at(11s)), {.due = 100, .stopped_at = key(-60s)}, at(11s).steady);
  EXPECT_FALSE(reader.later(at(11s).steady)) << "there is more";
}

TEST_F(PartReaderTest, AfterATakeOverReadsAreConsistentForAWhile) {
  PartReader reader(at(0s).steady, true);
  reader.done(*reader.next({}, at(0s)), {}, at(0s).steady);
  EXPECT_TRUE(reader.next({}, at(1s))->consistent);
  EXPECT_FALSE(reader.next({}, at(3s))->consistent);
}

TEST_F(PartReaderTest, ABacklogIsReadAsItIsNeeded) {
  PartReader reader(at(0s).steady, false);
  reader.done(*reader.next({}, at(0s)), {.fresh = 100, .due = 100, .stopped_at = key(-60s)}, at(0s).steady);
  EXPECT_TRUE(reader.behind());
  PartReader::Known known{.bytes = 100'000, .waiting = {0, 0, 100, 0}, .page = 100};
  while (const auto order = reader.next(known, at(100ms))) {
    EXPECT_NE(order->priority, Priority::normal) << "enough of them wait";
    reader.done(*order, {}, at(100ms).steady);
  }
  known.waiting[2] = 10;
  const auto next = reader.next(known, at(200ms));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->kind, Kind::forward);
  EXPECT_GT(next->from, key(-60s));
  EXPECT_EQ(next->to, last_sort_key(Priority::normal, at(200ms).wall)) << "never beyond what is due";
  EXPECT_EQ(next->limit, 100U);
}

TEST_F(PartReaderTest, TheTailIsReadAgainFromAFewSecondsBefore) {
  PartReader reader(at(0s).steady, false);
  reader.done(*reader.next({}, at(0s)), {}, at(0s).steady);
  const PartReader::Known known{.bytes = 100'000, .page = 100};
  std::optional<ReadOrder> normal;
  while (auto order = reader.next(known, at(10s))) {
    if (order->kind == Kind::forward && order->priority == Priority::normal) {
      normal = order;
    }
    reader.done(*order, {}, at(10s).steady);
  }
  ASSERT_TRUE(normal);
  EXPECT_EQ(normal->from, last_sort_key(Priority::normal, at(0s).wall) + "0") << "not beyond what was read before";
  normal.reset();
  while (auto order = reader.next(known, at(12s))) {
    if (order->kind == Kind::forward && order->priority == Priority::normal) {
      normal = order;
    }
    reader.done(*order, {}, at(12s).steady);
  }
  ASSERT_TRUE(normal);
  EXPECT_EQ(normal->from, key(7s));
}

TEST_F(PartReaderTest, ASweepReadsEverythingUpToTheCursorsConsistently) {
  PartReader reader(at(0s).steady, false);
  reader.done(*reader.next({}, at(0s)), {}, at(0s).steady);
  const PartReader::Known known{.bytes = 100'000, .page = 100};
  run_dry(reader, 29s, known);
  reader.take_swept();
  int sweeps = 0;
  while (const auto order = reader.next(known, at(31s))) {
    if (order->kind == Kind::sweep) {
      EXPECT_TRUE(order->consistent);
      EXPECT_EQ(order->begins, sweeps == 0);
      ++sweeps;
    }
    reader.done(*order, {}, at(31s).steady);
  }
  EXPECT_EQ(sweeps, 4);
  EXPECT_EQ(reader.take_swept(), at(31s).steady);
}

TEST_F(PartReaderTest, ASweepThatIsAskedForComesSoonAndNotAgainAtOnce) {
  PartReader reader(at(0s).steady, false);
  reader.done(*reader.next({}, at(0s)), {}, at(0s).steady);
  reader.sweep_by(at(500ms).steady);
  EXPECT_FALSE(reader.next({}, at(500ms)));
  EXPECT_TRUE(reader.next({}, at(1s))->consistent) << "a second after the one before";
}

TEST_F(PartReaderTest, ASweepThatIsAskedForWhileOneIsUnderWayComesAfterIt) {
  PartReader reader(at(0s).steady, false);
  reader.done(*reader.next({}, at(0s)), {}, at(0s).steady);
  const PartReader::Known known{.bytes = 100'000, .page = 100};
  run_dry(reader, 29s, known);
  const auto first = reader.next(known, at(31s));
  ASSERT_TRUE(first && first->begins);
  reader.sweep_now(at(31s).steady);
  reader.done(*first, {}, at(31s).steady);
  int begun = 0;
  while (const auto order = reader.next(known, at(32s))) {
    begun += order->begins ? 1 : 0;
    reader.done(*order, {}, at(32s).steady);
  }
  EXPECT_EQ(begun, 1);
}

TEST_F(PartReaderTest, AFailureIsTriedAgainAfterLongerPauses) {
  PartReader reader(at(0s).steady, false);
  ASSERT_TRUE(reader.next({}, at(0s)));
  reader.failed(at(0s).steady);
  EXPECT_FALSE(reader.next({}, at(40ms)));
  ASSERT_TRUE(reader.next({}, at(50ms)));
  reader.failed(at(50ms).steady);
  EXPECT_FALSE(reader.next({}, at(140ms)));
  EXPECT_TRUE(reader.next({}, at(150ms)));
}

TEST_F(PartReaderTest, RingsInVainComeLessOftenInTheEnd) {
  PartReader reader(at(0s).steady, false);
  int looks = 0;
  for (Duration now{}; now < 10s; now += 5ms) {
    reader.rung(at(now).steady);
    looks += run_dry(reader, now, {});
  }
  EXPECT_LE(looks, 75);
  EXPECT_GE(looks, 40);
}

TEST_F(PartReaderTest, WhereHalfOfTheRingsBringSomethingTheyAreHeededEvery20Milliseconds) {
  PartReader reader(at(0s).steady, false);
  run_dry(reader, 0s, {});
  int looks = 0;
  for (Duration now{}; now < 10s; now += 5ms) {
    reader.rung(at(now).steady);
    while (const auto order = reader.next({}, at(now))) {
      ++looks;
      ReadAnswer answer;
      answer.fresh = answer.due = looks % 2 == 0 ? 1 : 0;
      reader.done(*order, answer, at(now).steady);
    }
  }
  EXPECT_GE(looks, 300);
}

TEST_F(PartReaderTest, ARingIsAnsweredByOneLookThatSeesAllThatWasStoredBefore) {
  PartReader reader(at(0s).steady, false);
  run_dry(reader, 0s, {});
  reader.rung(at(300ms).steady);
  const auto look = reader.next({}, at(300ms));
  ASSERT_TRUE(look);
  EXPECT_TRUE(look->consistent);
  reader.done(*look, {}, at(310ms).steady);
  EXPECT_EQ(reader.wakes_at(at(310ms).steady), at(1310ms).steady);

  // What is stored while a page is under way is not in it.
  reader.rung(at(400ms).steady);
  const auto early = reader.next({}, at(400ms));
  ASSERT_TRUE(early);
  reader.rung(at(405ms).steady);
  reader.done(*early, {.fresh = 1, .due = 1}, at(410ms).steady);
  EXPECT_FALSE(reader.next({}, at(410ms)));
  EXPECT_TRUE(reader.next({}, at(430ms)));
}

}  // namespace
}  // namespace sluice::queue::owned
