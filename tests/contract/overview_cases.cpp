#include "tests/contract/store_contract.hpp"

// The look at a whole half: counts, the first ids in claiming order, and why what lies there has failed.
namespace sluice::test {

using queue::CompletionAction;
using queue::ErrorGroup;
using queue::Half;
using queue::QueueOverview;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

QueueOverview look(queue::Operator& queue, const queue::OverviewRequest& request, Deadline deadline) {
  auto seen = queue.overview(request, deadline);
  if (!seen) {
    ADD_FAILURE() << "overview: " << seen.error().message();
    return {};
  }
  return std::move(*seen);
}

}  // namespace

TEST_P(StoreContract, OverviewOfNothing) {
  const QueueOverview seen = look(desk().oper(queue_name()), {.errors = 5}, soon());
  EXPECT_EQ(seen.counts.total(), 0U);
  EXPECT_THAT(seen.first_ids, IsEmpty());
  EXPECT_THAT(seen.first_in_flight_ids, IsEmpty());
  EXPECT_THAT(seen.errors, IsEmpty());
  const auto nowhere = desk().overview(under_test().absent_queue(), {}, soon());
  ASSERT_EQ(nowhere.has_value(), traits().makes_queues);
  if (!nowhere) {
    EXPECT_EQ(nowhere.error().code(), ErrorCode::queue_missing) << nowhere.error().message();
  }
  const auto late = desk().overview(queue_name(), {}, passed());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::timeout) << late.error().message();
}

TEST_P(StoreContract, OverviewCountsAndNamesInClaimingOrder) {
  one_in_each_state();
  const QueueOverview seen = look(desk().oper(queue_name()), {}, soon());
  const queue::QueueStats counted = stats(standard());
  EXPECT_EQ(seen.counts.ready, 2U);
  EXPECT_EQ(seen.counts.in_flight, 1U);
  EXPECT_EQ(seen.counts.delayed, 2U);
  EXPECT_EQ(seen.counts.ready, counted.ready);
  EXPECT_EQ(seen.counts.in_flight, counted.in_flight);
  EXPECT_EQ(seen.counts.delayed, counted.delayed);
  EXPECT_THAT(seen.first_ids, ElementsAre("expired", "flying", "waiting", "ready", "delayed"));
  EXPECT_THAT(seen.first_in_flight_ids, ElementsAre("flying", "waiting", "delayed"));
  const QueueOverview dead = look(desk().oper(queue_name()), {.half = Half::dlq}, soon());
  EXPECT_THAT(dead.first_ids, ElementsAre("dead-waiting", "dead-flying", "dead"));
  EXPECT_THAT(dead.first_in_flight_ids, ElementsAre("dead-waiting", "dead-flying"));
  EXPECT_THAT(dead.errors, IsEmpty()) << "nobody asked for them";
}

TEST_P(StoreContract, OverviewNamesNoMoreThanAsked) {
  const auto ids = send_many(130);
  claim_all(standard(), 120);
  for (const std::size_t most : {std::size_t{0}, std::size_t{3}, std::size_t{100}}) {
    const QueueOverview seen = look(desk().oper(queue_name()), {.ids = most}, soon());
    EXPECT_EQ(seen.counts.total(), 130U);
    EXPECT_EQ(seen.counts.in_flight, 120U);
    EXPECT_EQ(seen.first_ids.size(), most);
    EXPECT_EQ(seen.first_in_flight_ids.size(), most);
    if (traits().stable_ties && most > 0) {
      EXPECT_EQ(seen.first_ids.back(), ids[most - 1]);
    }
  }
}

TEST_P(StoreContract, OverviewGroupsErrors) {
  const auto dead = [this](const std::string& id, const std::string& error) { send_to_dlq(id, failure(error)); };
  dead("a1", "alpha");
  dead("b1", "beta");
  dead("b2", "beta");
  dead("c1", "gamma");
  dead("b3", "beta");
  dead("a2", "alpha");
  send("clean");
  ASSERT_TRUE(desk().dead_letter(queue_name(), "clean", {}, soon()));
  clock().advance(1ms);
  const QueueOverview seen = look(desk().oper(queue_name()), {.half = Half::dlq, .errors = 2}, soon());
  ASSERT_EQ(seen.errors.size(), 2U);
  EXPECT_EQ(seen.errors[0].error, "beta");
  EXPECT_EQ(seen.errors[0].count, 3U);
  EXPECT_EQ(seen.errors[0].example, "b3");
  EXPECT_EQ(seen.errors[0].last_failed_at, get("b3").failure.failed_at);
  EXPECT_EQ(seen.errors[1].error, "alpha");
  EXPECT_EQ(seen.errors[1].count, 2U);
  EXPECT_EQ(seen.errors[1].example, "a2");
  EXPECT_EQ(look(desk().oper(queue_name()), {.half = Half::dlq, .errors = 100}, soon()).errors.size(), 3U);
  EXPECT_THAT(look(desk().oper(queue_name()), {.errors = 100}, soon()).errors, IsEmpty());
  send("retried");
  settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 60s, failure("flaky"));
  const QueueOverview standard_half = look(desk().oper(queue_name()), {.errors = 100}, soon());
  ASSERT_EQ(standard_half.errors.size(), 1U);
  EXPECT_EQ(standard_half.errors[0].error, "flaky");
}

}  // namespace sluice::test
