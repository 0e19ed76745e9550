#include "host/stores/owned/backlog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::queue::owned {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// As if nothing could be missing of what is read.
const Frontier kAllRead{.settled = "Z", .passed = {}, .pass = 1};

std::string id_of(const Entry& entry) { return *static_cast<const std::string*>(entry.record.get()); }

/// A message as it lies where it is read.
struct Stored {
  std::string id;
  std::string sort;
  std::string group{};
  std::optional<WallTime> hidden_until{};
  std::int64_t version = 1;

  core::MessageState state() const {
    return {.sent_at = due_of(sort),
            .hidden_until = hidden_until,
            .version = version,
            .priority = priority_of(sort),
            .group = group};
  }
  Found found() const {
    return {.sort = sort, .state = state(), .bytes = 150, .record = std::make_shared<const std::string>(id)};
  }
};

class BacklogTest : public ::testing::Test {
 protected:
  BacklogTest() { book_.take_part(0, {}, {}); }

  WallTime wall(Duration since) const { return WallTime(1'767'323'045s) + since; }
  SteadyTime steady(Duration since) const { return SteadyTime(1000s) + since; }

  Stored item(const std::string& id, Duration due, const std::string& group = {},
              Priority priority = Priority::normal) {
    Stored stored{.id = id, .sort = sort_key_of(priority, wall(due), random_), .group = group};
    items_.insert_or_assign(id, stored);
    return stored;
  }
  bool admit(const Stored& stored, Duration began = 100s, bool consistent = true) {
    return book_.admit(0, stored.found(), {.began = steady(began), .consistent = consistent, .now = wall(100s)});
  }
  std::vector<std::string> take(std::size_t max = 100, bool suspects = true, std::size_t bytes = 1'000'000) {
    std::vector<std::string> ids;
    for (const Entry* taken : book_.take({.max = max, .bytes = bytes, .suspects = suspects}, wall(100s)).entries) {
      ids.push_back(id_of(*taken) + (taken->suspect ? "?" : ""));
    }
    return ids;
  }
  std::vector<std::string> take_within(InFlightBound allowed) {
    const auto claim = book_.take({.max = 10, .bytes = 1'000'000, .allowed = allowed}, wall(100s));
    refused_ = claim.refused;
    std::vector<std::string> ids;
    for (const Entry* taken : claim.entries) {
      ids.push_back(id_of(*taken));
    }
    return ids;
  }
  void done(const std::string& id, Duration at = 100s) {
    const Stored& stored = items_.at(id);
    book_.returned({0, stored.sort}, {.kind = Return::Kind::gone, .state = stored.state()}, wall(at), steady(at));
  }
  void back(const std::string& id, std::optional<Duration> until = {}) {
    const Stored& stored = items_.at(id);
    Return what{.kind = Return::Kind::back, .state = stored.state()};
    what.state.receives = 1;
    what.state.version = 2;
    if (until) {
      what.state.hidden_until = wall(*until);
    }
    book_.returned({0, stored.sort}, what, wall(100s), steady(100s));
  }
  /// Nobody knows what became of it.
  void lose_sight_of(const std::string& id) {
    const Stored& stored = items_.at(id);
    book_.returned({0, stored.sort}, {.kind = Return::Kind::unknown, .state = stored.state()}, wall(100s),
                   steady(100s));
  }
  void take_over(InFlightBound bound) {
    book_.lose_part(0);
    book_.take_part(0, bound, wall(50s));
  }
  bool swept(Duration began) { return book_.read(0, {.frontier = kAllRead, .swept = steady(began)}).vanished; }
  /// Everything has been read and swept.
  void read_wholly() { book_.read(0, {.frontier = kAllRead, .to_the_end = true, .swept = steady(0s)}); }

  SeededRandom random_{1};
  std::map<std::string, Stored> items_;
  std::optional<InFlightBound> refused_;
  Backlog book_;
};

TEST_F(BacklogTest, HandsOutTheOldestFirstAndEachOnce) {
  admit(item("2", 2s));
  admit(item("1", 1s));
  const auto again = item("3", 3s);
  EXPECT_TRUE(admit(again));
  EXPECT_THAT(take(), ElementsAre("1", "2", "3"));
  EXPECT_FALSE(admit(again, 101s)) << "it is out";
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(BacklogTest, AReadThatIsOlderThanAnAckBringsNothingBack) {
  const auto one = item("1", 1s);
  admit(one);
  take();
  done("1", 100s);
  EXPECT_FALSE(admit(one, 99s));
  EXPECT_FALSE(admit(one, 102s, false)) << "such a read may be seconds old";
  EXPECT_TRUE(admit(one, 102s, true)) << "it is there all the same";
}

TEST_F(BacklogTest, WhatComesBackWeighsWhatItsCheckpointDoes) {
  const Stored one = item("1", 1s);
  admit(one);
  EXPECT_EQ(book_.of(0).bytes, 150U);
  for (const std::size_t more : {1000U, 0U}) {
    EXPECT_THAT(take(), ElementsAre("1"));
    Return what{.kind = Return::Kind::back, .state = one.state()};
    what.state.checkpoint = std::string(more, 'x');
    book_.returned({0, one.sort}, what, wall(100s), steady(100s));
    EXPECT_EQ(book_.of(0).bytes, 150U + more) << "by it is decided how the part is read";
  }
}

TEST_F(BacklogTest, WhatComesBackWaitsForItsTime) {
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

TEST_F(BacklogTest, AGroupWaitsUntilItIsKnownWhatBecameOfItsHead) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
  const auto first = item("a1", 1s, "a");
  const auto second = item("a2", 2s, "a");
  admit(first);
  admit(second);
  const auto lose_sight = [&] {
    EXPECT_THAT(take(), ElementsAre("a1"));
    lose_sight_of("a1");
    EXPECT_THAT(take(), IsEmpty()) << "it may be there still, and goes first then";
    EXPECT_THAT(book_.take_unswept(), ElementsAre(0U));
    book_.sweep_begins(0);
    EXPECT_THAT(take(), IsEmpty());
  };
  lose_sight();
  EXPECT_TRUE(admit(first, 103s));
  admit(second, 103s);
  swept(103s);
  lose_sight();
  admit(second, 106s);
  swept(106s);
  EXPECT_THAT(take(), ElementsAre("a2"));
}

TEST_F(BacklogTest, AGroupGoesOneAfterTheOtherAndStarvesNoOther) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
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

TEST_F(BacklogTest, WhatAPassHasFoundGoesOnceALaterOneHasComePastIt) {
  book_.rules({.order = Order::group}, wall(100s));
  EXPECT_FALSE(book_
                   .read(0, {.frontier = {.settled = Frontier::place_of(first_sort_key(Priority::normal, wall(50s))),
                                          .pass = 1}})
                   .unsure);
  const auto find = [this](const char* id, Duration due, std::uint64_t pass) {
    book_.admit(0, item(id, due, std::string(1, id[0])).found(),
                {.began = steady(100s), .consistent = true, .now = wall(100s), .pass = pass});
  };
  const auto up_to = [this](Duration due) { return Frontier::place_of(last_sort_key(Priority::low, wall(due))); };
  find("a1", 40s, 1);
  EXPECT_THAT(take(), ElementsAre("a1")) << "nothing can come to lie there any more";
  find("b2", 60s, 1);
  find("c1", 61s, 1);
  EXPECT_TRUE(book_.read(0, {.frontier = {.settled = {}, .passed = up_to(99s), .pass = 1}}).unsure);
  EXPECT_THAT(take(), IsEmpty()) << "what was there before may lie where that pass had been already";
  find("b1", 59s, 2);
  EXPECT_TRUE(book_.read(0, {.frontier = {.settled = {}, .passed = up_to(60s), .pass = 2}}).unsure);
  EXPECT_THAT(take(), IsEmpty()) << "one before it is new, and the pass has not come to the other group";
  EXPECT_TRUE(book_.read(0, {.frontier = {.settled = {}, .passed = up_to(99s), .pass = 2}}).unsure);
  EXPECT_THAT(take(), ElementsAre("c1"));
  EXPECT_FALSE(book_.read(0, {.frontier = {.settled = {}, .passed = up_to(99s), .pass = 3}}).unsure);
  EXPECT_THAT(take(), ElementsAre("b1"));
  done("b1");
  EXPECT_THAT(take(), ElementsAre("b2"));
}

TEST_F(BacklogTest, AGroupThatIsHeldWaits) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
  admit(item("a1", 10s, "a"));
  EXPECT_FALSE(book_.hold(0, {"a"}, wall(100s)));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_TRUE(book_.hold(0, {}, wall(100s)));
  EXPECT_THAT(take(), IsEmpty()) << "what it waited for may lie before it again";
  book_.sweep_begins(0);
  admit(item("a0", 1s, "a"), 101s);
  EXPECT_THAT(take(), IsEmpty());
  swept(100s);
  EXPECT_THAT(take(), ElementsAre("a0"));
}

TEST_F(BacklogTest, FairTurnsGoByGroup) {
  book_.rules({.fair = true}, wall(100s));
  for (int i = 0; i < 9; ++i) {
    admit(item("a" + std::to_string(i), std::chrono::seconds(i), "a"));
  }
  admit(item("b1", 20s, "b"));
  EXPECT_THAT(take(3), ElementsAre("a0", "b1", "a1"));
  EXPECT_THAT(take(), SizeIs(7));
}

TEST_F(BacklogTest, PrioritiesHaveTheirTurnsByWeight) {
  for (int i = 0; i < 20; ++i) {
    admit(item("c" + std::to_string(i), std::chrono::seconds(i), "", Priority::critical));
    admit(item("l" + std::to_string(i), std::chrono::seconds(i), "", Priority::low));
  }
  const auto ids = take(9);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](const auto& id) { return id[0] == 'l'; }), 1);
}

TEST_F(BacklogTest, RulesMayChangeAndLoseNothing) {
  for (const char* id : {"a1", "a2", "b1"}) {
    admit(item(id, std::chrono::seconds(id[1] - '0'), std::string(1, id[0])));
  }
  EXPECT_THAT(take(1), ElementsAre("a1"));
  book_.rules({.order = Order::group}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
  EXPECT_THAT(take(), ElementsAre("b1")) << "a1 is out";
  book_.rules({}, wall(100s));
  EXPECT_THAT(take(), ElementsAre("a2"));
  book_.rules({.order = Order::queue}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
  EXPECT_EQ(book_.figures().out, 3U);
  done("a1");
  done("a2");
  done("b1");
  EXPECT_EQ(book_.figures().size, 0U);
}

TEST_F(BacklogTest, TheFirstOfAPartThatWasNotHandedOverAreSuspects) {
  take_over(2);
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

TEST_F(BacklogTest, WhatWaitedForALaterTimeIsNoSuspectButCountsAsItDidForWhoeverDied) {
  take_over(2);
  auto retried = item("1", 1s);
  retried.hidden_until = wall(60s);
  admit(retried);
  admit(item("2", 2s));
  admit(item("3", 3s));
  EXPECT_THAT(take(1), ElementsAre("1"));
  EXPECT_THAT(take(1), ElementsAre("2?"));
  EXPECT_THAT(take(1), ElementsAre("3"));
}

TEST_F(BacklogTest, WhatWasMovedToTheFrontIsASuspectAndTakesNoPlace) {
  take_over(1);
  auto moved = item("0", 0s, {}, Priority::critical);
  moved.sort = first_sort_key(Priority::critical, WallTime{});
  admit(moved);
  admit(item("1", 1s, {}, Priority::critical));
  admit(item("2", 2s, {}, Priority::critical));
  EXPECT_THAT(take(10, false), ElementsAre("2"));
  EXPECT_THAT(take(), ElementsAre("0?"));
  EXPECT_THAT(take(), ElementsAre("1?"));
}

TEST_F(BacklogTest, ReachesAsFarAsTheLastThatIsOutWhateverLiesBeforeIt) {
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

// Counted from the head of each priority, whatever came, went out, came back and went meanwhile.
TEST_F(BacklogTest, ReachesAsFarAsACountOfAllThatIsInMemorySays) {
  struct Seen {
    Stored stored;
    bool out = false;
  };
  std::map<std::string, Seen> memory;  // by key
  InFlightBound dropped = 0;
  const auto count = [&] {
    InFlightBound most = 0;
    for (const Priority priority : {Priority::critical, Priority::normal}) {
      InFlightBound places = 0;
      for (const auto& [sort, seen] : memory) {
        places += priority_of(sort) == priority && due_of(sort) >= kFrontEnd ? 1 : 0;
        most = seen.out && priority_of(sort) == priority && due_of(sort) >= kFrontEnd ? std::max(most, places) : most;
      }
    }
    return most > 0 ? most + dropped : 0;
  };
  for (int step = 0; step < 800; ++step) {
    const auto roll = random_.next() % 10;
    if (roll < 4) {
      const Priority priority = random_.next() % 2 == 0 ? Priority::critical : Priority::normal;
      Stored stored = item(std::to_string(step), std::chrono::milliseconds(random_.next() % 90'000), {}, priority);
      stored.sort = roll == 0 ? front_sort_key(wall(Duration(step)), random_) : stored.sort;
      ASSERT_TRUE(admit(stored));
      memory[stored.sort] = {stored};
    } else if (roll < 6) {
      for (const Entry* taken : book_.take({.max = 1 + random_.next() % 4, .bytes = 1'000'000}, wall(100s)).entries) {
        memory.at(taken->sort).out = true;
      }
    } else {
      const auto from =
          memory.lower_bound(sort_key_of(Priority::normal, wall(Duration(random_.next() % 90'000'000'000)), random_));
      const auto found = std::find_if(from, memory.end(), [](const auto& each) { return each.second.out; });
      if (found != memory.end()) {
        const auto kind = static_cast<Return::Kind>(random_.next() % 3);
        ++found->second.stored.version;
        book_.returned({0, found->first}, {.kind = kind, .state = found->second.stored.state()}, wall(100s),
                       steady(100s));
        dropped += kind == Return::Kind::unknown ? 1 : 0;
        found->second.out = false;
        if (kind != Return::Kind::back) {
          memory.erase(found);
        }
      }
    }
    ASSERT_EQ(book_.in_flight_bound(), count()) << "after step " << step;
  }
  EXPECT_GT(book_.figures().out, 10U);
}

TEST_F(BacklogTest, WhatIsDroppedCountsForTheNextOneTooWhenNothingIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  EXPECT_THAT(take(1), ElementsAre("1"));
  lose_sight_of("1");
  EXPECT_EQ(book_.in_flight_bound(), 0U);
  EXPECT_THAT(take_within(1), IsEmpty()) << "the first one may lie there still";
  EXPECT_THAT(take_within(2), ElementsAre("2"));
}

TEST_F(BacklogTest, NothingGoesOutThatWouldReachFartherThanIsAllowed) {
  book_.rules({.order = Order::group}, wall(100s));
  book_.read(0, {.frontier = kAllRead});
  for (const char* id : {"a1", "a2", "b3", "c4"}) {
    admit(item(id, std::chrono::seconds(id[1] - '0'), std::string(1, id[0])));
  }
  EXPECT_THAT(take_within(3), ElementsAre("a1", "b3"));
  EXPECT_EQ(refused_, 4U);
  EXPECT_THAT(take_within(4), ElementsAre("c4"));
  EXPECT_EQ(refused_, std::nullopt);
}

TEST_F(BacklogTest, WhatIsDroppedFromMemoryCountsUntilASweepHasFoundWhatIsThere) {
  Backlog book(Backlog::Bounds{.timers = 1, .entries = 100});
  book.take_part(0, {}, {});
  for (const char* id : {"1", "2", "3"}) {
    auto record = item(id, std::chrono::seconds(id[0] - '0'));
    if (id[0] != '3') {
      record.hidden_until = wall(200s);
    }
    book.admit(0, record.found(), {.began = steady(100s), .consistent = true, .now = wall(100s)});
  }
  EXPECT_THAT(book.take({.max = 1, .bytes = 1'000}, wall(100s)).entries, SizeIs(1));
  EXPECT_EQ(book.figures().timers, 1U);
  EXPECT_EQ(book.in_flight_bound(), 3U);
  book.sweep_begins(0);
  book.read(0, {.swept = steady(50s)});
  EXPECT_EQ(book.in_flight_bound(), 2U);
}

TEST_F(BacklogTest, ASuspectThatIsReadAnewTakesNoSecondPlace) {
  take_over(2);
  const auto first = item("1", 1s);
  admit(first);
  admit(item("2", 2s));
  EXPECT_THAT(take(1), ElementsAre("1?"));
  lose_sight_of("1");
  admit(first, 110s);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  EXPECT_THAT(take(1), ElementsAre("2?"));
}

TEST_F(BacklogTest, WhatIsInheritedEndsWithTheLastOfIt) {
  take_over(5);
  admit(item("1", 1s));
  EXPECT_EQ(book_.left_in(0), 5U);
  admit(item("9", 90s));
  read_wholly();
  EXPECT_GT(book_.left_in(0), 0U);
  EXPECT_EQ(book_.left_in(0), 1U);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  read_wholly();
  EXPECT_GT(book_.left_in(0), 0U) << "what became of it may not be known, so that it comes again";
  done("1");
  read_wholly();
  EXPECT_EQ(book_.left_in(0), 0U);
}

TEST_F(BacklogTest, APartThatStaysAfterAllKeepsItsSuspects) {
  take_over(2);
  const auto first = item("1", 1s);
  const auto second = item("2", 2s);
  admit(first);
  admit(second);
  EXPECT_THAT(take(1), ElementsAre("1?"));
  back("1");
  book_.close_part(0);
  book_.take_part(0, {}, {});
  admit(first, 110s);
  admit(second, 110s);
  EXPECT_THAT(take(1), ElementsAre("1?")) << "that it came back is not remembered";
  EXPECT_THAT(take(1), ElementsAre("2?"));
}

TEST_F(BacklogTest, AClaimEndsWithTheMessageThatGoesBeyondItsBytes) {
  for (const char* id : {"1", "2", "3"}) {
    admit(item(id, std::chrono::seconds(id[0] - '0')));
  }
  EXPECT_THAT(take(10, true, 200), SizeIs(2));
}

TEST_F(BacklogTest, WhatASweepHasNotSeenIsGone) {
  admit(item("1", 1s), 100s);
  admit(item("2", 2s), 120s);
  swept(110s);
  EXPECT_THAT(take(), ElementsAre("2"));
}

TEST_F(BacklogTest, AnEditTakesThePlaceOfWhatWasRead) {
  auto one = item("1", 1s);
  admit(one);
  one.version = 2;
  EXPECT_TRUE(admit(one, 101s));
  const auto taken = book_.take({.max = 1, .bytes = 1}, wall(100s)).entries;
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken.front()->state.version, 2);
}

TEST_F(BacklogTest, LosesItsPartWithAllThatIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  take(1);
  EXPECT_THAT(book_.lose_part(0), ElementsAre(Spot{0, items_.at("1").sort}));
  EXPECT_EQ(book_.figures().size, 0U);
  EXPECT_FALSE(admit(item("3", 3s)));
  done("1");
}

TEST_F(BacklogTest, AClosedPartKeepsOnlyWhatIsOut) {
  admit(item("1", 1s));
  admit(item("2", 2s));
  take(1);
  book_.close_part(0);
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(book_.of(0).out, 1U);
  back("1");
  EXPECT_EQ(book_.of(0).out, 0U);
  EXPECT_THAT(take(), IsEmpty());
}

TEST(BacklogBounds, TimersBeyondTheBoundAreDroppedTheLastOnesFirst) {
  Backlog book({.timers = 3, .entries = 100});
  book.take_part(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  for (int i = 0; i < 6; ++i) {
    const Stored stored{.sort = sort_key_of(Priority::normal, now, random),
                        .hidden_until = now + std::chrono::seconds(10 - i)};
    book.admit(0, stored.found(), {.began = {}, .consistent = true, .now = now});
  }
  EXPECT_EQ(book.figures().timers, 3U);
  EXPECT_EQ(book.figures().next_timer, now + 5s);
}

TEST(BacklogBounds, AGroupThatCannotGoOnIsCutAndComesBackInOrder) {
  Backlog book({.timers = 100, .entries = 40});
  book.take_part(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  book.rules({.order = Order::group}, now);
  book.read(0, {.frontier = kAllRead});
  std::vector<Stored> items;
  for (int i = 0; i < 100; ++i) {
    items.push_back({.id = std::to_string(i),
                     .sort = sort_key_of(Priority::normal, now + std::chrono::milliseconds(i), random),
                     .group = "a"});
  }
  const auto sweep = [&] {
    book.sweep_begins(0);
    for (const auto& item : items) {
      book.admit(0, item.found(), {.began = {}, .consistent = true, .now = now + 1s});
    }
    book.read(0, {.frontier = kAllRead, .swept = SteadyTime()});
  };
  sweep();
  EXPECT_LE(book.figures().size, 41U);
  std::vector<std::string> order;
  for (int round = 0; round < 300 && order.size() < 100; ++round) {
    for (const Entry* taken : book.take({.max = 1, .bytes = 1}, now + 1s).entries) {
      const std::string id = id_of(*taken);
      const Spot spot = taken->spot();
      order.push_back(id);
      book.returned(spot, {.kind = Return::Kind::gone}, now + 1s, SteadyTime() + 1s);
      std::erase_if(items, [&](const auto& item) { return item.id == id; });
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

TEST(BacklogBounds, TimersOfFairTurnsAreDroppedAsAnyOther) {
  Backlog book({.timers = 3, .entries = 100});
  book.take_part(0, {}, {});
  SeededRandom random(1);
  const WallTime now(1'767'323'045s);
  book.rules({.fair = true}, now);
  for (int i = 0; i < 6; ++i) {
    const Stored stored{.sort = sort_key_of(Priority::normal, now, random),
                        .group = "g" + std::to_string(i),
                        .hidden_until = now + std::chrono::seconds(10 - i)};
    book.admit(0, stored.found(), {.began = {}, .consistent = true, .now = now});
  }
  EXPECT_EQ(book.figures().timers, 3U);
  EXPECT_EQ(book.figures().next_timer, now + 5s);
}

/// Groups of three messages each, more than there is room for, and what a sweep finds of them.
class ParkedGroups : public ::testing::Test {
 protected:
  static constexpr int kGroups = 30;

  ParkedGroups() {
    book_.take_part(0, {}, {});
    book_.rules({.order = Order::group}, now_);
    book_.read(0, {.frontier = kAllRead});
    for (int place = 0; place < 3; ++place) {
      for (int group = 0; group < kGroups; ++group) {
        items_.push_back(item("g" + std::to_string(group), std::chrono::milliseconds(100 * place + group)));
      }
    }
  }
  Stored item(const std::string& group, Duration due) {
    return {.id = group + "." + std::to_string(++counts_[group]),
            .sort = sort_key_of(Priority::normal, now_ + due, random_),
            .group = group};
  }
  void admit(const Stored& one) { book_.admit(0, one.found(), {.began = {}, .consistent = true, .now = now_ + 1s}); }
  void sweep() {
    book_.sweep_begins(0);
    for (const Stored& one : items_) {
      admit(one);
    }
    book_.read(0, {.frontier = kAllRead, .swept = SteadyTime()});
  }
  /// Hands out what can go, and sees to it.
  std::vector<std::string> take() {
    std::vector<std::string> ids;
    for (const Entry* taken : book_.take({.max = 100, .bytes = 1'000'000}, now_ + 1s).entries) {
      ids.push_back(id_of(*taken));
    }
    for (const std::string& id : ids) {
      const auto found = std::find_if(items_.begin(), items_.end(), [&id](const auto& one) { return one.id == id; });
      book_.returned({0, found->sort}, {.kind = Return::Kind::gone}, now_ + 1s, SteadyTime() + 1s);
      items_.erase(found);
    }
    return ids;
  }

  const WallTime now_{1'767'323'045s};
  SeededRandom random_{1};
  std::map<std::string, int> counts_;
  std::vector<Stored> items_;
  Backlog book_{Backlog::Bounds{.timers = 100, .entries = 40}};
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
  EXPECT_TRUE(book_.hold(0, {}, now_ + 1s)) << "they go on once the part was swept";
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
  for (Stored& one : items_) {
    if (one.id.ends_with(".1")) {
      one.hidden_until = now_ + 60s;
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
}  // namespace sluice::queue::owned
