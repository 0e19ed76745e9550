#include "host/stores/core/keys.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::queue::core {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow{std::chrono::seconds(1'700'000'000)};

const KeyClaim kClaim{.job = "pay", .key = "k", .owner = "a", .hold_for = 30s};

StoredKey stored(std::string owner, bool done) {
  return {.job = "pay", .key = "k", .owner = std::move(owner), .done = done, .result = {}, .until = kNow + 1ns};
}

TEST(Keys, AKeyIsMarkedWhereNobodyElseHasIt) {
  EXPECT_FALSE(answer_to(kClaim, nullptr, kNow));
  const StoredKey own = stored("a", false);
  EXPECT_FALSE(answer_to(kClaim, &own, kNow)) << "it may be marked again";
  EXPECT_EQ(mark_end(kClaim, kNow), kNow + 30s);
  const StoredKey others = stored("b", false);
  const auto answer = answer_to(kClaim, &others, kNow);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->state, KeyState::running);
  EXPECT_EQ(answer->owner, "b");
  EXPECT_FALSE(answer_to(kClaim, &others, others.until)) << "its time has passed";
}

TEST(Keys, ADoneKeyIsDoneForItsOwnerToo) {
  for (const char* const owner : {"a", "b"}) {
    const StoredKey done = stored(owner, true);
    const auto answer = answer_to(kClaim, &done, kNow);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->state, KeyState::done);
  }
}

TEST(Keys, WhoOnlyAsksLearnsOfWhatIsDoneAlone) {
  KeyClaim asks = kClaim;
  asks.hold_for = {};
  const StoredKey running = stored("b", false);
  EXPECT_EQ(answer_to(asks, &running, kNow).value_or(KeyAnswer{.state = KeyState::failed}).state, KeyState::ours);
  const StoredKey done = stored("b", true);
  EXPECT_EQ(answer_to(asks, &done, kNow).value_or(KeyAnswer{}).state, KeyState::done);
}

TEST(Keys, ARecordTakesThePlaceOfTheOwnersMarkOnly) {
  EXPECT_TRUE(may_record(nullptr, "a", kNow));
  for (const bool done : {false, true}) {
    const StoredKey own = stored("a", done);
    EXPECT_TRUE(may_record(&own, "a", kNow));
    EXPECT_FALSE(may_record(&own, "b", kNow));
    EXPECT_TRUE(may_record(&own, "b", own.until));
  }
}

TEST(UniqueKeys, AreHeldUntilTheMessageIsClaimedOrDoneAndByNoDeadLetter) {
  EXPECT_TRUE(holds_unique_key({}, UniqueUntil::claimed));
  EXPECT_FALSE(holds_unique_key({.receives = 1}, UniqueUntil::claimed)) << "given back after a claim";
  EXPECT_FALSE(holds_unique_key({.received_at = kNow}, UniqueUntil::claimed));
  EXPECT_TRUE(holds_unique_key({.received_at = kNow, .receives = 4}, UniqueUntil::done));
  EXPECT_FALSE(holds_unique_key({.half = Half::dlq}, UniqueUntil::done));
}

}  // namespace
}  // namespace sluice::queue::core
