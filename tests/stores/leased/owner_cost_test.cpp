// What owners ask DynamoDB for: counted, not timed. These are budgets.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::Delivery;

struct Cost {
  double writes = 0;
  double reads = 0;
  double requests = 0;
};

/// Sends messages while hosts work, and works them off; what that took a message.
Cost work(OwnerWorld& world, std::size_t messages, std::size_t bytes, std::size_t at_once) {
  const double reads = world.read_units();
  const double writes = world.write_units();
  const double requests = static_cast<double>(world.requests());
  world.send(messages, bytes);
  std::size_t done = 0;
  for (int round = 0; done < messages && round < 10'000; ++round) {
    for (const auto& host : world.hosts) {
      std::vector<queue::Completion> completions;
      for (const Delivery& delivery : host->claim(at_once)) {
        completions.push_back({.receipt = delivery.receipt});
      }
      for (const auto& result : host->settle(completions)) {
        EXPECT_EQ(result.status, queue::SettleStatus::applied) << result.error.message();
        ++done;
      }
    }
    world.clock.advance(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(done, messages);
  const auto each = static_cast<double>(messages);
  return {(world.write_units() - writes) / each, (world.read_units() - reads) / each,
          (static_cast<double>(world.requests()) - requests) / each};
}

struct Load {
  int hosts = 1;
  std::size_t messages = 0;
  std::size_t bytes = 0;  // of a body; 960 is the most that takes one write unit
};

class OwnerCost : public ::testing::TestWithParam<Load> {};

TEST_P(OwnerCost, AMessageTakesTwoWriteUnitsAndFewReads) {
  const auto [hosts, messages, bytes] = GetParam();
  OwnerWorld world({});
  for (int i = 0; i < hosts; ++i) {
    world.add(std::string(1, static_cast<char>('a' + i)) + "/1");
  }
  world.pass(15s);
  const Cost cost = work(world, messages, bytes, 100);
  std::printf("%d hosts, %zu messages of %zu bytes: %.3f WCU, %.3f RCU, %.3f requests a message\n", hosts, messages,
              bytes, cost.writes, cost.reads, cost.requests);
  EXPECT_LE(cost.writes, 2.0 * 1.05);
  EXPECT_LE(cost.reads, 0.2 * 1.05);
  EXPECT_LE(cost.requests, 0.1 * 1.05);
}

INSTANTIATE_TEST_SUITE_P(Owners, OwnerCost,
                         ::testing::Values(Load{1, 1'000, 800}, Load{4, 1'000, 800}, Load{1, 10'000, 800},
                                           Load{4, 10'000, 800}, Load{1, 10'000, 960}, Load{4, 10'000, 960}));

// Hosts that have just started read consistently what lies there, which costs twice as much.
TEST(OwnerCostTest, HostsThatAreAtWorkReadTheLargestMessagesForAFifthOfAUnit) {
  for (const int hosts : {1, 4}) {
    OwnerWorld world({});
    for (int i = 0; i < hosts; ++i) {
      world.add(std::string(1, static_cast<char>('a' + i)) + "/1");
    }
    world.pass(15s);
    for (const auto& host : world.hosts) {
      EXPECT_TRUE(host->claim(100).empty());
    }
    const Cost cost = work(world, 1'000, 960, 100);
    std::printf("%d hosts at work: %.3f WCU, %.3f RCU, %.3f requests a message\n", hosts, cost.writes, cost.reads,
                cost.requests);
    EXPECT_LE(cost.writes, 2.0 * 1.05);
    EXPECT_LE(cost.reads, 0.15);
    EXPECT_LE(cost.requests, 0.105);
  }
}

// Each of the shards is looked at for each message, and once.
TEST(OwnerCostTest, AHostThatIsRungReadsEachShardOnceAMessage) {
  constexpr std::size_t kMessages = 300;
  double requests[2] = {};
  double reads[2] = {};
  for (const bool rings : {false, true}) {
    OwnerWorld world({.shards = 8});
    OwnerHost& host = world.add("a/1");
    world.pass(15s);
    const double read = world.read_units();
    const double asked = static_cast<double>(world.requests());
    std::size_t done = 0;
    std::size_t sent = 0;
    for (int step = 0; done < kMessages; ++step) {
      ASSERT_LT(step, 40'000);
      if (sent < kMessages && step % 33 == 0) {  // three a second
        world.send(1, 200);
        ++sent;
        if (rings) {
          host.ring();
        }
      }
      std::vector<queue::Completion> completions;
      for (const Delivery& delivery : host.claim(8)) {
        completions.push_back({.receipt = delivery.receipt});
      }
      done += host.settle(completions).size();
      world.clock.advance(10ms);
    }
    requests[rings ? 1 : 0] = (static_cast<double>(world.requests()) - asked) / kMessages;
    reads[rings ? 1 : 0] = (world.read_units() - read) / kMessages;
  }
  std::printf("three a second: %.1f requests and %.1f RCU a message, rung %.1f and %.1f\n", requests[0], reads[0],
              requests[1], reads[1]);
  EXPECT_LE(requests[1], requests[0] + 8);
  EXPECT_LE(reads[1], reads[0] + 8);
}

TEST(OwnerCostTest, ABacklogThatIsWorkedOffSlowlyIsReadAboutOnce) {
  OwnerWorld world({.shards = 2});
  OwnerHost& a = world.add("a/1");
  world.pass(5s);
  world.send(3'000, 800);
  const double reads = world.read_units();
  std::size_t done = 0;
  while (done < 2'000) {
    std::vector<queue::Completion> completions;
    for (const Delivery& delivery : a.claim(8)) {
      completions.push_back({.receipt = delivery.receipt});
    }
    ASSERT_FALSE(completions.empty());
    done += a.settle(completions).size();
    world.clock.advance(std::chrono::milliseconds(80));
  }
  const double read = (world.read_units() - reads) / static_cast<double>(done);
  std::printf("100 a second out of a backlog: %.3f RCU a message\n", read);
  EXPECT_LE(read, 0.3);
}

}  // namespace
}  // namespace sluice::test
