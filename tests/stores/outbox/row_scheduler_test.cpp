#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "tests/stores/outbox/line_rig.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RowScheduler, OneRowOfAGroupIsOutAtATimeAndGroupsGoSideBySide) {
  LineRig rig;
  rig.add(1, "a");
  rig.add(2, "a");
  rig.add(3, "b");
  rig.add(4, "");
  rig.add(5, "");
  rig.add(6, "a", "another type");
  rig.read_all();
  EXPECT_EQ(rig.take(), (Ids{1, 3, 4, 5, 6}));
  EXPECT_TRUE(rig.take().empty());
  rig.sent(1);
  EXPECT_EQ(rig.take(), Ids{2});
}

TEST(RowScheduler, TheFirstFailureHoldsItsGroupUntilItsRetryIsDue) {
  LineRig rig;
  for (std::int64_t id = 1; id <= 3; ++id) {
    rig.add(id, "a");
  }
  rig.add(4, "b");
  rig.read_all();
  EXPECT_EQ(rig.take(), (Ids{1, 4}));
  rig.retry(1, seconds(40));
  rig.sent(4);
  EXPECT_TRUE(rig.drain().empty());
  rig.now += seconds(39);
  EXPECT_TRUE(rig.drain().empty());
  rig.now += seconds(1);
  EXPECT_EQ(rig.drain(), (Ids{1, 2, 3}));
}

TEST(RowScheduler, ARowThatWaitsAlreadyWhenItIsFoundHoldsItsGroupToo) {
  LineRig rig;
  rig.add(1, "a");
  rig.table[1].retry_at = rig.now + seconds(20);
  rig.add(2, "a");
  EXPECT_TRUE(rig.drain().empty());
  rig.now += seconds(20);
  EXPECT_EQ(rig.drain(), (Ids{1, 2}));
}

TEST(RowScheduler, RowsThatWaitOrFollowOneThatDoesDoNotUseUpWhatIsRead) {
  LineRig rig({.fetch_limit = 10});
  for (std::int64_t id = 1; id <= 5000; ++id) {
    rig.add(id, "stuck" + std::to_string(id % 7));
  }
  for (std::int64_t id = 1; id <= 7; ++id) {
    rig.table[id].retry_at = rig.now + seconds(1000);
  }
  rig.add(6000, "free");
  EXPECT_EQ(rig.drain(), Ids{6000});
  EXPECT_LE(rig.reads, 10) << "seven groups that wait are passed over in the database";
}

TEST(RowScheduler, AGroupWithVeryManyRowsLeavesRoomForOthersAndGoesOnInOrder) {
  LineRig rig({.fetch_limit = 50});
  Ids of_group;
  for (std::int64_t id = 1; id <= 2000; ++id) {
    rig.add(id, "hot");
    of_group.push_back(id);
  }
  rig.add(3000, "cold");
  rig.read_all();
  EXPECT_LE(rig.line.size(), 100U);
  EXPECT_EQ(rig.take(), (Ids{1, 3000}));
  rig.sent(3000);
  rig.sent(1);
  of_group.erase(of_group.begin());
  EXPECT_EQ(rig.drain(), of_group);
}

TEST(RowScheduler, WhatFollowsARowThatWasHandledGoesBeforeItsMarkUpToANumber) {
  LineRig rig({.per_group = 8});
  for (std::int64_t id = 1; id <= 8; ++id) {
    rig.add(id, "a");
  }
  rig.read_all();
  for (std::int64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(rig.take(), Ids{id});
    EXPECT_TRUE(rig.take().empty()) << "while it is at work";
    rig.line.handled({id});
  }
  EXPECT_TRUE(rig.take().empty()) << "four of them are not marked yet";
  rig.line.handled({4});
  rig.sent(2);
  EXPECT_EQ(rig.take(), Ids{5});
  for (const std::int64_t id : {4, 1, 3}) {
    rig.sent(id);
  }
  EXPECT_TRUE(rig.take().empty()) << "5 is at work";
  rig.sent(5);
  EXPECT_EQ(rig.drain(), (Ids{6, 7, 8}));
}

TEST(RowScheduler, ARowThatWasHandledAndCouldNotBeMarkedComesBeforeWhatHasNotGoneYet) {
  LineRig rig;
  for (std::int64_t id = 1; id <= 5; ++id) {
    rig.add(id, "a");
  }
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1});
  rig.line.handled({1});
  EXPECT_EQ(rig.take(), Ids{2});
  rig.line.settled({1}, {Fate::Kind::put_back, seconds(1)}, rig.now);
  rig.line.handled({2});
  rig.now += seconds(1);
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1});
  rig.sent(2);
  EXPECT_TRUE(rig.take().empty());
  rig.sent(1);
  EXPECT_EQ(rig.drain(), (Ids{3, 4, 5}));
}

// Reads whose answers come late, handlers that fail, marks that are late, out of order, or not written: of each group
// the rows begin in their order, all of them, and one does not begin before the one ahead of it was handled.
TEST(RowScheduler, GroupsKeepTheirOrderWhateverComesWhen) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    LineRig rig({.fetch_limit = 20, .per_group = 2 + random.below(12)});
    constexpr std::int64_t kRows = 200;
    for (std::int64_t id = 1; id <= kRows; ++id) {
      rig.add(id, random.below(3) == 0 ? "other" : "hot");
    }
    std::map<std::string, std::int64_t> begun;
    std::map<std::string, std::int64_t> at_work;
    std::vector<std::int64_t> handled;
    std::set<std::int64_t> known;  // to whoever handles them
    std::optional<ReadOrder> order;
    Page page;
    std::vector<Page> groups;
    std::size_t sent = 0;
    for (int step = 0; step < 20'000 && sent < kRows; ++step) {
      rig.now += milliseconds(random.below(20));
      switch (random.below(5)) {
        case 0:
          if (!order) {
            order = rig.line.next_read(rig.now);
            page = order->kind == ReadOrder::Kind::page ? rig.page(order->request) : Page();
            groups.clear();
            for (const Group& one : order->groups) {
              groups.push_back(rig.group(one, order->request));
            }
          }
          break;
        case 1:
          if (order && order->kind == ReadOrder::Kind::page) {
            rig.line.page_read(*order, page, rig.now);
          } else if (order && order->kind == ReadOrder::Kind::groups) {
            rig.line.groups_read(*order, groups, rig.now);
          }
          order.reset();
          break;
        case 2:
          for (const std::int64_t id : rig.take(1)) {
            const std::string& group = rig.table[id].row.group.id;
            ASSERT_FALSE(at_work.contains(group)) << "seed " << seed << ", row " << id;
            at_work[group] = id;
            if (!known.contains(id)) {
              ASSERT_GT(id, begun[group]) << "seed " << seed;
              for (std::int64_t before = begun[group] + 1; before < id; ++before) {
                ASSERT_TRUE(rig.table[before].row.group.id != group) << "seed " << seed << ", row " << before;
              }
            }
          }
          break;
        case 3:
          if (!at_work.empty()) {
            const auto [group, id] =
                *std::next(at_work.begin(), static_cast<std::ptrdiff_t>(random.below(at_work.size())));
            at_work.erase(group);
            if (random.below(10) == 0) {
              rig.retry(id, milliseconds(random.below(200)));
              break;
            }
            begun[group] = std::max(begun[group], id);
            known.insert(id);
            handled.push_back(id);
            rig.line.handled({id});
          }
          break;
        default:
          if (!handled.empty()) {
            const auto place = handled.begin() + static_cast<std::ptrdiff_t>(random.below(handled.size()));
            const std::int64_t id = *place;
            handled.erase(place);
            if (random.below(20) == 0) {
              rig.line.settled({id}, {Fate::Kind::put_back, milliseconds(random.below(100))}, rig.now);
            } else {
              rig.sent(id);
              ++sent;
            }
          }
      }
    }
    ASSERT_EQ(sent, static_cast<std::size_t>(kRows)) << "seed " << seed;
  }
}

TEST(RowScheduler, ARowThatCommitsLateIsFoundWithTheNextNews) {
  LineRig rig;
  rig.add(10, "a");
  rig.add(12, "b");
  EXPECT_EQ(rig.drain(), (Ids{10, 12}));
  rig.add(11, "c");
  rig.now += milliseconds(10);
  EXPECT_TRUE(rig.drain().empty());
  rig.line.rows_told(rig.now);
  EXPECT_EQ(rig.drain(), Ids{11});
}

TEST(RowScheduler, ARowThatNobodyTellsOfIsFoundWithinThePollInterval) {
  LineRig rig;
  rig.add(10, "a");
  EXPECT_EQ(rig.drain(), Ids{10});
  rig.now += seconds(60);
  EXPECT_TRUE(rig.drain().empty());
  rig.add(2, "b");
  rig.now += seconds(5);
  EXPECT_EQ(rig.drain(), Ids{2});
}

// Every 10 ms while they come, and once a second when none has come for a while.
TEST(RowScheduler, WhereNobodyTellsRowsAreLookedForOftenWhileTheyComeAndSeldomOtherwise) {
  LineRig rig;
  rig.line.look_for_rows(true);
  rig.add(1, "a");
  EXPECT_EQ(rig.drain(), Ids{1});
  for (std::int64_t id = 2; id <= 400; ++id) {
    rig.now += milliseconds(10);
    rig.add(id, "g" + std::to_string(id));
    ASSERT_EQ(rig.drain(), Ids{id}) << "while they come";
  }
  rig.reads = 0;
  for (int i = 0; i < 6000; ++i) {
    rig.now += milliseconds(10);
    rig.read_all();
  }
  EXPECT_LE(rig.reads, 60 + 12 + 10) << "of a minute; every 5 s all of it is read";
  EXPECT_GE(rig.reads, 60);
  rig.add(401, "a");
  rig.now += seconds(1);
  EXPECT_EQ(rig.drain(), Ids{401});
  rig.now += milliseconds(10);
  rig.add(402, "a");
  EXPECT_EQ(rig.drain(), Ids{402}) << "the next one is looked for at once";
}

TEST(RowScheduler, APollIntervalBelowASecondBoundsTheTimeBetweenLooks) {
  LineRig rig({.poll_interval = milliseconds(50)});
  rig.line.look_for_rows(true);
  rig.add(1, "a");
  EXPECT_EQ(rig.drain(), Ids{1});
  for (int i = 0; i < 1000; ++i) {
    rig.now += milliseconds(10);
    rig.read_all();
  }
  rig.add(2, "a");
  rig.now += milliseconds(50);
  EXPECT_EQ(rig.drain(), Ids{2});
}

TEST(RowScheduler, WhatWasSettledWhileAPageWasReadIsNotHandedOutAgain) {
  LineRig rig;
  rig.add(1, "a");
  rig.add(2, "b");
  rig.read_all();
  EXPECT_EQ(rig.take(), (Ids{1, 2}));
  rig.now += seconds(5);
  const ReadOrder order = rig.line.next_read(rig.now);
  const Page before = rig.page(order.request);
  ASSERT_EQ(before.rows.size(), 2U);
  rig.sent(1);
  rig.retry(2, seconds(40));
  rig.line.page_read(order, before, rig.now);
  EXPECT_TRUE(rig.take().empty());
}

TEST(RowScheduler, ABucketThatIsTakenIsReadFromItsFirstRow) {
  LineRig rig({.fetch_limit = 2});
  rig.line.lose_all();
  for (std::int64_t id = 1; id <= 40; ++id) {
    rig.add(id, "g" + std::to_string(id % 8));
  }
  const std::uint32_t first = rig.table[1].row.bucket;
  std::vector<std::uint32_t> others;
  for (std::uint32_t bucket = 0; bucket < 4; ++bucket) {
    if (bucket != first) {
      others.push_back(bucket);
    }
  }
  rig.line.take_buckets(others);
  rig.read();
  rig.read();
  const ReadOrder under_way = rig.line.next_read(rig.now);
  rig.line.take_buckets(std::vector<std::uint32_t>{first});
  rig.line.page_read(under_way, rig.page(under_way.request), rig.now);
  const Ids order = rig.drain();
  std::map<std::string, std::int64_t> last;
  for (const std::int64_t id : order) {
    EXPECT_LT(last[rig.table[id].row.group.id], id);
    last[rig.table[id].row.group.id] = id;
  }
  EXPECT_EQ(order.size(), 40U);
}

TEST(RowScheduler, WhatABucketHadIsForgottenWithItAndWhatIsOutOfItIsNot) {
  LineRig rig;
  rig.add(1, "a");
  rig.add(2, "a");
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1});
  const std::uint32_t bucket = rig.table[1].row.bucket;
  rig.line.leave_buckets(std::vector<std::uint32_t>{bucket});
  EXPECT_EQ(rig.line.out().at({1}).bucket, bucket);
  rig.sent(1);
  EXPECT_TRUE(rig.line.out().empty());
  rig.now += seconds(60);
  EXPECT_TRUE(rig.drain().empty()) << "another host's by now";
}

TEST(RowScheduler, LosingAllTellsWhatWasOut) {
  LineRig rig;
  rig.add(1, "a");
  rig.add(2, "b");
  rig.add(3, "a");
  rig.read_all();
  rig.take();
  const auto lost = rig.line.lose_all();
  EXPECT_EQ(lost.size(), 2U);
  EXPECT_TRUE(lost.contains({1}) && lost.contains({2}));
  EXPECT_FALSE(rig.line.ready());
  rig.line.settled({1}, {Fate::Kind::sent}, rig.now);
  EXPECT_EQ(rig.line.next_read(rig.now).kind, ReadOrder::Kind::none);
}

TEST(RowScheduler, ADeadLetterLetsItsGroupGoOnUnlessItIsToHoldIt) {
  for (const bool hold : {false, true}) {
    LineRig rig({.filter = {.hold_dead = hold}});
    rig.add(1, "a");
    rig.add(2, "a");
    rig.read_all();
    EXPECT_EQ(rig.take(), Ids{1});
    rig.table[1].row.dead = true;
    rig.line.settled({1}, {Fate::Kind::dead}, rig.now);
    EXPECT_EQ(rig.drain(), hold ? Ids{} : Ids{2});
    rig.table[1].row.dead = false;  // an operator redrives it
    rig.line.change_told(rig.now);
    rig.now += seconds(1);
    EXPECT_EQ(rig.drain(), hold ? (Ids{1, 2}) : Ids{1});
  }
}

// The group's next rows are being read when its row that is out fails, and the answer comes after the retry is due.
TEST(RowScheduler, ARowThatFailedWhileItsGroupWasReadGoesBeforeTheNextOnes) {
  for (const Duration wait : {Duration(seconds(1)), Duration::zero()}) {
    LineRig rig({.per_group = 4});
    for (std::int64_t id = 1; id <= 8; ++id) {
      rig.add(id, "a");
    }
    rig.read_all();
    for (std::int64_t id = 1; id <= 2; ++id) {
      ASSERT_EQ(rig.take(), Ids{id});
      rig.sent(id);
    }
    ASSERT_EQ(rig.take(), Ids{3});
    const ReadOrder order = rig.line.next_read(rig.now);
    ASSERT_EQ(order.kind, ReadOrder::Kind::groups);
    std::vector<Page> answer{rig.group(order.groups[0], order.request)};
    rig.retry(3, wait);
    rig.now += 2 * wait;
    rig.line.groups_read(order, std::move(answer), rig.now);
    EXPECT_TRUE(rig.take().empty());
    EXPECT_EQ(rig.drain(), (Ids{3, 4, 5, 6, 7, 8}));
  }
}

TEST(RowScheduler, AnOperatorsWordEndsAWaitAtOnce) {
  LineRig rig;
  rig.add(1, "a");
  rig.read_all();
  rig.take();
  rig.retry(1, seconds(5000));
  EXPECT_TRUE(rig.drain().empty());
  rig.table[1].retry_at = {};
  rig.line.change_told(rig.now);
  EXPECT_EQ(rig.drain(), Ids{1});
}

TEST(RowScheduler, AWaitIsLookedAtAgainWhereNobodyTells) {
  LineRig rig;
  rig.add(1, "a");
  rig.read_all();
  rig.take();
  rig.retry(1, seconds(5000));
  rig.table[1].retry_at = {};
  rig.now += seconds(60);
  EXPECT_EQ(rig.drain(), Ids{1});
}

TEST(RowScheduler, ARowWithoutAGroupThatFailedHoldsNobody) {
  LineRig rig;
  rig.add(1, "");
  rig.add(2, "");
  rig.read_all();
  EXPECT_EQ(rig.take(), (Ids{1, 2}));
  rig.retry(1, seconds(3));
  rig.sent(2);
  rig.add(3, "");
  rig.line.rows_told(rig.now);
  rig.now += milliseconds(5);
  EXPECT_EQ(rig.drain(), Ids{3});
  rig.now += seconds(3);
  EXPECT_EQ(rig.drain(), Ids{1});
}

// Nothing is written of it, and each of the news had it handed out again.
TEST(RowScheduler, ARowWithoutAGroupThatWasReleasedWaitsAsLongAsWasSaid) {
  LineRig rig;
  rig.add(1, "");
  rig.read_all();
  ASSERT_EQ(rig.take(), Ids{1});
  rig.line.settled({1}, {Fate::Kind::put_back, seconds(5)}, rig.now);
  rig.add(2, "");
  rig.now += milliseconds(10);
  rig.line.rows_told(rig.now);
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{2});
  rig.now += seconds(5);
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1});
  rig.line.settled({1}, {Fate::Kind::put_back, seconds(5)}, rig.now);
  rig.now += seconds(1);
  rig.line.change_told(rig.now);
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1}) << "an operator's word ends the wait";
}

TEST(RowScheduler, UnreadableRowsAreGivenToBePutAsideAndHoldNobody) {
  LineRig rig;
  rig.add(1, "a");
  rig.table[1].row.unreadable = "event is NULL";
  rig.add(2, "a");
  const ReadOrder order = rig.line.next_read(rig.now);
  const auto aside = rig.line.page_read(order, rig.page(order.request), rig.now);
  ASSERT_EQ(aside.size(), 1U);
  EXPECT_EQ(aside[0].id, 1);
  EXPECT_EQ(rig.take(), Ids{2});
}

TEST(RowScheduler, UnreadableRowsHoldTheirGroupWhereDeadLettersDo) {
  for (const bool marked : {false, true}) {
    LineRig rig({.filter = {.hold_dead = true}});
    for (const std::int64_t id : {1, 2, 3, 6}) {
      rig.add(id, "a");
    }
    rig.add(4, "");
    rig.add(5, "");
    rig.table[2].row.unreadable = "event is NULL";
    rig.table[4].row.unreadable = "event is NULL";
    const ReadOrder order = rig.line.next_read(rig.now);
    const auto aside = rig.line.page_read(order, rig.page(order.request), rig.now);
    ASSERT_EQ(aside.size(), 2U);
    EXPECT_EQ(aside[0].id, 2);
    EXPECT_EQ(aside[0].unreadable, "event is NULL");
    EXPECT_EQ(rig.take(), (Ids{1, 5}));
    rig.table[2].row.dead = rig.table[4].row.dead = marked;  // or the mark was lost
    rig.sent(1);
    rig.sent(5);
    EXPECT_TRUE(rig.drain().empty());
    rig.now += seconds(61);
    EXPECT_TRUE(rig.drain().empty());
    rig.table[2].row.unreadable = "";
    rig.table[2].row.dead = false;
    rig.line.change_told(rig.now);
    EXPECT_EQ(rig.drain(), (Ids{2, 3, 6}));
  }
}

TEST(RowScheduler, WhatIsInMemoryStaysWithinItsBoundsHoweverLongTheTableIs) {
  LineRig rig({.fetch_limit = 100, .bytes = 500});
  for (std::int64_t id = 1; id <= 5000; ++id) {
    rig.add(id, "g" + std::to_string(id));
  }
  rig.read_all();
  EXPECT_LE(rig.line.size(), 200U);
  EXPECT_EQ(rig.drain().size(), 5000U);
}

// Each group has three rows, of which the first waits already.
TEST(RowScheduler, MoreGroupsThatWaitThanAreRememberedStopNobody) {
  LineRig rig({.fetch_limit = 20, .closed_groups = 4});
  for (std::int64_t id = 1; id <= 300; ++id) {
    rig.add(id, "g" + std::to_string(id % 100));
    rig.table[id].retry_at = id <= 100 ? rig.now + seconds(30) : SteadyTime{};
  }
  rig.add(301, "other", "u");
  EXPECT_EQ(rig.drain(), Ids{301});
  EXPECT_EQ(rig.line.closed(), 4U);
  EXPECT_TRUE(rig.line.crowded());
  rig.now += seconds(3);  // news are read from the end on
  rig.add(302, "g50");
  rig.add(303, "new");
  rig.line.rows_told(rig.now);
  rig.now += milliseconds(5);
  EXPECT_EQ(rig.drain(), Ids{303}) << "what is not remembered is known all the same";
  rig.now += seconds(6);
  EXPECT_TRUE(rig.drain().empty()) << "as it is when everything is read again";
  rig.now += seconds(31);
  std::map<std::string, std::int64_t> last;
  const Ids order = rig.drain();
  EXPECT_EQ(order.size(), 301U);
  for (const std::int64_t id : order) {
    std::int64_t& before = last[rig.table[id].row.group.id];
    EXPECT_LT(before, id);
    before = id;
  }
  EXPECT_FALSE(rig.line.crowded());
}

TEST(RowScheduler, ASweepThatTakesLongerThanThePollIntervalComesToItsEnd) {
  LineRig rig({.fetch_limit = 20, .poll_interval = milliseconds(200), .closed_groups = 4});
  for (std::int64_t id = 1; id <= 600; ++id) {
    rig.add(id, "g" + std::to_string(id));
    rig.table[id].retry_at = rig.now + seconds(3600);
  }
  rig.add(601, "other");
  Ids out;
  for (int i = 0; i < 500 && out.empty(); ++i) {
    rig.read();
    rig.now += milliseconds(100);
    out = rig.take();
  }
  EXPECT_EQ(out, Ids{601});
  rig.sent(601);
  int idle = 0;
  for (int i = 0; i < 500; ++i) {
    idle += rig.read() ? 0 : 1;
    rig.now += milliseconds(100);
  }
  EXPECT_GT(idle, 100) << "it does not read for ever";
}

TEST(RowScheduler, GroupsThatFailBeyondThoseThatAreRememberedWaitAllTheSame) {
  for (const bool hold : {false, true}) {
    LineRig rig({.filter = {.hold_dead = hold}, .fetch_limit = 20, .closed_groups = 4});
    for (std::int64_t id = 1; id <= 120; ++id) {
      rig.add(id, "g" + std::to_string(id % 60));
    }
    std::set<std::int64_t> failed;
    for (rig.read_all(); failed.size() < 60; rig.read_all()) {
      for (const std::int64_t id : rig.take()) {
        ASSERT_LE(id, 60) << "its group waits";
        failed.insert(id);
        if (hold) {
          rig.table[id].row.dead = true;
          rig.line.settled({id}, {Fate::Kind::dead, {}, true}, rig.now);
        } else {
          rig.retry(id, seconds(30));
        }
      }
    }
    EXPECT_EQ(rig.line.closed(), 4U);
    rig.now += seconds(3);  // news are read from the end on
    for (int group = 0; group < 60; ++group) {
      rig.add(300 + group, "g" + std::to_string(group));
    }
    rig.add(500, "new");
    rig.line.rows_told(rig.now);
    rig.now += milliseconds(5);
    EXPECT_EQ(rig.drain(), Ids{500});
    rig.now += seconds(6);
    EXPECT_TRUE(rig.drain().empty());
    for (auto& [id, stored] : rig.table) {
      stored.row.dead = false;
    }
    rig.line.change_told(rig.now);
    rig.now += seconds(31);
    EXPECT_EQ(rig.drain().size(), 180U);
  }
}

// A handler's release stands nowhere but in memory, and is kept to however many there are.
TEST(RowScheduler, GroupsThatWereReleasedWaitAsLongAsWasSaid) {
  LineRig rig({.fetch_limit = 20, .closed_groups = 4});
  for (std::int64_t id = 1; id <= 20; ++id) {
    rig.add(id, "g" + std::to_string(id));
  }
  rig.read_all();
  for (const std::int64_t id : rig.take()) {
    rig.line.settled({id}, {Fate::Kind::put_back, seconds(30)}, rig.now);
  }
  rig.now += seconds(29);
  rig.add(21, "new");
  EXPECT_EQ(rig.drain(), Ids{21});
  rig.now += seconds(1);
  EXPECT_EQ(rig.drain().size(), 20U);
}

TEST(RowScheduler, WhatIsPassedOverInTheDatabaseFitsIntoAStatement) {
  LineRig rig({.fetch_limit = 20});
  for (std::int64_t id = 1; id <= 200; ++id) {
    rig.add(id, std::string(20'000, 'g') + std::to_string(id % 100));
    rig.table[id].retry_at = id <= 100 ? rig.now + seconds(30) : SteadyTime{};
  }
  rig.add(201, "other");
  EXPECT_EQ(rig.drain(), Ids{201});
  EXPECT_EQ(rig.line.closed(), 100U);
  rig.now += seconds(6);
  const ReadOrder order = rig.line.next_read(rig.now);
  std::size_t bytes = 0;
  for (const Group& group : order.request.without) {
    bytes += group.type.size() + group.id.size();
  }
  EXPECT_GT(bytes, 500'000U);
  EXPECT_LE(bytes, 1U << 20U);
}

TEST(RowScheduler, WithTheOriginalsReadingARowThatWasSentComesAgainAtTheNextPollAndNotBefore) {
  LineRig rig({.resend_sent = true});
  rig.add(1, "a");
  rig.add(2, "a");
  EXPECT_EQ(rig.drain(), (Ids{1, 2}));
  rig.now += seconds(1);
  rig.line.rows_told(rig.now);
  EXPECT_TRUE(rig.drain().empty());
  rig.now += seconds(4);
  EXPECT_EQ(rig.drain(), (Ids{1, 2}));
}

TEST(RowScheduler, WithTheOriginalsReadingARowThatFailedHoldsItsGroupUntilItIsTriedAgain) {
  LineRig rig({.poll_interval = seconds(60), .resend_sent = true});
  rig.add(1, "a");
  rig.add(2, "a");
  rig.read_all();
  EXPECT_EQ(rig.take(), Ids{1});
  rig.retry(1, seconds(10));
  rig.now += seconds(9);
  EXPECT_TRUE(rig.drain().empty());
  rig.now += seconds(1);
  EXPECT_EQ(rig.drain(), (Ids{1, 2}));
}

}  // namespace
}  // namespace sluice::queue::outbox
