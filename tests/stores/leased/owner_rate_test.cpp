// How much one shard carries, on the model of DynamoDB with its limits, under virtual time.

#include <gtest/gtest.h>

#include <algorithm>

#include "host/stores/leased/leased_record.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::Delivery;
namespace leased = queue::leased;

constexpr int kSeconds = 20;
constexpr int kStepsASecond = 40;

struct Outcome {
  std::size_t sent = 0;
  std::size_t done = 0;
  std::size_t most_left = 0;  ///< sent and not done, at the end of a step
  std::uint64_t throttled = 0;
};

std::vector<dynamo::Item> messages(OwnerWorld& world, std::size_t count) {
  std::vector<dynamo::Item> items;
  for (std::size_t i = 0; i < count; ++i) {
    const leased::Place place{leased::partition_of(kOwnersQueue, queue::Half::standard, 0),
                              leased::sort_key_of(queue::Priority::normal, world.clock.wall_now(), world.random)};
    items.push_back(*leased::encode_record({.body = std::string(700, 'x')},
                                           {.place = place, .own_id = {}, .now = world.clock.wall_now()}));
  }
  return items;
}

/// Sends to one shard, the same number in each step, and works it off at once. Everybody keeps to the limits.
Outcome carry(std::size_t a_second) {
  WorldPlan plan{.shards = 1};
  plan.model.limits.partition_write = 1'000;
  plan.model.limits.partition_read = 3'000;
  OwnerWorld world(plan);
  OwnerHost& host = world.add("a/1");
  OwnerHost& producer = world.add("producer/1", false);
  world.pass(5s);
  Outcome outcome;
  for (int step = 0; step < kSeconds * kStepsASecond; ++step) {
    const auto items = messages(world, a_second / kStepsASecond);
    outcome.sent += insert_all(producer.client(), items, Deadline::after(world.clock, 1s));
    host.ring();
    std::vector<queue::Completion> completions;
    for (const Delivery& delivery : host.claim(50)) {
      completions.push_back({.receipt = delivery.receipt});
    }
    for (const auto& result : host.settle(completions)) {
      outcome.done += result.status == queue::SettleStatus::applied ? 1 : 0;
    }
    outcome.most_left = std::max(outcome.most_left, outcome.sent - std::min(outcome.sent, outcome.done));
    world.clock.advance(Duration(1s) / kStepsASecond);
  }
  for (const auto& [name, times] : world.model.counters().errors) {
    const bool limit = name.find("Throttling") != std::string::npos || name.find("Throughput") != std::string::npos;
    outcome.throttled += limit ? times : 0;
  }
  return outcome;
}

// A partition writes 1,000 units a second, and a message takes two.
TEST(OwnerRateTest, OneShardCarries480MessagesASecond) {
  const Outcome outcome = carry(480);
  EXPECT_EQ(outcome.throttled, 0U);
  EXPECT_EQ(outcome.sent, 480U * kSeconds);
  EXPECT_LE(outcome.most_left, 48U) << "nothing piles up";
  EXPECT_GE(outcome.done, outcome.sent - 48U);
}

TEST(OwnerRateTest, TheLimitOfAPartitionIsWhatStopsMore) {
  const Outcome outcome = carry(560);
  EXPECT_TRUE(outcome.sent < 560U * kSeconds || outcome.most_left > 48U)
      << outcome.sent << " sent, " << outcome.done << " done, most left " << outcome.most_left;
}

}  // namespace
}  // namespace sluice::test
