#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

/// Tests of the store on one fresh table, the clock in the test's hand, with as many hosts as it makes.
class StoreOnEmulator : public ::testing::Test {
 protected:
  void SetUp() override {
    if (shared_emulator() == nullptr) {
      GTEST_SKIP() << Emulator::absence();
    }
    // Waits for the emulator are on the machine's clock: the fake one stands still at the present.
    clock_.set_steady(SystemClock().steady_now());
    options_.queues["orders"].table = fresh_table_name("orders");
    host_ = make_host("worker-a", 1);
    make_table(host_->client(), table(), clock_);
  }

  std::unique_ptr<EmulatedHost> make_host(const std::string& name, std::uint64_t seed) {
    return std::make_unique<EmulatedHost>(clock_, name, seed, options_);
  }

  const std::string& table() const { return options_.queues.at("orders").table; }
  FakeClock& clock() { return clock_; }
  EmulatedHost& host() { return *host_; }
  Desk& desk() { return host_->desk(); }
  Deadline soon() { return Deadline::after(clock_, 60s); }
  static queue::QueueAddress standard() { return {"orders", queue::Half::standard}; }
  static queue::QueueAddress dlq() { return {"orders", queue::Half::dlq}; }

  /// Sends `count` messages of `bytes` in one call, ids "<prefix>0"...; the clock moves on by a millisecond.
  void send(std::size_t count, std::size_t bytes = 20, const std::string& prefix = "m") {
    std::vector<queue::NewMessage> batch(count);
    for (std::size_t i = 0; i < count; ++i) {
      batch[i].id = prefix + std::to_string(i);
      batch[i].body = std::string(bytes, 'x');
    }
    for (const auto& result : desk().send("orders", batch, soon())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
    }
    clock_.advance(1ms);
  }

  std::vector<queue::Delivery> claim(Desk& from, std::size_t max, Duration visibility = 30s) {
    auto claims = from.claim(standard(), max, visibility, soon());
    EXPECT_TRUE(claims) << (claims ? "" : claims.error().message());
    return claims ? std::move(*claims) : std::vector<queue::Delivery>();
  }
  std::vector<queue::Delivery> claim(std::size_t max) { return claim(desk(), max); }

  std::vector<queue::SettleResult> settle(Desk& at, const std::vector<queue::Delivery>& claims,
                                          queue::CompletionAction action, Duration delay = {}) {
    std::vector<queue::Completion> completions;
    completions.reserve(claims.size());
    for (const auto& claim : claims) {
      completions.push_back({.receipt = claim.receipt, .action = action, .delay = delay, .failure = {}});
    }
    return at.settle(standard(), completions, soon());
  }
  /// How many of these were applied.
  static std::size_t applied(const std::vector<queue::SettleResult>& results) {
    return static_cast<std::size_t>(std::count_if(results.begin(), results.end(), [](const auto& result) {
      return result.status == queue::SettleStatus::applied;
    }));
  }

  queue::StoredMessage get(const std::string& id) {
    auto stored = desk().get("orders", id, soon());
    EXPECT_TRUE(stored) << (stored ? "" : stored.error().message());
    return stored ? std::move(*stored) : queue::StoredMessage();
  }

  /// Removes what the standard half holds, page by page, as the command does; how many messages.
  std::size_t purge() {
    std::size_t removed = 0;
    queue::ListRequest request{.half = queue::Half::standard, .limit = 500, .cursor = {}, .content = false};
    do {
      const auto page = desk().list("orders", request, soon());
      if (!page) {
        ADD_FAILURE() << page.error().message();
        return removed;
      }
      std::vector<queue::Change> removals;
      for (const auto& found : page->messages) {
        removals.push_back({.id = found.message.id, .action = queue::ChangeAction::remove, .version = found.version});
      }
      for (const auto& result :
           queue::remove_from_half(desk().oper("orders"), request.half, std::move(removals), soon())) {
        removed += result.status == queue::ChangeStatus::applied ? 1 : 0;
      }
      request.cursor = page->next;
    } while (!request.cursor.empty());
    return removed;
  }

  dynamo::Item raw(const std::string& id) {
    auto item = host_->client().get_item({.table = table(), .key = {{"id", id}}, .consistent = true}, soon());
    return item ? std::move(item->item) : dynamo::Item();
  }
  void put(dynamo::Item item) {
    dynamo::ItemWrite request;
    request.table = table();
    request.item = std::move(item);
    const auto stored = host_->client().write(request, soon());
    ASSERT_TRUE(stored) << stored.error().message;
  }

  static std::set<std::string> ids_of(const std::vector<queue::Delivery>& claims) {
    std::set<std::string> ids;
    for (const auto& claim : claims) {
      EXPECT_TRUE(ids.insert(claim.message.id).second) << claim.message.id << " came twice";
    }
    return ids;
  }

 private:
  FakeClock clock_;
  queue::dynamomq::DynamoMqOptions options_;
  std::unique_ptr<EmulatedHost> host_;
};

}  // namespace sluice::test
