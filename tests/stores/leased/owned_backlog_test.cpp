#include "host/stores/leased/owned_backlog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::queue::leased {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// As if nothing could be missing of what is read.
const Frontier kAllRead{.settled = "Z", .passed = {}, .pass = 1};

class OwnedBacklogTest : public ::testing::Test {
 protected:
  OwnedBacklogTest() { book_.take_shard(0, {}, {}); }

  WallTime wall(Duration since) const { return WallTime(1'767'323'045s) + since; }
  SteadyTime steady(Duration since) const { return SteadyTime(1000s) + since; }

  dynamo::Item item(const std::string& id, Duration due, const std::string& group = {},
                    Priority priority = Priority::normal) {
    const Place place{partition_of("orders", Half::standard, 0), sort_key_of(priority, wall(due), random_)};
    sorts_[id] = place.sort;
    auto record = encode_record({.body = id, .group = group, .priority = priority},
                                {.place = place, .own_id = id, .now = wall(due)});
    return *record;
  }
  OwnedBacklog::Admission admit(dynamo::Item record, Duration began = 100s, bool consistent = true) {
    return book_.admit(0, std::move(record), {.began = steady(began), .consistent = consistent, .now = wall(100s)});
  }
  std::vector<std::string> take(std::size_t max = 100, bool suspects = true, std::size_t bytes = 1'000'000) {
    std::vector<std::string> ids;
    for (const auto& taken : book_.take({.max = max, .bytes = bytes, .suspects = suspects}, wall(100s))) {
      ids.push_back(taken.entry->candidate.id + (taken.suspect ? "?" : ""));
    }
    return ids;
  }
  std::vector<std::string> take_within(InFlightBound allowed) {
    std::vector<std::string> ids;
    for (const auto& taken : book_.take({.max = 10, .bytes = 1'000'000, .allowed = allowed}, wall(100s))) {
      ids.push_back(taken.entry->candidate.id);
    }
    return ids;
  }
  void done(const std::string& id, Duration at = 100s) {
    book_.returned({0, sorts_.at(id)}, {.kind = Return::Kind::gone, .version = 1}, wall(at), steady(at));
  }
  void back(const std::string& id, std::optional<Duration> until = {}, std::int64_t version = 2) {
    Return what{.kind = Return::Kind::back, .version = version, .receive_count = 1};
    if (until) {
      what.not_before = wall(*until);
    }
    book_.returned({0, sorts_.at(id)}, what, wall(100s), steady(100s));
  }

  SeededRandom random_{1};
  std::map<std::string, std::string> sorts_;
  OwnedBacklog book_;
};

TEST_F(OwnedBacklogTest, HandsOutTheOldestFirstAndEachOnce) {
  admit(item("2", 2s));
  admit(item("1", 1s));
  const auto again = item("3", 3s);
  EXPECT_EQ(admit(again), OwnedBacklog::Admission::fresh);
  EXPECT_THAT(take(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(admit(again, 101s), OwnedBacklog::Admission::known) << "it is out";
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(OwnedBacklogTest, AReadThatIsOlderThanAnAckBringsNothingBack) {
  const auto one = item("1", 1s);
  admit(one);
  take();
  done("1", 100s);
  EXPECT_EQ(admit(one, 99s), OwnedBacklog::Admission::refused);
  EXPECT_EQ(admit(one, 102s, false), OwnedBacklog::Admission::refused) << "such a read may be seconds old";
  EXPECT_EQ(admit(one, 102s, true), OwnedBacklog::Admission::fresh) << "it is there all the same";
}

TEST_F(OwnedBacklogTest, WhatComesBackWaitsForItsTime) {
  admit(item("1", 1s));
  take();
  back("1", 110s);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(book_.figures().next_timer, wall(110s));
  book_.wake(wall(110s));
  EXPECT_THAT(take(), IsEmpty());
  book_.wake(wall(110s) + 1ms);
  EXPECT_THAT(take(), ElementsAre("1"));
}

TEST_F(OwnedBacklogTest, AGroupWaitsUntilItIsKnownWhatBecameOfItsHead) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.passed(0, kAllRead);
  const auto first = item("a1", 1s, "a");
  const auto second = item("a2", 2s, "a");
  admit(first);
  admit(second);
  const auto lose_sight = [&] {
    EXPECT_THAT(take(), ElementsAre("a1"));
    book_.returned({0, sorts_.at("a1")}, {.kind = Return::Kind::unknown, .version = 1}, wall(100s), steady(100s));
    EXPECT_THAT(take(), IsEmpty()) << "it may be there still, and goes first then";
    EXPECT_THAT(book_.take_unswept(), ElementsAre(0U));
    book_.sweep_begins(0);
    EXPECT_THAT(take(), IsEmpty());
  };
  lose_sight();
  EXPECT_EQ(admit(first, 103s), OwnedBacklog::Admission::fresh);
  admit(second, 103s);
  book_.swept(0, steady(103s));
  lose_sight();
  admit(second, 106s);
  book_.swept(0, steady(106s));
  EXPECT_THAT(take(), ElementsAre("a2"));
}

TEST_F(OwnedBacklogTest, AGroupGoesOneAfterTheOtherAndStarvesNoOther) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.passed(0, kAllRead);
  for (const char* id : {"a1", "a2", "a3"}) {
    admit(item(id, std::chrono::seconds(id[1] - '0'), "a"));
  }
  admit(item("b1", 10s, "b"));
  admit(item("-1", 11s));
  EXPECT_THAT(take(), ElementsAre("a1", "b1", "-1"));
  EXPECT_THAT(take(), IsEmpty());
  back("a1", 110s);
  EXPECT_THAT(take(), IsEmpty()) << "the group waits for its head";
  book_.wake(wall(111s));
  EXPECT_THAT(take(), ElementsAre("a1"));
  done("a1");
  admit(item("b2", 12s, "b"));
  EXPECT_THAT(take(1), ElementsAre("a2"));
  done("b1");
  EXPECT_THAT(take(), ElementsAre("b2"));
}

TEST_F(OwnedBacklogTest, WhatAPassHasFoundGoesOnceALaterOneHasComePastIt) {
  book_.rules({.order = Order::group}, wall(100s));
  EXPECT_FALSE(book_.passed(0, {.settled = Frontier::part_of(first_sort_key(Priority::normal, wall(50s))), .pass = 1}));
  const auto find = [this](const char* id, Duration due, std::uint64_t pass) {
    book_.admit(0, item(id, due, std::string(1, id[0])),
                {.began = steady(100s), .consistent = true, .now = wall(100s), .pass = pass});
  };
  const auto up_to = [this](Duration due) { return Frontier::part_of(last_sort_key(Priority::low, wall(due))); };
  find("a1", 40s, 1);
  EXPECT_THAT(take(), ElementsAre("a1")) << "nothing can come to lie there any more";
  find("b2", 60s, 1);
  find("c1", 61s, 1);
  EXPECT_TRUE(book_.passed(0, {.settled = {}, .passed = up_to(99s), .pass = 1}));
  EXPECT_THAT(take(), IsEmpty()) << "what was there before may lie where that pass had been already";
  find("b1", 59s, 2);
  EXPECT_TRUE(book_.passed(0, {.settled = {}, .passed = up_to(60s), .pass = 2}));
  EXPECT_THAT(take(), IsEmpty()) << "one before it is new, and the pass has not come to the other group";
  EXPECT_TRUE(book_.passed(0, {.settled = {}, .passed = up_to(99s), .pass = 2}));
  EXPECT_THAT(take(), ElementsAre("c1"));
  EXPECT_FALSE(book_.passed(0, {.settled = {}, .passed = up_to(99s), .pass = 3}));
  EXPECT_THAT(take(), ElementsAre("b1"));
  done("b1");
  EXPECT_THAT(take(), ElementsAre("b2"));
}

TEST_F(OwnedBacklogTest, AGroupThatIsHeldWaits) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.passed(0, kAllRead);
  admit(item("a1", 10s, "a"));
  EXPECT_FALSE(book_.hold(0, {"a"}, wall(100s)));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_TRUE(book_.hold(0, {}, wall(100s)));
  EXPECT_THAT(take(), IsEmpty()) << "what it waited for may lie before it again";
  book_.sweep_begins(0);
  admit(item("a0", 1s, "a"), 101s);
  EXPECT_THAT(take(), IsEmpty());
  book_.swept(0, steady(100s));
  EXPECT_THAT(take(), ElementsAre("a0"));
}

TEST_F(OwnedBacklogTest, FairTurnsGoByGroup) {
  book_.rules({.fair = true}, wall(100s));
  for (int i = 0; i < 9; ++i) {
    admit(item("a" + std::to_string(i), std::chrono::seconds(i), "a"));
  }
  admit(item("b1", 20s, "b"));
  EXPECT_THAT(take(3), ElementsAre("a0", "b1", "a1"));
  EXPECT_THAT(take(), SizeIs(7));
}

TEST_F(OwnedBacklogTest, PrioritiesHaveTheirTurnsByWeight) {
  for (int i = 0; i < 20; ++i) {
    admit(item("c" + std::to_string(i), std::chrono::seconds(i), "", Priority::critical));
    admit(item("l" + std::to_string(i), std::chrono::seconds(i), "", Priority::low));
  }
  const auto ids = take(9);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](const auto& id) { return id[0] == 'l'; }), 1);
}

TEST_F(OwnedBacklogTest, RulesMayChangeAndLoseNothing) {
  for (const char* id : {"a1", "a2", "b1"}) {
    admit(item(id, std::chrono::seconds(id[1] - '0'), std::string(1, id[0])));
  }
  EXPECT_THAT(take(1), ElementsAre("a1"));
  book_.rules({.order = Order::group}, wall(100s));
  book_.passed(0, kAllRead);
  EXPECT_THAT(take(), ElementsAre("b1")) << "a1 is out";
  book_.rules({}, wall(100s));
  EXPECT_THAT(take(), ElementsAre("a2"));
  book_.rules({.order = Order::queue}, wall(100s));
  book_.passed(0, kAllRead);
  EXPECT_EQ(book_.figures().out, 3U);
  done("a1");
  done("a2");
  done("b1");
  EXPECT_EQ(book_.figures().size, 0U);
}

TEST_F(OwnedBacklogTest, TheFirstOfAShardThatWasNotHandedOverAreSuspects) {
  book_.lose_shard(0);
  book_.take_shard(0, 2, wall(50s));
  for (const char* id : {"1", "2", "3"}) {
    admit(item(id, std::chrono::seconds(id[0] - '0')));
  }
  admit(item("9", 90s));
  EXPECT_THAT(take(10, false), ElementsAre("3", "9")) << "one that was sent after the take-over among them";
  EXPECT_THAT(take(), ElementsAre("1?"));
  back("1");
  EXPECT_THAT(take(), ElementsAre("1")) << "its end is known by now";
  EXPECT_THAT(take(), ElementsAre("2?"));
}

TEST_F(OwnedBacklogTest, WhatWaitedForALaterTimeIsNoSuspectButCountsAsItDidForWhoeverDied) {
  book_.lose_shard(0);
  book_.take_shard(0, 2, wall(50s));
  auto retried = item("1", 1s);
  retried["n"] = dynamo::AttributeValue::number(wall(60s).time_since_epoch() / 1ms);
  admit(retried);
  admit(item("2", 2s));
  admit(item("3", 3s));
  EXPECT_THAT(take(1), ElementsAre("1"));
  EXPECT_THAT(take(1), ElementsAre("2?"));
  EXPECT_THAT(take(1), ElementsAre("3"));
}

TEST_F(OwnedBacklogTest, WhatWasMovedToTheFrontIsASuspectAndTakesNoPlace) {
  book_.lose_shard(0);
  book_.take_shard(0, 1, wall(50s));
  auto moved = item("0", 0s, {}, Priority::critical);
  moved["s"] = first_sort_key(Priority::critical, WallTime{});
  admit(moved);
  admit(item("1", 1s, {}, Priority::critical));
  admit(item("2", 2s, {}, Priority::critical));
  EXPECT_THAT(take(10, false), ElementsAre("2"));
  EXPECT_THAT(take(), ElementsAre("0?"));
  EXPECT_THAT(take(), ElementsAre("1?"));
}

TEST_F(OwnedBacklogTest, ReachesAsFarAsTheLastThatIsOutWhateverLiesBeforeIt) {
  for (const char* id : {"1", "2", "3"}) {
    admit(item(id, std::chrono::seconds(id[0] - '0')));
  }
  EXPECT_EQ(book_.in_flight_bound(), 0U);
  EXPECT_THAT(take(), ElementsAre("1", "2", "3"));
  back("1", 110s);
  back("2", 110s);
  EXPECT_EQ(book_.in_flight_bound(), 3U);
  admit(item("late", 1500ms));
  EXPECT_EQ(book_.expected(0), 4U);
  EXPECT_EQ(book_.in_flight_bound(), 4U);
  done("3");
  EXPECT_EQ(book_.in_flight_bound(), 0U);
  admit(item("new", 99s));
  EXPECT_THAT(take(1), ElementsAre("late"));
  EXPECT_THAT(take(1), ElementsAre("new"));
  EXPECT_EQ(book_.in_flight_bound(), 4U);
}

TEST_F(OwnedBacklogTest, WhatIsDroppedCountsForTheNextOneTooWhenNothingIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  EXPECT_THAT(take(1), ElementsAre("1"));
  book_.returned({0, sorts_.at("1")}, {.kind = Return::Kind::unknown, .version = 1}, wall(100s), steady(100s));
  EXPECT_EQ(book_.in_flight_bound(), 0U);
  EXPECT_THAT(take_within(1), IsEmpty()) << "the first one may lie there still";
  EXPECT_THAT(take_within(2), ElementsAre("2"));
}

TEST_F(OwnedBacklogTest, NothingGoesOutThatWouldReachFartherThanIsAllowed) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.passed(0, kAllRead);
  for (const char* id : {"a1", "a2", "b3", "c4"}) {
    admit(item(id, std::chrono::seconds(id[1] - '0'), std::string(1, id[0])));
  }
  EXPECT_THAT(take_within(3), ElementsAre("a1", "b3"));
  EXPECT_EQ(book_.refused(), 4U);
  EXPECT_THAT(take_within(4), ElementsAre("c4"));
  EXPECT_EQ(book_.refused(), std::nullopt);
}

TEST_F(OwnedBacklogTest, WhatIsDroppedFromMemoryCountsUntilASweepHasFoundWhatIsThere) {
  OwnedBacklog book(OwnedBacklog::Bounds{.timers = 1, .entries = 100});
  book.take_shard(0, {}, {});
  for (const char* id : {"1", "2", "3"}) {
    auto record = item(id, std::chrono::seconds(id[0] - '0'));
    if (id[0] != '3') {
      record["n"] = dynamo::AttributeValue::number(wall(200s).time_since_epoch() / 1ms);
    }
    book.admit(0, record, {.began = steady(100s), .consistent = true, .now = wall(100s)});
  }
  EXPECT_THAT(book.take({.max = 1, .bytes = 1'000}, wall(100s)), SizeIs(1));
  EXPECT_EQ(book.figures().timers, 1U);
  EXPECT_EQ(book.in_flight_bound(), 3U);
  book.sweep_begins(0);
  book.swept(0, steady(50s));
  EXPECT_EQ(book.in_flight_bound(), 2U);
}

TEST_F(OwnedBacklogTest, ASuspectThatIsReadAnewTakesNoSecondPlace) {
  book_.lose_shard(0);
  book_.take_shard(0, 2, wall(50s));
  const auto first = item("1", 1s);
  admit(first);
  admit(item("2", 2s));
  EXPECT_THAT(take(1), ElementsAre("1?"));
  book_.returned({0, sorts_.at("1")}, {.kind = Return::Kind::unknown, .version = 1}, wall(100s), steady(100s));
  admit(first, 110s);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  EXPECT_THAT(take(1), ElementsAre("2?"));
}

TEST_F(OwnedBacklogTest, WhatIsInheritedEndsWithTheLastOfIt) {
  book_.lose_shard(0);
  book_.take_shard(0, 5, wall(50s));
  admit(item("1", 1s));
  EXPECT_EQ(book_.left_in(0), 5U);
  admit(item("9", 90s));
  book_.read_wholly(0);
  EXPECT_GT(book_.left_in(0), 0U);
  EXPECT_EQ(book_.left_in(0), 1U);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  book_.read_wholly(0);
  EXPECT_GT(book_.left_in(0), 0U) << "what became of it may not be known, so that it comes again";
  done("1");
  book_.read_wholly(0);
  EXPECT_EQ(book_.left_in(0), 0U);
}

TEST_F(OwnedBacklogTest, AShardThatStaysAfterAllKeepsItsSuspects) {
  book_.lose_shard(0);
  book_.take_shard(0, 2, wall(50s));
  const auto first = item("1", 1s);
  const auto second = item("2", 2s);
  admit(first);
  admit(second);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  back("1");
  book_.close_shard(0);
  book_.reopen_shard(0);
  admit(first, 110s);
  admit(second, 110s);
  EXPECT_THAT(take(1), ElementsAre("1?")) << "that it came back is not remembered";
  EXPECT_THAT(take(1), ElementsAre("2?"));
}

TEST_F(OwnedBacklogTest, AClaimEndsWithTheMessageThatGoesBeyondItsBytes) {
  for (const char* id : {"1", "2", "3"}) {
    admit(item(id, std::chrono::seconds(id[0] - '0')));
  }
  EXPECT_THAT(take(10, true, 200), SizeIs(2));
}

TEST_F(OwnedBacklogTest, WhatASweepHasNotSeenIsGone) {
  admit(item("1", 1s), 100s);
  admit(item("2", 2s), 120s);
  book_.swept(0, steady(110s));
  EXPECT_THAT(take(), ElementsAre("2"));
}

TEST_F(OwnedBacklogTest, AnEditTakesThePlaceOfWhatWasRead) {
  auto one = item("1", 1s);
  admit(one);
  one["v"] = dynamo::AttributeValue::number(2);
  one["b"] = "edited";
  EXPECT_EQ(admit(one, 101s), OwnedBacklog::Admission::fresh);
  const auto taken = book_.take({.max = 1, .bytes = 1}, wall(100s));
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken.front().entry->candidate.version, 2);
}

TEST_F(OwnedBacklogTest, LosesItsShardWithAllThatIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  take(1);
  EXPECT_THAT(book_.lose_shard(0), ElementsAre(Spot{0, sorts_.at("1")}));
  EXPECT_EQ(book_.figures().size, 0U);
  EXPECT_EQ(admit(item("3", 3s)), OwnedBacklog::Admission::refused);
  done("1");
}

TEST_F(OwnedBacklogTest, AClosedShardKeepsOnlyWhatIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  take(1);
  book_.close_shard(0);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(book_.of(0).out, 1U);
  back("1");
  EXPECT_EQ(book_.of(0).out, 0U);
  EXPECT_THAT(take(), IsEmpty());
}

TEST(ShardBookBounds, TimersBeyondTheBoundAreDroppedTheLastOnesFirst) {
  OwnedBacklog book({.timers = 3, .entries = 100});
  book.take_shard(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  for (int i = 0; i < 6; ++i) {
    const Place place{"orders#0", sort_key_of(Priority::normal, now, random)};
    auto record = *encode_record({.body = "x"}, {.place = place, .own_id = {}, .now = now});
    record["n"] = stored_time(now + std::chrono::seconds(10 - i));
    book.admit(0, std::move(record), {.began = {}, .consistent = true, .now = now});
  }
  EXPECT_EQ(book.figures().timers, 3U);
  EXPECT_EQ(book.figures().next_timer, now + 5s);
}

TEST(ShardBookBounds, AGroupThatCannotGoOnIsCutAndComesBackInOrder) {
  OwnedBacklog book({.timers = 100, .entries = 40});
  book.take_shard(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  book.rules({.order = Order::group}, now);
  book.passed(0, kAllRead);
  std::vector<dynamo::Item> items;
  for (int i = 0; i < 100; ++i) {
    const Place place{"orders#0", sort_key_of(Priority::normal, now + std::chrono::milliseconds(i), random)};
    items.push_back(
        *encode_record({.body = "x", .group = "a"}, {.place = place, .own_id = std::to_string(i), .now = now}));
  }
  const auto sweep = [&] {
    book.sweep_begins(0);
    for (const auto& item : items) {
      book.admit(0, item, {.began = {}, .consistent = true, .now = now + 1s});
    }
    book.swept(0, {});
  };
  sweep();
  EXPECT_LE(book.figures().size, 41U);
  std::vector<std::string> order;
  for (int round = 0; round < 300 && order.size() < 100; ++round) {
    for (const auto& taken : book.take({.max = 1, .bytes = 1}, now + 1s)) {
      const std::string id = taken.entry->candidate.id;
      const Spot spot = taken.entry->spot();
      order.push_back(id);
      book.returned(spot, {.kind = Return::Kind::gone, .version = 1}, now + 1s, SteadyTime() + 1s);
      std::erase_if(items, [&](const auto& item) { return Candidate::of(item).id == id; });
    }
    if (!book.take_unswept().empty()) {
      sweep();
    }
  }
  ASSERT_THAT(order, SizeIs(100));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(order[static_cast<std::size_t>(i)], std::to_string(i));
  }
}

TEST(ShardBookBounds, TimersOfFairTurnsAreDroppedAsAnyOther) {
  OwnedBacklog book({.timers = 3, .entries = 100});
  book.take_shard(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  book.rules({.fair = true}, now);
  for (int i = 0; i < 6; ++i) {
    const Place place{"orders#0", sort_key_of(Priority::normal, now, random)};
    auto record =
        *encode_record({.body = "x", .group = "g" + std::to_string(i)}, {.place = place, .own_id = {}, .now = now});
    record["n"] = stored_time(now + std::chrono::seconds(10 - i));
    book.admit(0, std::move(record), {.began = {}, .consistent = true, .now = now});
  }
  EXPECT_EQ(book.figures().timers, 3U);
  EXPECT_EQ(book.figures().next_timer, now + 5s);
}

/// Groups of three messages each, more than there is room for, and what a sweep finds of them.
class ParkedGroups : public ::testing::Test {
 protected:
  static constexpr int kGroups = 30;

  ParkedGroups() {
    book_.take_shard(0, {}, {});
    book_.rules({.order = Order::group}, now_);
    book_.passed(0, kAllRead);
    for (int place = 0; place < 3; ++place) {
      for (int group = 0; group < kGroups; ++group) {
        items_.push_back(item("g" + std::to_string(group), std::chrono::milliseconds(100 * place + group)));
      }
    }
  }
  dynamo::Item item(const std::string& group, Duration due) {
    const Place place{"orders#0", sort_key_of(Priority::normal, now_ + due, random_)};
    return *encode_record({.body = "x", .group = group},
                          {.place = place, .own_id = group + "." + std::to_string(++counts_[group]), .now = now_});
  }
  void admit(const dynamo::Item& one) { book_.admit(0, one, {.began = {}, .consistent = true, .now = now_ + 1s}); }
  void sweep() {
    book_.sweep_begins(0);
    for (const dynamo::Item& one : items_) {
      admit(one);
    }
    book_.swept(0, {});
  }
  /// Hands out what can go, and sees to it.
  std::vector<std::string> take() {
    std::vector<std::string> ids;
    for (const auto& taken : book_.take({.max = 100, .bytes = 1'000'000}, now_ + 1s)) {
      ids.push_back(taken.entry->candidate.id);
    }
    for (const std::string& id : ids) {
      const auto found =
          std::find_if(items_.begin(), items_.end(), [&id](const auto& one) { return Candidate::of(one).id == id; });
      book_.returned({0, Candidate::of(*found).place.sort}, {.kind = Return::Kind::gone, .version = 1}, now_ + 1s,
                     SteadyTime() + 1s);
      items_.erase(found);
    }
    return ids;
  }

  const WallTime now_{1'767'323'045s};
  SeededRandom random_{1};
  std::map<std::string, int> counts_;
  std::vector<dynamo::Item> items_;
  OwnedBacklog book_{OwnedBacklog::Bounds{.timers = 100, .entries = 40}};
};

TEST_F(ParkedGroups, LeaveRoomForOthersWhileAnOperatorIsWaitedForAndGoOnInOrder) {
  std::set<std::string> held;
  for (int group = 0; group < kGroups; ++group) {
    held.insert("g" + std::to_string(group));
  }
  book_.hold(0, held, now_);
  sweep();
  EXPECT_FALSE(book_.figures().full) << book_.figures().size;
  EXPECT_GT(book_.figures().parked, 0U);
  items_.push_back(item("healthy", 900ms));
  admit(items_.back());
  EXPECT_THAT(take(), ElementsAre("healthy.1"));
  for (int sweeps = 0; sweeps < 5; ++sweeps) {
    sweep();
    EXPECT_FALSE(book_.figures().full);
    EXPECT_THAT(book_.take_unswept(), IsEmpty()) << "nobody is asked to read what cannot go on";
  }
  EXPECT_TRUE(book_.hold(0, {}, now_ + 1s)) << "they go on once the shard was swept";
  sweep();
  std::map<std::string, int> gone;
  for (int round = 0; round < 300 && !items_.empty(); ++round) {
    for (const std::string& id : take()) {
      const std::string group = id.substr(0, id.find('.'));
      EXPECT_EQ(id, group + "." + std::to_string(++gone[group]));
    }
    if (!book_.take_unswept().empty()) {
      sweep();
    }
  }
  EXPECT_EQ(items_.size(), 0U);
  EXPECT_EQ(book_.figures().parked, 0U);
}

TEST_F(ParkedGroups, LeaveRoomForOthersWhileTheirFirstOnesWaitForAnotherAttempt) {
  for (dynamo::Item& one : items_) {
    if (Candidate::of(one).id.ends_with(".1")) {
      one["n"] = stored_time(now_ + 60s);
    }
  }
  sweep();
  EXPECT_FALSE(book_.figures().full) << book_.figures().size;
  EXPECT_GT(book_.figures().parked, 0U);
  EXPECT_THAT(take(), IsEmpty()) << "what follows in a group does not go before its first one";
  items_.push_back(item("healthy", 900ms));
  admit(items_.back());
  EXPECT_THAT(take(), ElementsAre("healthy.1"));
}

}  // namespace
}  // namespace sluice::queue::leased
