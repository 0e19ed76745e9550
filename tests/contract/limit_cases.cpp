#include "tests/contract/store_contract.hpp"

// How many messages of a queue may be in flight: ClaimRules::max_in_flight.
namespace sluice::test {

using queue::ClaimRequest;
using queue::CompletionAction;
using queue::SettleStatus;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace {

ClaimRequest at_most(std::size_t max, std::uint64_t in_flight) {
  ClaimRequest request{.max = max, .visibility = 30s};
  request.rules.max_in_flight = in_flight;
  return request;
}

}  // namespace

TEST_P(StoreContract, AClaimTakesNoMoreThanMayBeInFlight) {
  if (!traits().counts_in_flight) {
    const auto refused = desk().source(standard()).claim(at_most(1, 5), soon());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid);
    EXPECT_THAT(refused.error().message(), HasSubstr("max_in_flight"));
    return;
  }
  send_many(10);
  const auto first = claim_as(standard(), at_most(3, 5)).deliveries;
  EXPECT_THAT(first, SizeIs(3));
  EXPECT_THAT(claim_as(standard(), at_most(10, 5)).deliveries, SizeIs(2));
  const auto refused = desk().source(standard()).claim(at_most(10, 5), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::over_limit);
  EXPECT_EQ(refused.error().message(),
            "queue " + queue_name() +
                " has 5 messages in flight, as many as its max_in_flight allows; settle some, or "
                "raise it");
  // What waits for its next attempt is not in flight, and neither is what is done.
  EXPECT_EQ(settle(standard(), first[0].receipt, CompletionAction::retry, 1000s), SettleStatus::applied);
  EXPECT_EQ(settle(standard(), first[1].receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_THAT(claim_as(standard(), at_most(10, 5)).deliveries, SizeIs(2));
  // Nor what nobody holds any more. Each of those is a suspect by now, and comes alone.
  clock().advance(31s);
  EXPECT_THAT(claim_as(standard(), at_most(10, 5)).deliveries, SizeIs(1));
  EXPECT_THAT(claim_as(standard(), at_most(0, 1)).deliveries, SizeIs(0));
}

TEST_P(StoreContract, TheLimitIsOfOneHalf) {
  if (!traits().counts_in_flight) {
    GTEST_SKIP() << "nobody can count what is in flight";
  }
  send_to_dlq("dead", failure("no"));
  send("live");
  EXPECT_THAT(claim_as(standard(), at_most(1, 1)).deliveries, SizeIs(1));
  EXPECT_THAT(claim_as(dlq(), at_most(1, 1)).deliveries, SizeIs(1));
}

}  // namespace sluice::test
