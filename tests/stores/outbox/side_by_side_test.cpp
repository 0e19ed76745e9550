// Several rows of a group that are out at once, for handlers that only send.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "tests/stores/outbox/line_rig.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// What `send_order` says of rows that are out, in words.
std::string order_of(const RowScheduler& line, const Ids& ids) {
  std::vector<std::optional<RowKey>> keys;
  for (const std::int64_t id : ids) {
    keys.emplace_back(RowKey{id});
  }
  const SendOrder order = line.send_order(keys);
  std::string text;
  for (const auto& group : order.now) {
    for (const std::size_t place : group) {
      text += std::to_string(ids[place]) + " ";
    }
  }
  text += order.never.empty() ? "" : "never ";
  for (const std::size_t place : order.never) {
    text += std::to_string(ids[place]) + " ";
  }
  return text;
}

TEST(RowSchedulerSideBySide, RowsOfAGroupAreOutUpToANumberAndAreSentInTheirOrder) {
  LineRig rig({.filter = {.side_by_side = true}, .per_group = 8});
  for (std::int64_t id = 1; id <= 8; ++id) {
    rig.add(id, "a");
  }
  rig.add(9, "b");
  rig.add(10, "");
  rig.read_all();
  EXPECT_EQ(rig.take(2), (Ids{1, 2}));
  EXPECT_EQ(rig.take(), (Ids{3, 4, 9, 10}));
  EXPECT_EQ(order_of(rig.line, {4, 2, 10, 9}), "9 10 ") << "1 has not been handled";
  EXPECT_EQ(order_of(rig.line, {3, 1, 2}), "1 2 3 ");
  EXPECT_EQ(order_of(rig.line, {3, 1}), "1 ");
  rig.line.handled({1});
  EXPECT_TRUE(rig.take().empty()) << "four are not marked yet";
  EXPECT_EQ(order_of(rig.line, {4, 3, 2, 1}), "1 2 3 4 ") << "1 once more, whose mark failed";
  rig.sent(1);
  EXPECT_EQ(rig.take(), Ids{5});
  EXPECT_EQ(order_of(rig.line, {8}), "never 8 ") << "which is not out";
  for (const std::int64_t id : {2, 3, 4, 5, 9, 10}) {
    rig.line.handled({id});
    rig.sent(id);
  }
  EXPECT_EQ(rig.take(), (Ids{6, 7, 8}));
}

TEST(RowSchedulerSideBySide, WhatFollowsARowThatFailedIsNotSentBeforeIt) {
  LineRig rig({.filter = {.side_by_side = true}});
  for (std::int64_t id = 1; id <= 5; ++id) {
    rig.add(id, "a");
  }
  rig.read_all();
  ASSERT_EQ(rig.take(), (Ids{1, 2, 3, 4, 5}));
  rig.retry(3, seconds(1));
  EXPECT_EQ(order_of(rig.line, {1, 2, 4, 5}), "1 2 never 4 5 ");
  for (const std::int64_t id : {1, 2}) {
    rig.line.handled({id});
    rig.sent(id);
  }
  rig.line.settled({4}, {Fate::Kind::put_back}, rig.now);
  rig.now += seconds(1);
  rig.read_all();
  EXPECT_EQ(rig.take(), (Ids{3, 4})) << "5 is still out";
  EXPECT_EQ(order_of(rig.line, {3, 4}), "3 4 ");
  rig.line.settled({5}, {Fate::Kind::put_back}, rig.now);
  for (const std::int64_t id : {3, 4}) {
    rig.line.handled({id});
    rig.sent(id);
  }
  EXPECT_EQ(rig.drain(), Ids{5});
}

TEST(RowSchedulerSideBySide, ADeadLetterLetsTheOthersGoUnlessItIsToHoldThem) {
  for (const bool hold : {false, true}) {
    LineRig rig({.filter = {.hold_dead = hold, .side_by_side = true}});
    rig.add(1, "a");
    rig.add(2, "a");
    rig.read_all();
    ASSERT_EQ(rig.take(), (Ids{1, 2}));
    rig.table[1].row.dead = true;
    rig.line.settled({1}, {.kind = Fate::Kind::dead, .stored = true}, rig.now);
    EXPECT_EQ(order_of(rig.line, {2}), hold ? "never 2 " : "2 ");
  }
}

// Handlers end in any order and some fail, and what they send is sent in
// the order that the scheduler gives, in bits. Each is sent, and of each group none before the one ahead of it.
TEST(RowSchedulerSideBySide, GroupsAreSentInTheirOrderWhateverComesWhen) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SeededRandom random(seed);
    LineRig rig({.filter = {.side_by_side = true}, .fetch_limit = 20, .per_group = 2 + random.below(20)});
    constexpr std::int64_t kRows = 200;
    for (std::int64_t id = 1; id <= kRows; ++id) {
      rig.add(id, random.below(3) == 0 ? "other" : "hot");
    }
    std::map<std::string, std::int64_t> last;
    Ids at_work;
    Ids staged;
    Ids unmarked;
    std::set<std::int64_t> sent;
    std::size_t marked = 0;
    const auto any_of = [&](Ids& ids) {
      const auto place = ids.begin() + static_cast<std::ptrdiff_t>(random.below(ids.size()));
      const std::int64_t id = *place;
      ids.erase(place);
      return id;
    };
    for (int step = 0; step < 20'000 && marked < kRows; ++step) {
      rig.now += milliseconds(random.below(20));
      switch (random.below(5)) {
        case 0:
          rig.read();
          break;
        case 1:
          for (const std::int64_t id : rig.take(1 + random.below(10))) {
            at_work.push_back(id);
          }
          break;
        case 2:
          if (!at_work.empty()) {
            const std::int64_t id = any_of(at_work);
            random.below(20) == 0 ? rig.retry(id, milliseconds(random.below(200))) : staged.push_back(id);
          }
          break;
        case 3: {
          Ids some;
          for (std::size_t left = random.below(staged.size() + 1); left > 0; --left) {
            some.push_back(any_of(staged));
          }
          std::vector<std::optional<RowKey>> keys(some.size());
          std::transform(some.begin(), some.end(), keys.begin(), [](std::int64_t id) { return RowKey{id}; });
          const SendOrder order = rig.line.send_order(keys);
          std::set<std::size_t> settled(order.never.begin(), order.never.end());
          for (const std::size_t place : order.never) {
            rig.line.settled({some[place]}, {Fate::Kind::put_back}, rig.now);
          }
          std::vector<std::size_t> going;
          for (const auto& group : order.now) {
            // What follows one that could not be sent is not sent either.
            const std::size_t most = random.below(4) == 0 ? random.below(group.size() + 1) : group.size();
            going.insert(going.end(), group.begin(), group.begin() + static_cast<std::ptrdiff_t>(most));
          }
          for (const std::size_t place : going) {
            const std::int64_t id = some[place];
            const std::string& group = rig.table[id].row.group.id;
            settled.insert(place);
            for (std::int64_t before = last[group] + 1; before < id; ++before) {
              ASSERT_TRUE(rig.table[before].row.group.id != group) << "seed " << seed << ", " << before << " of " << id;
            }
            last[group] = std::max(last[group], id);
            sent.insert(id);
            rig.line.handled({id});
            unmarked.push_back(id);
          }
          for (std::size_t place = 0; place < some.size(); ++place) {
            if (!settled.contains(place)) {
              staged.push_back(some[place]);
            }
          }
          break;
        }
        default:
          if (!unmarked.empty()) {
            const std::int64_t id = any_of(unmarked);
            if (random.below(20) == 0) {
              rig.line.settled({id}, {Fate::Kind::put_back, milliseconds(random.below(100))}, rig.now);
            } else {
              rig.sent(id);
              ++marked;
            }
          }
      }
    }
    ASSERT_EQ(marked, static_cast<std::size_t>(kRows)) << "seed " << seed;
    ASSERT_EQ(sent.size(), static_cast<std::size_t>(kRows)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::queue::outbox
