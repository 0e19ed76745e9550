#include "host/stores/owned/ownership.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace sluice::queue::owned {
namespace {

/// Members that share the locks of one table, each told in its turn how many there are.
class Members {
 public:
  explicit Members(std::uint32_t buckets) : buckets_(buckets) {}

  void join(std::uint32_t first) { shares_.emplace_back(buckets_, first); }
  void kill(std::size_t member) {
    for (auto owner = owners_.begin(); owner != owners_.end();) {
      owner = owner->second == member ? owners_.erase(owner) : std::next(owner);
    }
    dead_.insert(member);
  }
  void round() {
    const auto alive = static_cast<std::uint32_t>(shares_.size() - dead_.size());
    for (std::size_t member = 0; member < shares_.size(); ++member) {
      if (!dead_.contains(member)) {
        turn(member, alive);
      }
    }
  }
  std::size_t held(std::size_t member) const {
    return static_cast<std::size_t>(
        std::count_if(owners_.begin(), owners_.end(), [member](const auto& owner) { return owner.second == member; }));
  }
  std::size_t owned() const { return owners_.size(); }

 private:
  void turn(std::size_t member, std::uint32_t alive) {
    PartShare& share = shares_[member];
    share.shared_by(alive);
    const auto free = share.free_to_go([](std::uint32_t) { return true; });
    for (const std::uint32_t bucket : free) {
      EXPECT_EQ(owners_[bucket], member);
      owners_.erase(bucket);
    }
    share.unlocked(free);
    share.begin_round();
    for (auto wanted = share.to_try(); !wanted.empty(); wanted = share.to_try()) {
      std::vector<std::uint32_t> got;
      for (const std::uint32_t bucket : wanted) {
        if (owners_.emplace(bucket, member).second) {
          got.push_back(bucket);
        }
      }
      for (const std::uint32_t bucket : share.locked(got).surplus) {
        owners_.erase(bucket);
      }
    }
  }

  const std::uint32_t buckets_;
  std::vector<PartShare> shares_;
  std::map<std::uint32_t, std::size_t> owners_;
  std::set<std::size_t> dead_;
};

TEST(PartShare, OneMemberHasAll) {
  Members members(64);
  members.join(17);
  members.round();
  EXPECT_EQ(members.held(0), 64U);
}

TEST(PartShare, MembersThatJoinGetTheirPartAndNoBucketIsLeftOver) {
  Members members(64);
  members.join(0);
  members.round();
  members.join(40);
  members.join(9);
  for (int i = 0; i < 3; ++i) {
    members.round();
  }
  EXPECT_EQ(members.owned(), 64U);
  for (std::size_t member = 0; member < 3; ++member) {
    EXPECT_GE(members.held(member), 20U);
    EXPECT_LE(members.held(member), 22U);
  }
}

TEST(PartShare, WhatADeadMemberHeldIsTakenOver) {
  Members members(64);
  for (std::uint32_t first : {0U, 20U, 40U}) {
    members.join(first);
  }
  for (int i = 0; i < 3; ++i) {
    members.round();
  }
  members.kill(1);
  members.round();
  members.round();
  EXPECT_EQ(members.owned(), 64U);
  EXPECT_EQ(members.held(0) + members.held(2), 64U);
}

TEST(PartShare, MoreMembersThanBucketsLeaveSomeWithNone) {
  Members members(2);
  for (std::uint32_t first : {0U, 1U, 0U}) {
    members.join(first);
  }
  members.round();
  members.round();
  EXPECT_EQ(members.owned(), 2U);
}

TEST(PartShare, ABucketLeavesOnlyWhenNothingIsOut) {
  PartShare share(4, 0);
  share.shared_by(1);
  share.begin_round();
  share.locked(share.to_try());
  EXPECT_EQ(share.shared_by(2).size(), 2U);
  EXPECT_TRUE(share.free_to_go([](std::uint32_t) { return false; }).empty());
  EXPECT_TRUE(share.leaving());
  share.begin_round();
  EXPECT_TRUE(share.to_try().empty()) << "what is leaving is still locked, and would be locked twice";
  const auto free = share.free_to_go([](std::uint32_t bucket) { return bucket == 3; });
  EXPECT_EQ(free, std::vector<std::uint32_t>{3});
}

}  // namespace
}  // namespace sluice::queue::owned
