// Large heads: what is read of an index with many records in flight, counted on a stand-in for the index.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/random.hpp"
#include "base/timestamp.hpp"
#include "host/stores/dynamomq/half_backlog.hpp"
#include "host/stores/dynamomq/head_scanner.hpp"

namespace sluice::queue::dynamomq {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;

/// An index partition of records of 800 bytes, read as DynamoDB reads and bills it.
class Index {
 public:
  struct Record {
    std::string sent_at;
    std::optional<WallTime> hidden_until;
    bool claimed = false;  ///< and whoever did has not said what became of it
  };
  static constexpr double kUnits = 0.1;  // of a record, eventually consistent

  void add(WallTime sent_at, std::optional<WallTime> hidden_until) {
    records_.push_back({.sent_at = format_timestamp(sent_at), .hidden_until = hidden_until});
  }
  Record& record(std::size_t place) { return records_.at(place); }

  dynamo::Page read(const ScanStep& step) {
    const auto by_key = [](const Record& record, const std::string& key) { return record.sent_at < key; };
    const std::string* after = dynamo::find<std::string>(step.after, "sent_at");
    auto next = std::lower_bound(records_.begin(), records_.end(), after == nullptr ? step.from : *after + "~", by_key);
    dynamo::Page page;
    for (; next != records_.end() && (step.to.empty() || next->sent_at <= step.to); ++next) {
      if (static_cast<std::int64_t>(page.items.size()) == step.limit) {
        page.last_evaluated_key = {{"sent_at", std::prev(next)->sent_at}};
        break;
      }
      const bool hidden = next->hidden_until.has_value();
      page.items.push_back({{"id", "m" + std::to_string(next - records_.begin())},
                            {"version", AttributeValue::number(1)},
                            {"sent_at", next->sent_at},
                            {"receive_count", AttributeValue::number(hidden ? 1 : 0)},
                            {"received_at", next->claimed ? next->sent_at : std::string()},
                            {"invisible_until_at", hidden ? format_timestamp(*next->hidden_until) : std::string()}});
    }
    page.capacity.read = std::max(0.5, static_cast<double>(page.items.size()) * kUnits);
    units_ += page.capacity.read;
    ++requests_;
    return page;
  }
  double take_units() { return std::exchange(units_, 0); }
  std::size_t take_requests() { return std::exchange(requests_, 0); }

 private:
  std::vector<Record> records_;
  double units_ = 0;
  std::size_t requests_ = 0;
};

class HeavyHead : public ::testing::Test {
 protected:
  void fill(std::size_t in_flight, std::size_t ready, Duration leases = 12h) {
    WallTime sent = now_.wall - 1h;
    for (std::size_t i = 0; i < in_flight + ready; ++i, sent += 10ms) {
      index_.add(sent, i < in_flight ? std::optional(now_.wall + leases) : std::nullopt);
    }
  }
  /// One claim, as the claimer makes it; how many candidates it came to.
  std::size_t claim(std::size_t want) {
    const Pick wanted{want, suspects_, {.now = now_.wall, .until = now_.wall + 30s}};
    std::size_t found = lane_.pick(wanted, now_).size();
    bool ended = false;
    for (int pages = 0; pages < 8 && found < want && !ended;) {
      const auto step = lane_.begin_scan(now_, want, Deadline::never());
      const auto page = index_.read(*step);
      lane_.end_scan(*step, &page);
      const bool passes_on = !step->looks_back() && step->kind != ScanStep::Kind::leap;
      pages += passes_on ? 1 : 0;
      ended = passes_on && !lane_.backlog_unread();
      found += lane_.pick({want - found, suspects_ && found == 0, wanted.terms}, now_).size();
    }
    return found;
  }
  /// Whose leases have run out, while the quarantine of their job is full.
  void let_suspects_wait(std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) {
      index_.record(i).hidden_until = now_.wall - 1min;
      index_.record(i).claimed = true;
    }
    suspects_ = false;
  }
  double idle_units(int seconds) {
    index_.take_units();
    for (int second = 0; second < seconds; ++second) {
      now_.wall += 1s;
      now_.steady += 1s;
      claim(10);
    }
    return index_.take_units() / seconds;
  }

  table::Moment now_{*parse_timestamp("2026-11-20T23:14:00.25Z"), SteadyTime(100'000s)};
  SeededRandom random_{7};
  HalfBacklog lane_{"AAAAA", random_};
  Index index_;
  bool suspects_ = true;  ///< the job has room for them
};

TEST_F(HeavyHead, FirstClaimFindsWhatIsReadyBehindIt) {
  fill(200'000, 500);
  EXPECT_EQ(claim(10), 10U);
  const std::size_t requests = index_.take_requests();
  const double units = index_.take_units();
  std::printf("first claim behind 200,000 in flight: %zu requests, %.1f RCU\n", requests, units);
  EXPECT_LE(requests, 40U);
  EXPECT_LE(units, 400);
}

TEST_F(HeavyHead, IdleHostReadsLittleHoweverLongItIs) {
  fill(200'000, 0);
  EXPECT_EQ(claim(10), 0U);
  const double first = idle_units(600);
  const double then = idle_units(3'600);
  std::printf("idle behind 200,000 in flight: %.2f RCU/s for ten minutes, then %.2f\n", first, then);
  EXPECT_LE(first, 7);
  EXPECT_LE(then, 6);
}

TEST_F(HeavyHead, LeasesThatAreExtendedAllTheTimeCostNoMore) {
  fill(20'000, 0, 30s);
  claim(10);
  index_.take_units();
  for (int second = 0; second < 1'200; ++second) {
    now_.wall += 1s;
    now_.steady += 1s;
    for (std::size_t i = static_cast<std::size_t>(second) % 15; i < 20'000; i += 15) {
      index_.record(i).hidden_until = now_.wall + 30s;
    }
    EXPECT_EQ(claim(10), 0U);
  }
  EXPECT_LE(index_.take_units() / 1'200, 7);
}

class WaitingSuspects : public HeavyHead, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(WaitingSuspects, AreNotReadForEveryPoll) {
  const std::size_t in_flight = GetParam();
  fill(in_flight, 800);
  let_suspects_wait(in_flight, 800);
  EXPECT_EQ(claim(10), 0U);
  const double spent = idle_units(300);
  std::printf("800 suspects that wait behind %zu in flight: %.2f RCU/s\n", in_flight, spent);
  EXPECT_LE(spent, 7);
  suspects_ = true;
  EXPECT_EQ(claim(10), 1U) << "they are known all the same";
}

INSTANTIATE_TEST_SUITE_P(Heads, WaitingSuspects, ::testing::Values(0, 2'000));

TEST_F(HeavyHead, SuspectsThatThereIsNoRoomForAreNotForgotten) {
  constexpr std::size_t kSuspects = 1'500;
  static_assert(kSuspects > HalfBacklog::kMostSuspects);
  fill(0, kSuspects + 1);
  let_suspects_wait(0, kSuspects);
  EXPECT_EQ(claim(10), 1U) << "and keep nobody out";
  idle_units(30);
  suspects_ = true;
  std::size_t found = 0;
  for (int calls = 0; calls < 4'000 && found < kSuspects; ++calls) {
    found += claim(10);
    now_.wall += 50ms;
    now_.steady += 50ms;
  }
  EXPECT_EQ(found, kSuspects);
}

TEST_F(HeavyHead, LeasesThatRunOutAreFoundWhenTheyDo) {
  fill(2'000, 0, 600s);
  index_.record(1'234).hidden_until = now_.wall + 60s;
  claim(10);
  for (int second = 0; second <= 60; ++second) {
    EXPECT_EQ(claim(10), 0U) << second;
    now_.wall += 1s;
    now_.steady += 1s;
  }
  EXPECT_EQ(claim(10), 1U);
}

TEST_F(HeavyHead, ManyLeasesThatRunOutAreWorkedOffWithoutAWait) {
  fill(20'000, 0, 600s);
  claim(10);
  idle_units(590);
  now_.wall += 20s;
  now_.steady += 20s;
  std::size_t found = 0;
  for (int calls = 0; calls < 400 && found < 10'000; ++calls) {
    found += claim(100);
    now_.wall += 10ms;
    now_.steady += 10ms;
  }
  EXPECT_GE(found, 10'000U) << "what finds work is not charged for";
}

TEST_F(HeavyHead, WhatNobodyCouldForeseeIsFoundInTheEnd) {
  fill(1'000, 0);
  claim(10);
  index_.record(700).hidden_until.reset();
  std::size_t found = 0;
  int second = 0;
  for (; second < 120 && found == 0; ++second) {
    now_.wall += 1s;
    now_.steady += 1s;
    found = claim(10);
  }
  EXPECT_EQ(found, 1U);
  EXPECT_LE(second, 75);
}

TEST(HeadMap, LeavesNoGapWhereAStretchIsReplaced) {
  HeadMap map;
  const WallTime wall{100s};
  const SteadyTime now{500s};
  map.append({"b", 10, wall + 1s}, false, now);
  map.append({"d", 10, wall + 5s}, false, now + 1s);
  map.append({"f", 10, std::nullopt}, false, now + 2s);
  const auto place = map.due(wall + 2s);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->from, "");
  EXPECT_EQ(place->to, "b");
  map.replace(place->to, {{"a", 3, wall + 60s}}, {}, {wall, now + 3s});
  const auto next = map.due(wall + 6s);
  EXPECT_EQ(next->from, "b") << "what comes in behind the last record of a stretch belongs to it";
  map.replace(next->to, {}, {}, {wall, now + 3s});
  EXPECT_EQ(map.stale(now + 2s)->to, "f");
  EXPECT_EQ(map.stale(now + 2s)->from, "b");
  EXPECT_DOUBLE_EQ(map.units(), 13);
  map.expect("c", wall + 7s);
  EXPECT_EQ(map.first_due(), wall + 7s);
}

TEST(HeadMap, KnowsWhatWasReadLongestAgo) {
  HeadMap map;
  const SteadyTime now{500s};
  EXPECT_FALSE(map.stale(now));
  map.append({"b", 1, std::nullopt}, false, now);
  map.append({"d", 1, std::nullopt}, false, now + 1s);
  EXPECT_FALSE(map.stale(now - 1s));
  EXPECT_EQ(map.stale(now + 1s)->to, "b");
  map.replace("b", {{"b", 1, std::nullopt}}, {}, {WallTime{}, now + 2s});
  EXPECT_EQ(map.stale(now + 2s)->to, "d");
  map.append({"f", 0, std::nullopt}, false, now + 3s);
  map.append({"h", 0, std::nullopt}, false, now + 9s);
  map.replace("d", {}, {}, {WallTime{}, now + 4s});
  map.replace("b", {}, {}, {WallTime{}, now + 4s});
  const auto empty = map.stale(now + 3s);
  ASSERT_TRUE(empty) << "two in which nothing is held are one, as old as the first";
  EXPECT_EQ(empty->from, "");
  EXPECT_EQ(empty->to, "h");
}

TEST(HeadMap, GoesOnWhereReadingBrokeOff) {
  HeadMap map;
  map.append_unread("m");
  const dynamo::Item rest{{"sent_at", "c"}};
  const WallTime now{100s};
  map.replace(map.due(now)->to, {{"c", 5, std::nullopt}}, rest, {now, SteadyTime{500s}});
  const auto place = map.due(now);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->from, "c");
  EXPECT_EQ(place->to, "m");
  EXPECT_EQ(place->after, rest);
}

TEST(ReadPurse, FillsWithTimeAndMayBeOverdrawnOnce) {
  ReadPurse purse(2, 50);
  SteadyTime now{100s};
  EXPECT_TRUE(purse.open(now));
  purse.spend(60, now);
  EXPECT_FALSE(purse.open(now));
  EXPECT_NEAR(std::chrono::duration<double>(purse.wait(now)).count(), 5, 0.01);
  EXPECT_TRUE(purse.open(now + 6s));
  purse.spend(0, now + 1h);
  purse.spend(49, now + 1h);
  EXPECT_TRUE(purse.open(now + 1h)) << "it holds no more than its most";
}

}  // namespace
}  // namespace sluice::queue::dynamomq
