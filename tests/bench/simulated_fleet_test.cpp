// The simulated hosts that benchmarks count with.

#include <gtest/gtest.h>

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
