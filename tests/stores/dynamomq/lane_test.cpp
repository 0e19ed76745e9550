#include <gmock/gmock.h>

#include "base/timestamp.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/half_backlog.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/table/item_values.hpp"
#include "tests/support/fake_random.hpp"

namespace sluice::queue::dynamomq {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LaneTest : public ::testing::Test {
 protected:
  dynamo::Item item(const std::string& id, Duration age, const std::string& invisible = {}, int version = 1) {
    return {{"id", id},
            {"version", AttributeValue::number(version)},
            {"sent_at", format_timestamp(now_.wall - age)},
            {"receive_count", AttributeValue::number(version - 1)},
            {"invisible_until_at", invisible}};
  }
  /// A record that another host has at work.
  dynamo::Item of_a_peer() {
    dynamo::Item held = item("held", 9s, format_timestamp(now_.wall + 1h), 2);
    held["sluice_nonce"] = "BBBBB12345678901";
    return held;
  }
  void scan(std::vector<dynamo::Item> items) {
    const auto step = lane_.begin_scan(now_, 10, Deadline::never());
    ASSERT_TRUE(step);
    dynamo::Page page;
    page.items = std::move(items);
    page.capacity.read = 0.5;
    lane_.end_scan(*step, &page);
  }
  Pick for_up_to(std::size_t count, bool suspects = true) const {
    return {count, suspects, {.now = now_.wall, .until = now_.wall + 30s}};
  }
  std::vector<std::string> pick(std::size_t count, bool suspects = true) {
    std::vector<std::string> ids;
    for (const auto& candidate : lane_.pick(for_up_to(count, suspects), now_)) {
      ids.push_back(candidate.id);
    }
    return ids;
  }
  /// The delivery that a claim of the first version has made comes to that.
  void end(const std::string& id, CompletionAction action, Duration delay = {}) {
    const Completion completion{.receipt = {id, 2}, .action = action, .delay = delay};
    lane_.written(completion.receipt, 3, core::end(completion, {.receives = 1}, now_.wall), now_.wall);
  }
  void pass_time(Duration span) {
    now_.wall += span;
    now_.steady += span;
  }

  table::Moment now_{*parse_timestamp("2026-11-20T23:14:00.25Z"), SteadyTime(1000s)};
  test::FakeRandom random_{0.5};
  HalfBacklog lane_{"AAAAA", random_};
};

TEST_F(LaneTest, PicksOldestFirstAndEachOnce) {
  scan({item("b", 2s), item("a", 3s), item("hidden", 9s, format_timestamp(now_.wall + 1s))});
  EXPECT_THAT(pick(1), ElementsAre("a"));
  EXPECT_THAT(pick(5), ElementsAre("b"));
  EXPECT_THAT(pick(5), IsEmpty());
  scan({item("b", 2s), item("a", 3s)});
  EXPECT_THAT(pick(5), IsEmpty()) << "the index still shows them as they were before our claims";
}

TEST_F(LaneTest, TimesSortAsTimesThoughTheirSpellingsDoNot) {
  auto trimmed = item("second", 0s);
  trimmed["sent_at"] = "2026-11-20T23:13:59.12Z";
  auto shorter = item("first", 0s);
  shorter["sent_at"] = "2026-11-20T23:13:59.1Z";
  scan({trimmed, shorter});
  EXPECT_THAT(pick(5), ElementsAre("first", "second"));
}

TEST_F(LaneTest, OwnLeaseThatRunsOutIsPickedWithoutReading) {
  scan({item("a", 1s)});
  EXPECT_THAT(pick(1), ElementsAre("a"));
  pass_time(30s);
  EXPECT_THAT(pick(1), IsEmpty());
  pass_time(1ns);
  const auto again = lane_.pick(for_up_to(1), now_);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].version.number, 2);
  EXPECT_EQ(again[0].state.receives, 1U);
}

TEST_F(LaneTest, PutOffRecordComesWhenItIsDue) {
  scan({item("a", 1s)});
  pick(1);
  end("a", CompletionAction::release, 5s);
  pass_time(5s);
  EXPECT_THAT(pick(1), IsEmpty());
  pass_time(1ms);
  const auto again = lane_.pick(for_up_to(1), now_);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].version.number, 3);
  EXPECT_EQ(again[0].state.receives, 0U) << "the attempt was given back";
}

TEST_F(LaneTest, RemovedRecordThatTheIndexStillShowsIsNotTriedAgain) {
  scan({item("a", 1s)});
  pick(1);
  end("a", CompletionAction::remove);
  scan({item("a", 1s)});
  EXPECT_THAT(pick(1), IsEmpty());
  auto fresh = item("a", 1s);
  fresh["sluice_nonce"] = "another sender's";
  scan({fresh});
  EXPECT_THAT(pick(1), ElementsAre("a")) << "a new message of the same id";
}

TEST_F(LaneTest, RecordThatAnotherTookOrReplacedIsSeenAgain) {
  scan({item("a", 1s), item("b", 1s)});
  EXPECT_EQ(pick(2).size(), 2U);
  auto replaced = item("b", 0s);
  scan({item("a", 1s, "", 7), replaced});
  EXPECT_THAT(pick(5), ElementsAre("a", "b"));
}

TEST_F(LaneTest, CandidatesThatStayTooLongAreReadAgain) {
  scan({item("a", 1s), item("b", 1s), of_a_peer()});
  pass_time(HalfBacklog::kBufferLife + 1ms);
  EXPECT_THAT(pick(5), IsEmpty());
  EXPECT_TRUE(lane_.backlog_unread());
}

TEST_F(LaneTest, CandidatesStayLongerWhereNobodyElseIsAtWork) {
  scan({item("a", 1s), item("b", 1s)});
  pass_time(HalfBacklog::kLonelyBufferLife - 1s);
  EXPECT_EQ(pick(5).size(), 2U);
}

TEST_F(LaneTest, LooksAtTheFrontEachSecondWhileItHasEnoughToClaim) {
  EXPECT_FALSE(lane_.begin_side_scan(now_)) << "claims read by themselves";
  scan({item("b", 2s), item("c", 1s)});
  EXPECT_FALSE(lane_.begin_side_scan(now_));
  pass_time(1s);
  const auto step = lane_.begin_side_scan(now_);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->limit, HeadScanner::kFrontLimit);
  dynamo::Page page;
  page.items = {item("moved", 10s)};
  page.capacity.read = 0.5;
  lane_.end_scan(*step, &page);
  EXPECT_THAT(pick(1), ElementsAre("moved"));
  EXPECT_FALSE(lane_.begin_side_scan(now_));
}

TEST_F(LaneTest, LooksAtTheFrontWhileItReadsOnThroughABacklog) {
  const dynamo::Item last{{"id", "b"}, {"queue_type", "STANDARD"}, {"sent_at", format_timestamp(now_.wall - 1s)}};
  const auto read_on = [&](const ScanStep& step, std::vector<dynamo::Item> items) {
    dynamo::Page page;
    page.items = std::move(items);
    page.capacity.read = 0.5;
    page.last_evaluated_key = last;
    lane_.end_scan(step, &page);
  };
  const dynamo::Item known = item("a", 2s);
  read_on(*lane_.begin_scan(now_, 1, Deadline::never()), {known});
  EXPECT_THAT(pick(1), ElementsAre("a"));
  for (int page = 0; page < 3; ++page) {
    pass_time(300ms);
    EXPECT_FALSE(page < 2 && lane_.begin_side_scan(now_)) << "not more often than it must";
    const auto step = page < 2 ? lane_.begin_scan(now_, 1, Deadline::never()) : lane_.begin_side_scan(now_);
    ASSERT_TRUE(step);
    EXPECT_EQ(step->kind, page < 2 ? ScanStep::Kind::onward : ScanStep::Kind::front) << "no page puts it off";
    read_on(*step, {item("new" + std::to_string(page), page < 2 ? 1s : 1h)});
    EXPECT_EQ(pick(1).size(), 1U);
  }
  const auto further = lane_.begin_side_scan(now_);
  ASSERT_TRUE(further) << "what was behind it is as new";
  EXPECT_EQ(further->after, last);
  EXPECT_GT(further->limit, HeadScanner::kFrontLimit);
  read_on(*further, {known});
  EXPECT_FALSE(lane_.begin_side_scan(now_)) << "from there on all is known";
}

TEST_F(LaneTest, LostRacesMakeItGetOutOfTheWay) {
  std::vector<dynamo::Item> items;
  items.reserve(100);
  for (int i = 0; i < 100; ++i) {
    items.push_back(item("m" + std::to_string(i), 1s));
  }
  scan(items);
  const auto picked = lane_.pick(for_up_to(20), now_);
  lane_.lost(picked, now_);
  pass_time(HalfBacklog::kIndexDelay);
  items.push_back(of_a_peer());
  scan(items);
  const auto mine = pick(100);
  EXPECT_GT(mine.size(), 25U);
  EXPECT_LT(mine.size(), 75U);
  pass_time(Contention::kPatience);
  scan(items);
  EXPECT_EQ(pick(100).size(), 100 - mine.size()) << "in the end, what the other leaves undone";
}

TEST_F(LaneTest, WhatOthersTookIsNotTriedAgainAsTheIndexStillShowsIt) {
  scan({item("a", 2s), item("b", 1s)});
  lane_.lost(lane_.pick(for_up_to(2), now_), now_);
  scan({item("a", 2s), item("b", 1s)});
  EXPECT_THAT(pick(5), IsEmpty());
  EXPECT_EQ(lane_.next_due(now_), HalfBacklog::kIndexDelay + 1ns) << "then it is looked at again";
  scan({item("a", 2s, {}, 3), item("b", 1s)});
  EXPECT_THAT(pick(5), ElementsAre("a")) << "given back by whoever had it";
  pass_time(HalfBacklog::kIndexDelay);
  scan({item("b", 1s)});
  EXPECT_THAT(pick(5), ElementsAre("b")) << "and so it may be, if the refusal was a mistake";
}

TEST_F(LaneTest, WhatIsRemovedIsNotLookedAtAgain) {
  scan({item("a", 2s)});
  lane_.pick(for_up_to(1), now_);
  end("a", CompletionAction::remove);
  scan({item("a", 2s)});
  EXPECT_THAT(pick(5), IsEmpty());
  EXPECT_FALSE(lane_.next_due(now_)) << "each look at it would be read units for nothing";
}

TEST_F(LaneTest, SuspectIsPickedAloneWhenItIsTheOldest) {
  auto held = item("held", 9s, format_timestamp(now_.wall - 1s), 2);
  held["received_at"] = format_timestamp(now_.wall - 8s);
  scan({item("a", 11s), held, item("b", 5s)});
  EXPECT_THAT(pick(5), ElementsAre("a", "b"));
  const auto alone = lane_.pick(for_up_to(5), now_);
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_TRUE(alone[0].suspect());
  EXPECT_EQ(queue::core::receives_when_claimed(alone[0].state, false), 1U)
      << "it takes the place of the delivery of which nobody knows";
  pass_time(31s);
  const auto again = lane_.pick(for_up_to(5), now_);
  ASSERT_EQ(again.size(), 1U);
}

TEST_F(LaneTest, SuspectsArePassedOverWhereTheyAreNotWanted) {
  auto held = item("held", 9s, format_timestamp(now_.wall - 1s), 2);
  held["received_at"] = format_timestamp(now_.wall - 8s);
  scan({held, item("b", 5s)});
  EXPECT_THAT(pick(5, false), ElementsAre("b"));
  EXPECT_THAT(pick(5, false), IsEmpty());
  EXPECT_THAT(pick(5), ElementsAre("held"));
}

TEST_F(LaneTest, ALeaseSaysWhatItsRecordDoesUntilTheDeliveryEnds) {
  scan({item("a", 1s)});
  pick(1);
  dynamo::Item record = item("a", 1s, format_timestamp(now_.wall + 30s), 2);
  record["received_at"] = format_timestamp(now_.wall);
  record["sluice_failure"] = table::encode_failure({.error = "first"});
  lane_.claimed(Candidate::of(record));
  EXPECT_FALSE(lane_.lease_of({"a", 1}));
  EXPECT_EQ(lane_.lease_of({"a", 2})->state.failure.error, "first");
  end("a", CompletionAction::keep);
  EXPECT_FALSE(lane_.lease_of({"a", 2}));
  EXPECT_EQ(lane_.lease_of({"a", 3})->state.failure.error, "first") << "it is still at work";
  lane_.written({"a", 3}, 4, core::end({.action = CompletionAction::retry}, {.receives = 1}, now_.wall), now_.wall);
  EXPECT_TRUE(lane_.lease_of({"a", 4})->state.failure.empty()) << "it may wait for long, with many others";
}

TEST_F(LaneTest, TellsWhenTheNextIsDue) {
  EXPECT_FALSE(lane_.next_due(now_));
  scan({item("a", 1s), item("hidden", 9s, format_timestamp(now_.wall + 20s)), item("later", -7s)});
  EXPECT_EQ(lane_.next_due(now_), 7s + 1ns);
  pick(1);
  end("a", CompletionAction::retry, 5s);
  EXPECT_EQ(lane_.next_due(now_), 5s + 1ns);
}

TEST_F(LaneTest, NothingComesDueByACheckpointOfALeaseThatIsNotRemembered) {
  EXPECT_FALSE(lane_.next_due(now_));
  end("a", CompletionAction::keep);
  EXPECT_FALSE(lane_.next_due(now_)) << "or each one would have the index read";
}

TEST_F(LaneTest, SecondScannerWaitsAndFindsWhatTheFirstFound) {
  const auto step = lane_.begin_scan(now_, 10, Deadline::never());
  ASSERT_TRUE(step);
  EXPECT_FALSE(lane_.begin_scan(now_, 10, Deadline::at(now_.steady - 999s))) << "the deadline has passed";
  EXPECT_FALSE(lane_.begin_side_scan(now_));
  lane_.end_scan({}, nullptr);
  EXPECT_TRUE(lane_.begin_scan(now_, 10, Deadline::never()));
}

TEST(UnresolvedClaims, AreKeptWithinALimit) {
  UnresolvedClaims claims;
  for (std::size_t i = 0; i < UnresolvedClaims::kMost + 5; ++i) {
    Candidate candidate;
    candidate.id = "m" + std::to_string(i);
    claims.remember({candidate, "nonce", {}});
  }
  EXPECT_EQ(claims.take(10, true).size(), 10U);
  EXPECT_EQ(claims.take(5'000, true).size(), UnresolvedClaims::kMost - 10);
  EXPECT_TRUE(claims.take(5'000, true).empty());
}

TEST(KnownRecords, AreNoMoreThanTheirLimitAndNoneTwice) {
  KnownRecords known(100);
  Candidate record;
  for (int i = 0; i < 100; ++i) {
    record.id = std::to_string(i);
    EXPECT_TRUE(known.put(record));
    EXPECT_TRUE(known.put(record)) << "in its own place";
  }
  record.id = "one more";
  EXPECT_FALSE(known.put(record));
  EXPECT_EQ(known.size(), 100U);
  const auto any = [](const Candidate&) { return true; };
  EXPECT_EQ(known.take_if(5, any, 99).size(), 1U);
  EXPECT_EQ(known.take_if(5, any, 500).size(), 0U);
  EXPECT_EQ(known.take_if(50, any).size(), 50U);
  EXPECT_EQ(known.take_due(WallTime(1s), 1'000).size(), 49U);
  EXPECT_TRUE(known.empty());
}

TEST_F(LaneTest, SuspectsDoNotKeepTheOthersOut) {
  std::vector<dynamo::Item> items;
  for (std::size_t i = 0; i < HalfBacklog::kMostReady + 10; ++i) {
    items.push_back(item("s" + std::to_string(i), 9s, format_timestamp(now_.wall - 1s), 2));
    items.back()["received_at"] = format_timestamp(now_.wall - 8s);
  }
  items.push_back(item("a", 1s));
  scan(items);
  EXPECT_THAT(pick(5, false), ElementsAre("a"));
}

}  // namespace
}  // namespace sluice::queue::dynamomq
