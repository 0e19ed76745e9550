#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "host/stores/dynamodb/table.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/contract/wires.hpp"
#include "tests/stores/dynamomq/faulty_transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::KeyState;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// A hundred keys are read at a time, each by a partition and a sort key.
TEST(TableKeys, WhatOneReadBringsIsKnownWhateverBecomesOfTheNextOne) {
  FakeClock clock;
  AnyCredentials credentials;
  SeededRandom random{1};
  const auto wire = make_wire(false, clock);
  FaultyTransport transport(wire->transport());
  dynamo::ClientOptions client_options;
  client_options.region = "eu-west-1";
  client_options.endpoint = wire->endpoint();
  dynamo::Client client(client_options, transport, credentials, clock, random);
  queue::leased::LeasedOptions options;
  options.host = "worker-a";
  options.region = client_options.region;
  options.own_threads = false;
  queue::dynamodb::TableSpec spec;
  spec.table = "keys";
  spec.layout = queue::dynamodb::kLeasedLayout;
  options.queues["orders"] = {.table = spec.table, .shards = 1};
  ASSERT_TRUE(create_queue_table(client, spec, clock, Deadline::after(clock, std::chrono::seconds(60))));
  const auto queues = make_leased_queues(options, client, clock, random);
  const auto keys = queues->open_keys("orders");
  ASSERT_TRUE(keys) << keys.error().message();

  std::vector<queue::KeyClaim> claims;
  for (int i = 0; i < 150; ++i) {
    const std::string id = "m" + std::to_string(i);
    claims.push_back({.job = "pay", .key = id, .owner = id});
  }
  transport.choose([](const std::string& operation, const std::string& body) {
    const bool second = operation == "BatchGetItem" && count(body, R"("S")") == 2 * 50;
    return second ? HttpFault::deny : HttpFault::none;
  });
  const auto answers = (*keys)->begin(claims, Deadline::after(clock, std::chrono::seconds(60)));
  const auto of = [&answers](KeyState state) {
    return std::count_if(answers.begin(), answers.end(), [state](const auto& answer) { return answer.state == state; });
  };
  EXPECT_EQ(of(KeyState::ours), 100);
  EXPECT_EQ(of(KeyState::failed), 50);
}

}  // namespace
}  // namespace sluice::test
