// What was at work in an owner when it died comes back as a suspect, whatever lies before it by then.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::Delivery;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Le;
using ::testing::SizeIs;

constexpr queue::ClaimRules kInGroups{.order = queue::Order::group};

bool takes(OwnerWorld& world, const OwnerHost& host, std::size_t shards) {
  return world.pass_until([&] { return world.shards_of(host.name) == shards; }, 25s);
}

std::set<std::string> ids_of(const std::vector<Delivery>& deliveries) {
  std::set<std::string> ids;
  for (const Delivery& delivery : deliveries) {
    ids.insert(delivery.message.id);
  }
  return ids;
}

/// Has all there is worked off, by each of them in turn; the ids of what came as suspects.
std::set<std::string> suspects_of(OwnerWorld& world, const std::vector<OwnerHost*>& hosts,
                                  const queue::ClaimRules& rules = {}) {
  std::set<std::string> suspects;
  for (int round = 0; round < 20'000 && !world.messages().empty(); ++round) {
    for (OwnerHost* host : hosts) {
      for (const Delivery& delivery : host->claim(50, rules)) {
        if (delivery.suspect) {
          suspects.insert(delivery.message.id);
        }
        host->settle(delivery, CompletionAction::remove);
      }
    }
    if (round % 10 == 0) {
      world.pass(100ms);
    }
  }
  EXPECT_THAT(world.messages(), IsEmpty());
  return suspects;
}

/// So many, in as many lots as it takes.
std::vector<Delivery> claim_all(OwnerHost& host, std::size_t count, const queue::ClaimRules& rules) {
  std::vector<Delivery> all;
  for (int lot = 0; lot < 100 && all.size() < count; ++lot) {
    const auto claimed = host.claim(count - all.size(), rules);
    all.insert(all.end(), claimed.begin(), claimed.end());
  }
  return all;
}

/// So many fail, in lots of ten, and wait for a while.
void fail(OwnerHost& host, std::size_t count, Duration delay) {
  while (count > 0) {
    const auto claimed = host.claim(std::min<std::size_t>(count, 10));
    ASSERT_FALSE(claimed.empty());
    count -= claimed.size();
    std::vector<queue::Completion> completions;
    completions.reserve(claimed.size());
    for (const Delivery& delivery : claimed) {
      completions.push_back({.receipt = delivery.receipt, .action = CompletionAction::retry, .delay = delay});
    }
    host.settle(completions);
  }
}

TEST(OwnerSuspects, LieBehindHundredsOfRetriesOfOlderKeys) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(300);
  fail(a, 300, 5s);
  world.clock.advance(1s);
  world.send(20);
  const auto at_work = ids_of(a.claim(20));
  ASSERT_THAT(at_work, SizeIs(20));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 1));
  EXPECT_THAT(suspects_of(world, {&b}), IsSupersetOf(at_work));
}

TEST(OwnerSuspects, LieBehindWhatFollowsInGroupsThatHadTheirTurn) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  for (int group = 0; group < 60; ++group) {
    world.send(5, 100, {}, "old" + std::to_string(group), 0);
  }
  world.clock.advance(1s);
  for (int group = 0; group < 10; ++group) {
    world.send(1, 100, {}, "new" + std::to_string(group), 0);
  }
  world.pass(10s);
  for (int lot = 0; lot < 6; ++lot) {
    for (const Delivery& delivery : claim_all(a, 10, kInGroups)) {
      a.settle(delivery, CompletionAction::remove);
    }
  }
  const auto at_work = ids_of(claim_all(a, 10, kInGroups));
  ASSERT_THAT(at_work, SizeIs(10));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 1));
  EXPECT_THAT(suspects_of(world, {&b}, kInGroups), IsSupersetOf(at_work));
}

TEST(OwnerSuspects, LieBehindWhatCameLateFromSlowWriters) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.send(20);
  const auto at_work = ids_of(a.claim(20));
  ASSERT_THAT(at_work, SizeIs(20));
  a.kill();
  world.send(90, 100, -1s);
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 1));
  EXPECT_THAT(suspects_of(world, {&b}), IsSupersetOf(at_work));
}

TEST(OwnerSuspects, StaySoWhenMoreOfThemThanAHundredAreHandedOn) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.send(200, 100, {}, {}, 0);
  world.send(200, 100, {}, {}, 1);
  const auto at_work = ids_of(a.claim(400));
  ASSERT_THAT(at_work, SizeIs(400));
  a.kill();
  OwnerHost& b = world.add("b/1");
  ASSERT_TRUE(takes(world, b, 2));
  OwnerHost& c = world.add("c/1");
  ASSERT_TRUE(takes(world, c, 1));
  EXPECT_EQ(suspects_of(world, {&b, &c}), at_work);
}

}  // namespace
}  // namespace sluice::test
