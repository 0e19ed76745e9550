// The simulated hosts that benchmarks count with.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/support/simulated_fleet/world.hpp"

namespace sluice::test::sim {
namespace {

using namespace std::chrono_literals;

TEST(SimulatedHost, KeepsItsWorkersBusyWhileItReads) {
  // 16 workers that take 20 ms each are 800 messages a second; many shards of which each has little want many reads.
  World world({.hosts = 1, .shards = 64, .workers = 16, .backlog = 8'000});
  world.settle_down();
  world.measure();
  world.run_for(2s);
  const Report report = world.report();
  EXPECT_GE(report.per_second(), 0.98 * 800);
  EXPECT_EQ(report.twice, 0U);
}

TEST(SimulatedHosts, AreAsManyTimesAsFastAsOne) {
  // Each works off 200 a second; what lies there lasts until all has been measured.
  double one = 0;
  for (const std::uint32_t hosts : {1U, 8U}) {
    World world({.hosts = hosts, .shards = 64, .workers = 4, .backlog = std::size_t{2'000} * hosts});
    world.settle_down();
    world.measure();
    world.run_for(1s);
    const Report report = world.report();
    one = hosts == 1 ? report.per_second() : one;
    std::printf("%u hosts on 64 shards: %.0f a second\n", hosts, report.per_second());
    EXPECT_GE(report.per_second(), 0.9 * 200 * hosts);
    EXPECT_GE(report.per_second(), 0.9 * one * hosts);
    EXPECT_EQ(report.twice, 0U);
  }
}

TEST(SimulatedHosts, BeginWithinFiftyMillisecondsAtHalfLoadWhereTheyAreRung) {
  World world({.hosts = 8, .shards = 64, .rate = 3'200, .producers = 8, .doorbell = true});
  world.settle_down();
  world.measure();
  world.run_for(2s);
  const Report report = world.report();
  std::printf("send to handler at half load: p99 %lld ms\n", static_cast<long long>(report.latency(0.99) / 1ms));
  EXPECT_LT(report.latency(0.99), 50ms);
  EXPECT_GE(report.handled, 6'000U);
}

TEST(SimulatedHosts, AreReplacedOneAfterTheOtherWithoutAPause) {
  World world({.hosts = 4, .shards = 16, .rate = 1'000, .producers = 2, .doorbell = true});
  world.settle_down();
  world.measure();
  for (std::uint32_t host = 0; host < 4; ++host) {
    world.add_host();
    world.run_for(2s);
    world.leave(host);
    world.run_for(2s);
  }
  const Report report = world.report();
  EXPECT_EQ(report.twice, 0U);
  EXPECT_GT(report.hand_overs, 16U);
  EXPECT_LE(report.longest_pause(), 500ms);
}

TEST(SimulatedHost, HandsOverWhenItLeavesAndNothingIsHandledTwice) {
  World world({.hosts = 2, .shards = 8, .rate = 100, .producers = 1});
  world.settle_down();
  world.measure();
  world.run_for(2s);
  world.leave(0);
  world.run_for(5s);
  EXPECT_EQ(world.orphans(), 0U);
  const Report report = world.report();
  EXPECT_EQ(report.twice, 0U);
  EXPECT_GT(report.hand_overs, 0U);
  EXPECT_LE(report.unhandled, 100U) << "of the last second";
}

TEST(SimulatedHost, WhoDiesIsReplacedWithinALease) {
  World world({.hosts = 2, .shards = 8, .rate = 100, .producers = 1});
  world.settle_down();
  world.kill(0);
  EXPECT_GT(world.orphans(), 0U);
  world.run_for(15s);
  EXPECT_EQ(world.orphans(), 0U);
  EXPECT_LE(world.report().unhandled, 200U);
}

TEST(SimulatedHost, MessagesThatFailComeAgain) {
  for (const Layout layout : {Layout::leased, Layout::dynamomq}) {
    World world({.layout = layout, .hosts = 1, .shards = 2, .failures = 0.2, .backlog = 200});
    world.run_for(120s);
    const Report report = world.report();
    EXPECT_EQ(report.done, 200U);
    EXPECT_GT(report.failed, 10U);
    EXPECT_EQ(report.twice, 0U);
  }
}

TEST(Sightings, StorageIsWhatLiesThereForHowLong) {
  Sightings sightings;
  const SteadyTime start{};
  const dynamo::Item item{{"k", std::string(99, 'x')}};  // 100 bytes, and 100 that are billed besides
  sightings.measure(start);
  sightings.changed(nullptr, &item, 1, start + 1s);
  sightings.changed(&item, nullptr, 1, start + 4s);
  EXPECT_DOUBLE_EQ(sightings.report(start + 9s).byte_seconds, 3 * 2 * 200) << "in the table and in an index";
}

}  // namespace
}  // namespace sluice::test::sim
