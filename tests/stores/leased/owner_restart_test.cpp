// Owners on the model of DynamoDB that are restarted as they should be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/stores/leased/owner_world.hpp"

namespace sluice::test {
namespace {

using queue::Delivery;

// Hosts that are restarted one after the other under load.
TEST(OwnerRestarts, ARollingRestartHandlesNothingTwice) {
  OwnerWorld world({});
  std::vector<OwnerHost*> hosts;
  for (const char* name : {"a/1", "b/1", "c/1", "d/1"}) {
    hosts.push_back(&world.add(name));
  }
  world.pass(10s);
  std::map<std::string, int> handled;
  std::map<std::string, SteadyTime> sent;
  Duration longest{};
  const auto work = [&](Duration span, std::size_t messages) {
    for (Duration passed{}; passed < span; passed += 50ms) {
      for (const std::string& id : world.send(messages, 100)) {
        sent[id] = world.clock.steady_now();
      }
      for (OwnerHost* host : hosts) {
        host->ring();
        std::vector<queue::Completion> completions;
        for (const Delivery& delivery : host->claim(20)) {
          ++handled[delivery.message.id];
          longest = std::max(longest, Duration(world.clock.steady_now() - sent.at(delivery.message.id)));
          EXPECT_FALSE(delivery.suspect);
          completions.push_back({.receipt = delivery.receipt});
        }
        host->settle(completions);
      }
      world.clock.advance(50ms);
    }
  };
  work(5s, 4);
  for (OwnerHost*& host : hosts) {
    host->stop();
    host->kill();
    work(1s, 4);
    host = &world.add(host->name.substr(0, 1) + "/2");
    work(5s, 4);
  }
  work(3s, 0);
  for (const auto& [id, times] : handled) {
    EXPECT_EQ(times, 1) << id;
  }
  EXPECT_EQ(handled.size(), sent.size());
  std::printf("rolling restart: %zu messages, the longest from sending to handing out: %lld ms\n", handled.size(),
              static_cast<long long>(longest / 1ms));
  EXPECT_LE(longest, 500ms);
}

}  // namespace
}  // namespace sluice::test
