#include "host/stores/owned/ownership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.hpp"

namespace sluice::queue::owned {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::map<std::string, std::size_t> counts(const Owners& owners) {
  std::map<std::string, std::size_t> result;
  for (const auto& owner : owners) {
    ++result[owner];
  }
  return result;
}

std::size_t changes(const Owners& before, const Owners& after) {
  std::size_t changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    changed += before[i] != after[i] ? 1 : 0;
  }
  return changed;
}

TEST(AssignmentTest, NobodyHasAnythingWithoutHosts) {
  EXPECT_THAT(assignment_plan({"a", "", "b"}, {}), Each(IsEmpty()));
  EXPECT_THAT(assignment_plan({}, {"a"}), IsEmpty());
}

TEST(AssignmentTest, OneHostHasEverything) {
  EXPECT_THAT(assignment_plan({"", "gone", ""}, {"a"}), Each("a"));
}

TEST(AssignmentTest, WhoeverHasAShardKeepsItWithinHisShare) {
  EXPECT_THAT(assignment_plan({"b", "a", "b", "a"}, {"a", "b"}), ElementsAre("b", "a", "b", "a"));
}

TEST(AssignmentTest, AJoinerGetsHisShareFromThoseWhoHaveMost) {
  const Owners before(8, "a");
  const Owners after = assignment_plan(before, {"a", "b"});
  EXPECT_EQ(counts(after)["a"], 4U);
  EXPECT_EQ(counts(after)["b"], 4U);
}

TEST(AssignmentTest, MoreHostsThanShardsLeaveSomeWithoutAny) {
  const Owners after = assignment_plan({"", ""}, {"a", "b", "c"});
  EXPECT_THAT(after, ElementsAre("a", "b"));
}

// From any state: shares differ by one at most, and no plan moves more shards than it must.
TEST(AssignmentTest, AnyStateComesToEqualSharesWithTheFewestMoves) {
  SeededRandom random(7);
  for (int round = 0; round < 2000; ++round) {
    std::set<std::string> hosts;
    for (std::uint64_t i = 0; i <= random.below(6); ++i) {
      hosts.insert("h" + std::to_string(random.below(9)));
    }
    Owners before(random.below(33));
    for (auto& owner : before) {
      owner = random.below(4) == 0 ? "" : "h" + std::to_string(random.below(9));
    }
    const Owners after = assignment_plan(before, hosts);
    auto share = counts(after);
    std::size_t least = before.size();
    std::size_t most = 0;
    for (const auto& host : hosts) {
      least = std::min(least, share[host]);
      most = std::max(most, share[host]);
    }
    EXPECT_LE(most - least, 1U);
    // Those without a living owner move; of the others, the fewest that leave equal shares.
    std::vector<std::size_t> held;
    for (const auto& host : hosts) {
      held.push_back(static_cast<std::size_t>(std::count(before.begin(), before.end(), host)));
    }
    std::sort(held.rbegin(), held.rend());
    const std::size_t larger = before.size() % hosts.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < held.size(); ++i) {
      kept += std::min(held[i], before.size() / hosts.size() + (i < larger ? 1 : 0));
    }
    const std::size_t must_move = before.size() - kept;
    EXPECT_EQ(changes(before, after), must_move);
    EXPECT_EQ(assignment_plan(after, hosts), after) << "a plan that is carried out stays as it is";
  }
}

}  // namespace
}  // namespace sluice::queue::owned
