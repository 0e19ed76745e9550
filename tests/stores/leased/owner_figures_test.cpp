// What owners tell of a queue, and what it costs to ask them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::Half;
using queue::QueueStats;

/// A process that only asks, as `stats` and an autoscaler's host do.
class Asker {
 public:
  explicit Asker(OwnerWorld& world)
      : world_(world),
        queues_(queue::leased::make_leased_queues(options(world), world.hosts.front()->client(), world.clock,
                                                  world.random)),
        oper_(*queues_->open_operator(kOwnersQueue)) {}

  struct Told {
    QueueStats stats;
    double units = 0;
    std::uint64_t requests = 0;
  };
  Told ask(const queue::StatsRequest& request = {.cheap = true}) {
    const double units = world_.read_units();
    const std::uint64_t requests = world_.requests();
    const auto stats = oper_->stats(request, Deadline::after(world_.clock, 60s));
    EXPECT_TRUE(stats) << stats.error().message();
    return {stats ? *stats : QueueStats{}, world_.read_units() - units, world_.requests() - requests};
  }

 private:
  static queue::leased::LeasedOptions options(const OwnerWorld& world) {
    queue::leased::LeasedOptions options{{.host = "asker"}};
    options.own_threads = false;
    options.queues[kOwnersQueue] = {.table = kOwnersTable, .shards = world.plan.shards};
    return options;
  }

  OwnerWorld& world_;
  std::unique_ptr<queue::table::TableQueues> queues_;
  std::unique_ptr<queue::Operator> oper_;
};

/// Sends over some time while nobody claims.
void send_over(OwnerWorld& world, std::size_t messages, int seconds, std::size_t bytes = 700) {
  for (int second = 0; second < seconds; ++second) {
    for (int part = 0; part < 10; ++part) {
      world.send(messages / static_cast<std::size_t>(seconds * 10), bytes);
      world.pass(100ms);
    }
  }
}

// An autoscaler goes by it: neither a 0 nor a number that nobody has counted is to be told for what has just come.
TEST(OwnerFigures, WhatNobodyHasCountedIsNotTold) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  for (int i = 0; i < 20; ++i) {
    a.claim(1);
    world.pass(1s);
  }
  Asker asker(world);
  EXPECT_EQ(asker.ask().stats.total(), 0U);
  EXPECT_FALSE(asker.ask().stats.at_least);
  // All its workers are busy with something else, so that it does not read.
  std::optional<SteadyTime> sent_at;
  for (int second = 0; second < 90; ++second) {
    if (second == 30) {
      world.send(5'000);
      sent_at = world.clock.steady_now();
    }
    world.pass(1s);
    const auto told = asker.ask();
    const SteadyTime counted_at = world.clock.steady_now() - told.stats.age.value_or(Duration::zero());
    EXPECT_LE(told.stats.total(), 5'000U);
    EXPECT_TRUE(told.stats.at_least || !sent_at || counted_at <= *sent_at + 1s) << second;
    EXPECT_LE(told.requests, 1U);
  }
  for (int i = 0; i < 100; ++i) {
    a.claim(100);
    world.clock.advance(100ms);
  }
  world.pass(4s);
  const auto told = asker.ask();
  EXPECT_GE(told.stats.total(), 1'000U) << "what was read is told exactly";
  EXPECT_LE(told.stats.total(), 5'000U);
}

TEST(OwnerFigures, ABacklogIsToldForTwoReadsAndCountedWhereItMustBeExact) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.add("b/1");
  world.pass(15s);
  a.claim(10);
  send_over(world, 20'000, 40);
  world.pass(60s);  // both are paused
  Asker asker(world);
  for (const bool cheap : {true, false}) {
    const auto live = asker.ask({.cheap = cheap});
    const auto dead = asker.ask({.half = Half::dlq, .cheap = cheap});
    EXPECT_LE(live.stats.ready, 20'000U);
    EXPECT_TRUE(live.stats.at_least);
    EXPECT_EQ(dead.stats.total(), 0U);
    EXPECT_FALSE(dead.stats.at_least);
    EXPECT_LE(live.requests + dead.requests, 2U);
    EXPECT_LE(live.units + dead.units, 2.0);
  }
  const auto exact = asker.ask({.exact = true});
  EXPECT_EQ(exact.stats.ready, 20'000U);
  EXPECT_FALSE(exact.stats.at_least);
  EXPECT_GT(exact.units, 1'000);
}

TEST(OwnerFigures, ABacklogThatWaitsCostsLittle) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  send_over(world, 20'000, 40);
  world.pass(60s);
  const double before = world.read_units();
  world.pass(600s);
  const double paused = (world.read_units() - before) / 600;
  std::printf("paused over a backlog: %.2f RCU a second\n", paused);
  EXPECT_LE(paused, 2.0) << "the glances and looks of an idle host";
  EXPECT_FALSE(a.dead());
}

TEST(OwnerFigures, WhatIsLeftIsToldWhileItIsWorkedOff) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  send_over(world, 6'000, 10);
  Asker asker(world);
  std::size_t left = 6'000;
  for (int second = 0; left > 0 && second < 200; ++second) {
    for (int i = 0; i < 10; ++i) {
      std::vector<queue::Completion> completions;
      for (const auto& delivery : a.claim(10)) {
        completions.push_back({.receipt = delivery.receipt});
      }
      left -= a.settle(completions).size();
      world.clock.advance(100ms);
    }
    const auto told = asker.ask();
    EXPECT_LE(told.stats.total(), left + 500) << second << ": a heartbeat may be some seconds old";
    EXPECT_TRUE(told.stats.at_least || told.stats.total() + 500 >= left) << second;
    EXPECT_LE(told.requests, 1U);
  }
  EXPECT_EQ(left, 0U);
}

TEST(OwnerFigures, ALongBacklogIsAtLeastWhatIsKnown) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  world.send(5'000);
  Asker asker(world);
  for (int i = 0; i < 30; ++i) {
    a.claim(1);
    world.clock.advance(100ms);
  }
  world.pass(4s);
  const auto told = asker.ask();
  EXPECT_TRUE(told.stats.at_least);
  EXPECT_GE(told.stats.total(), 200U) << "a page of each shard has been read";
}

TEST(OwnerFigures, ThatAnOwnerIsDeadIsToldUntilOthersHaveItsShards) {
  OwnerWorld world({.shards = 8});
  for (const char* name : {"a/1", "b/1", "c/1", "d/1"}) {
    world.add(name);
  }
  world.pass(20s);
  world.send(800);
  world.pass(30s);
  Asker asker(world);
  world.hosts.back()->kill();
  for (int i = 0; i < 300; ++i) {
    world.pass(100ms);
    const auto told = asker.ask({});
    EXPECT_LE(told.stats.total(), 1'100U) << i;
    EXPECT_TRUE(told.stats.total() >= 700 || told.stats.at_least) << i << ": " << told.stats.total();
    EXPECT_LE(told.requests, 2U);
  }
}

// It was an hour ahead; what it wrote last is not young for that hour once it is dead.
TEST(OwnerFigures, ADeadHostWhoseClockWasAheadTellsNothing) {
  OwnerWorld world({.shards = 4});
  world.add("asker/1", false);
  OwnerHost& a = world.add("a/1", false);
  a.clock.wrong_by(1h);
  a.start();
  world.pass(15s);
  const auto sent = world.send(40);
  for (int i = 0; i < 5; ++i) {
    a.claim(5);  // and they stay at work until it dies
    world.pass(3s);
  }
  Asker asker(world);
  EXPECT_EQ(asker.ask().stats.total(), 40U) << "its clock is put right by what the table's answers say";
  EXPECT_THAT(a.clock_warnings, ::testing::ElementsAre(::testing::HasSubstr(" s ahead of DynamoDB's")));
  a.kill();
  for (const dynamo::Item& message : world.messages()) {
    world.remove(queue::leased::Place::of(message).key());
  }
  world.pass(15s);
  const auto told = asker.ask({});
  EXPECT_EQ(told.stats.total(), 0U);
  EXPECT_FALSE(told.stats.at_least);
}

// As one of an older version wrote it, that knew only its machine's clock.
TEST(OwnerFigures, AHeartbeatThatWasWrittenInAnHourIsNotBelieved) {
  OwnerWorld world({.shards = 4});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  world.send(40);
  world.pass(5s);
  a.claim(5);
  world.pass(5s);
  a.kill();
  auto beat = world.item(std::string(queue::leased::kHosts), "a/1");
  ASSERT_TRUE(beat);
  beat->insert_or_assign("z", queue::leased::stored_time(world.clock.wall_now() + 1h));
  world.put(*beat);
  for (const dynamo::Item& message : world.messages()) {
    world.remove(queue::leased::Place::of(message).key());
  }
  world.pass(15s);
  Asker asker(world);
  EXPECT_EQ(asker.ask({}).stats.total(), 0U);
}

TEST(OwnerFigures, ManyHostsAreAskedInTwoReads) {
  for (const std::size_t hosts : {1U, 4U, 64U}) {
    OwnerWorld world({.shards = 64});
    for (std::size_t i = 0; i < hosts; ++i) {
      world.add("h" + std::to_string(i) + "/1");
    }
    world.pass(20s);
    world.send(2'000);
    for (const auto& host : world.hosts) {
      host->claim(1);
    }
    world.pass(5s);
    Asker asker(world);
    const auto live = asker.ask();
    const auto dead = asker.ask({.half = Half::dlq, .cheap = true});
    EXPECT_LE(live.requests + dead.requests, 2U) << hosts;
    EXPECT_LE(live.units, 1.0 + 0.1 * static_cast<double>(hosts)) << hosts;
    EXPECT_LE(dead.units, 1.0 + 0.1 * static_cast<double>(hosts)) << hosts;
    EXPECT_LE(live.stats.total(), 2'000U);
    EXPECT_GE(live.stats.total(), 16U) << "each claim reads some shards";
    EXPECT_TRUE(live.stats.at_least || live.stats.total() == 2'000U);
  }
}

TEST(OwnerFigures, DeadLettersAreToldByWhoOwnsTheQueue) {
  OwnerWorld world({});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  Asker asker(world);
  world.send(5);
  std::vector<queue::Delivery> deliveries;
  for (int i = 0; i < 30 && deliveries.size() < 5; ++i) {
    for (auto& delivery : a.claim(5)) {
      deliveries.push_back(std::move(delivery));
    }
    world.clock.advance(100ms);
  }
  ASSERT_EQ(deliveries.size(), 5U);
  for (const auto& delivery : deliveries) {
    EXPECT_EQ(a.settle(delivery, queue::CompletionAction::dead_letter).status, queue::SettleStatus::applied);
  }
  world.pass(12s);
  const auto told = asker.ask({.half = Half::dlq, .cheap = true});
  EXPECT_EQ(told.stats.total(), 5U);
  EXPECT_FALSE(told.stats.at_least);
  EXPECT_LE(told.requests, 1U);
  EXPECT_LE(told.stats.age, 65s);
}

TEST(OwnerFigures, DeadLettersInShardsThatWereGivenUpAreNotTakenForNone) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  Asker asker(world);
  world.send(3, 100, {}, {}, 1);
  std::size_t dead = 0;
  for (int i = 0; i < 30 && dead < 3; ++i) {
    for (const auto& delivery : a.claim(5)) {
      a.settle(delivery, queue::CompletionAction::dead_letter);
      ++dead;
    }
    world.clock.advance(100ms);
  }
  ASSERT_EQ(dead, 3U);
  world.put({{"p", "orders@"},
             {"s", "shards"},
             {"n", dynamo::AttributeValue::number(1)},
             {"h", dynamo::AttributeValue::number(2)}});
  const auto claims_nothing = [&] { return a.claim(5).empty() && world.shards_of("a/1") == 1; };
  ASSERT_TRUE(world.pass_until(claims_nothing, 200s));
  world.pass(70s);
  const auto told = asker.ask({.half = Half::dlq, .cheap = true});
  EXPECT_EQ(told.stats.total(), 0U);
  EXPECT_TRUE(told.stats.at_least) << "nobody looks there";
  EXPECT_EQ(asker.ask({.half = Half::dlq, .exact = true}).stats.total(), 3U);
}

TEST(OwnerFigures, ManyDeadLettersAreAtLeastSoMany) {
  OwnerWorld world({.shards = 1});
  OwnerHost& a = world.add("a/1");
  world.pass(15s);
  Asker asker(world);
  world.send(150, 100);
  std::size_t dead = 0;
  for (int i = 0; i < 100 && dead < 150; ++i) {
    for (const auto& delivery : a.claim(50)) {
      a.settle(delivery, queue::CompletionAction::dead_letter);
      ++dead;
    }
    world.clock.advance(100ms);
  }
  ASSERT_EQ(dead, 150U);
  world.pass(12s);
  const auto told = asker.ask({.half = Half::dlq, .cheap = true});
  EXPECT_EQ(told.stats.total(), 100U);
  EXPECT_TRUE(told.stats.at_least);
  EXPECT_EQ(asker.ask({.half = Half::dlq, .exact = true}).stats.total(), 150U);
}

}  // namespace
}  // namespace sluice::test
