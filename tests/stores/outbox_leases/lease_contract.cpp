#include "tests/stores/outbox_leases/lease_contract.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <set>
#include <thread>

namespace sluice::test {

using queue::outbox::MarkStatus;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

LeaseHost::LeaseHost(LeaseRig& rig, const std::string& space, std::uint32_t buckets)
    : database(rig.database(clock, random)) {
  auto opened = database->open_locks(soon());
  EXPECT_TRUE(opened) << opened.error().message();
  session = std::move(*opened);
  const auto members = session->join({space, buckets}, soon());
  EXPECT_TRUE(members) << members.error().message();
  joined = members ? *members : queue::outbox::Members{};
}

std::uint32_t LeaseHost::beat() {
  const auto members = session->beat(soon());
  EXPECT_TRUE(members) << members.error().message();
  return members ? members->count : 0;
}

std::vector<std::uint32_t> LeaseHost::lock(const std::vector<std::uint32_t>& buckets) {
  const auto got = session->lock(buckets, soon());
  EXPECT_TRUE(got) << got.error().message();
  return got ? *got : std::vector<std::uint32_t>();
}

bool LeaseHost::unlock(const std::vector<std::uint32_t>& buckets) {
  return static_cast<bool>(session->unlock(buckets, soon()));
}

Result<std::vector<MarkStatus>> LeaseHost::mark_sent(std::int64_t id) {
  return session->mark(std::vector{queue::outbox::sent_mark({id})}, soon());
}

namespace {

void members_count_each_other(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay");
  EXPECT_EQ(one.joined.count, 1U);
  LeaseHost two(rig, "orders/relay");
  EXPECT_EQ(two.joined.count, 2U);
  EXPECT_EQ(one.beat(), 2U);
  two.session.reset();
  EXPECT_EQ(one.beat(), 1U) << "who goes tells so";
}

void another_number_of_buckets_is_seen(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay", 8);
  EXPECT_EQ(one.joined.other_buckets, 0U);
  LeaseHost two(rig, "orders/relay", 16);
  EXPECT_EQ(two.joined.other_buckets, 8U);
}

void a_bucket_is_one_members_alone(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay");
  LeaseHost two(rig, "orders/relay");
  EXPECT_THAT(one.lock({0, 1, 2}), UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(two.lock({1, 2, 3}), UnorderedElementsAre(3));
  EXPECT_TRUE(one.unlock({1, 7})) << "one that it does not hold changes nothing";
  EXPECT_THAT(two.lock({1, 2}), ElementsAre(1));
}

void spaces_are_apart(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay");
  LeaseHost other(rig, std::string(500, 'x') + "'\"\\`/ä");
  EXPECT_EQ(other.joined.count, 1U);
  EXPECT_EQ(one.lock({0}).size(), 1U);
  EXPECT_EQ(other.lock({0}).size(), 1U);
}

// The dead one's own clock stands still, as that of a process does that is stopped: it has no way to know.
void the_dead_lose_their_buckets_and_cannot_mark(LeaseRig& rig) {
  rig.insert(1);
  LeaseHost dead(rig, "orders/relay");
  LeaseHost other(rig, "orders/relay");
  EXPECT_THAT(dead.lock({0, 1}), UnorderedElementsAre(0, 1));
  other.clock.advance(LeaseRig::kLease / 2);
  EXPECT_EQ(other.beat(), 2U);
  EXPECT_THAT(other.lock({0, 1}), IsEmpty());
  other.clock.advance(LeaseRig::kLease / 3);
  EXPECT_EQ(other.beat(), 2U);
  other.clock.advance(LeaseRig::kLease / 3);
  EXPECT_EQ(other.beat(), 1U) << "a lease after its last heartbeat was seen";
  EXPECT_THAT(other.lock({0, 1}), UnorderedElementsAre(0, 1));
  const auto late = dead.mark_sent(1);
  ASSERT_FALSE(late) << "whoever lost his buckets cannot mark";
  EXPECT_EQ(late.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(late.error().message(), testing::HasSubstr("taken this session for dead"));
  EXPECT_EQ(rig.count_sent(), 0);
  EXPECT_EQ(dead.session->beat(dead.soon()).error().code(), ErrorCode::unavailable);
  EXPECT_THAT(*other.mark_sent(1), ElementsAre(MarkStatus::written));
}

// Whoever comes too late for a bucket has its row locked for a moment. What its owner gives back meanwhile must not
// stay in his name, for he works on it no more.
void what_is_given_back_is_nobodys_whoever_has_its_row_locked(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay");
  LeaseHost two(rig, "orders/relay");
  ASSERT_EQ(one.lock({5}).size(), 1U);
  rig.lock_bucket_rows();
  EXPECT_FALSE(one.unlock({5})) << "waited for, and not passed over as if nothing were to be done";
  rig.unlock_bucket_rows();
  EXPECT_THAT(two.lock({5}), IsEmpty());
  one.session.reset();  // as its holder does after such an error
  EXPECT_THAT(two.lock({5}), ElementsAre(5));
}

void who_goes_leaves_nothing_behind(LeaseRig& rig) {
  LeaseHost one(rig, "orders/relay");
  LeaseHost two(rig, "orders/relay");
  EXPECT_EQ(one.lock({0, 1}).size(), 2U);
  one.session.reset();
  EXPECT_THAT(two.lock({0, 1}), UnorderedElementsAre(0, 1)) << "at once";
}

void marks_keep_a_session_alive(LeaseRig& rig) {
  rig.insert(1);
  rig.insert(2);
  LeaseHost one(rig, "orders/relay");
  LeaseHost two(rig, "orders/relay");
  EXPECT_EQ(one.lock({0}).size(), 1U);
  for (std::int64_t id = 1; id <= 2; ++id) {
    one.clock.advance(2 * LeaseRig::kLease / 3);
    two.clock.advance(2 * LeaseRig::kLease / 3);
    EXPECT_THAT(*one.mark_sent(id), ElementsAre(MarkStatus::written));
    EXPECT_EQ(two.beat(), 2U);
  }
  EXPECT_EQ(one.lock({1}).size(), 1U);
  one.clock.advance(2 * LeaseRig::kLease);
  EXPECT_EQ(one.mark_sent(2).error().code(), ErrorCode::unavailable) << "its own clock ends its lease";
}

void many_at_once_share_without_overlap(LeaseRig& rig) {
  constexpr std::uint32_t kBuckets = 64;
  constexpr std::size_t kHosts = 4;
  std::vector<std::unique_ptr<LeaseHost>> hosts;
  for (std::size_t i = 0; i < kHosts; ++i) {
    hosts.push_back(std::make_unique<LeaseHost>(rig, "orders/relay", kBuckets));
  }
  std::vector<std::uint32_t> all(kBuckets);
  std::iota(all.begin(), all.end(), 0U);
  std::multiset<std::uint32_t> taken;
  for (int round = 0; round < 5; ++round) {
    std::vector<std::vector<std::uint32_t>> got(kHosts);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kHosts; ++i) {
      threads.emplace_back([&, i] { got[i] = hosts[i]->lock(all); });
    }
    for (std::jthread& thread : threads) {
      thread.join();
    }
    taken.clear();
    for (std::size_t i = 0; i < kHosts; ++i) {
      taken.insert(got[i].begin(), got[i].end());
    }
    EXPECT_EQ(std::set<std::uint32_t>(taken.begin(), taken.end()).size(), taken.size());
    // What was being taken by somebody else is not waited for, so that nobody may have it: the next round does.
    for (std::size_t i = 0; i < kHosts; ++i) {
      EXPECT_TRUE(hosts[i]->unlock(got[i]));
    }
  }
  EXPECT_EQ(hosts[0]->lock(all).size(), kBuckets);
}

}  // namespace

const std::array<LeaseCase, 9> kLeaseCases{{
    {"MembersCountEachOther", members_count_each_other},
    {"AnotherNumberOfBucketsIsSeen", another_number_of_buckets_is_seen},
    {"ABucketIsOneMembersAlone", a_bucket_is_one_members_alone},
    {"SpacesAreApart", spaces_are_apart},
    {"TheDeadLoseTheirBucketsAndCannotMark", the_dead_lose_their_buckets_and_cannot_mark},
    {"WhatIsGivenBackIsNobodysWhoeverHasItsRowLocked", what_is_given_back_is_nobodys_whoever_has_its_row_locked},
    {"WhoGoesLeavesNothingBehind", who_goes_leaves_nothing_behind},
    {"MarksKeepASessionAlive", marks_keep_a_session_alive},
    {"ManyAtOnceShareWithoutOverlap", many_at_once_share_without_overlap},
}};

}  // namespace sluice::test
