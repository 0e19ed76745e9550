// How many shards a queue has, and what follows from another number, on the model of DynamoDB.

#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/stores/leased/leased_rig.hpp"

namespace sluice::queue::leased {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;
using dynamo::Item;

class ShardNumbers : public LeasedRig {
 protected:
  Result<ShardChange> change(std::uint32_t count) { return change_shards(client_, place_, count, kShards, soon()); }
  Item numbers(std::uint32_t count) {
    Item item = Place{ownership_partition("orders", Half::standard), std::string(kShardsKey)}.key();
    item.emplace(attribute::kShards, AttributeValue::number(count));
    return item;
  }
  void put(Item item) { ASSERT_TRUE(client_.write({.table = kTable, .item = std::move(item)}, soon())); }
  void tell(std::uint32_t shards, std::uint32_t in_use) {
    Item item = Place{std::string(kHosts), "a/1"}.key();
    item.emplace(attribute::kCounter, AttributeValue::number(7));
    item.emplace(attribute::kLease, AttributeValue::number(10'000));
    item.emplace(attribute::kUpdated, stored_time(clock_.wall_now() - 1s));
    item.emplace(attribute::kFigures, dynamo::Map{{"orders", dynamo::Map{{"r", AttributeValue::number(10)},
                                                                         {"s", AttributeValue::number(shards)},
                                                                         {"n", AttributeValue::number(in_use)}}}});
    put(item);
  }

  const table::QueueTable place_{"orders", kTable, {}, {}};
};

TEST_F(ShardNumbers, ANewOneKeepsInMindWhatLiesBeyondIt) {
  auto changed = change(2);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->before, std::nullopt);
  EXPECT_EQ(changed->after, (Shards{2, 4})) << "what was sent before lies in the configured ones";
  EXPECT_TRUE(changed->written);
  EXPECT_FALSE(change(2)->written);
  EXPECT_EQ(change(8)->after, (Shards{8, 8}));
  EXPECT_EQ(change(1)->after, (Shards{1, 8}));
  // Somebody has put a number there that cannot be, and forgotten the rest; one shard beyond was owned once.
  put(numbers(0));
  Item owned = Place{ownership_partition("orders", Half::dlq), ownership_sort(11)}.key();
  owned.emplace(attribute::kEpoch, AttributeValue::number(1));
  put(owned);
  changed = change(3);
  ASSERT_TRUE(changed) << changed.error().message();
  EXPECT_EQ(changed->before, std::nullopt);
  EXPECT_EQ(changed->after, (Shards{3, 12}));
}

TEST_F(ShardNumbers, WhoChangesThemOverwritesNobody) {
  const Item seen = numbers(4);  // as a person writes it, without the rest
  put(seen);
  ASSERT_TRUE(change(6));
  const auto late = client_.write(numbers_write(place_, seen, {2, 4}), soon());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, dynamo::ErrorKind::conditional_check_failed);
  EXPECT_EQ(change(6)->before, (Shards{6, 6}));
}

TEST_F(ShardNumbers, StatsAreWholeOnceWhatWasGivenUpIsDrainedAndCostOneRead) {
  LeasedOptions options{{.host = "a"}};
  options.queues["orders"] = {.table = kTable, .shards = kShards};
  const auto queues = make_leased_queues(options, client_, clock_, random_);
  ASSERT_TRUE(change(2));
  const auto oper = *queues->open_operator("orders");
  tell(2, 4);
  EXPECT_TRUE(oper->stats({}, soon())->at_least) << "two that are not drained are nobody's";
  tell(4, 4);
  EXPECT_FALSE(oper->stats({}, soon())->at_least) << "it drains them";
  tell(2, 2);
  const auto requests = model_.counters().requests;
  const auto said = oper->stats({}, soon());
  EXPECT_EQ(said->ready, 10U);
  EXPECT_EQ(said->age, 1s);
  EXPECT_FALSE(said->at_least);
  auto expected = requests;
  ++expected["Query"];
  EXPECT_EQ(model_.counters().requests, expected) << "its owner has told how many are in use";
}

}  // namespace
}  // namespace sluice::queue::leased
