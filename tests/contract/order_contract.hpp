#pragma once

#include <string>
#include <vector>

#include "tests/contract/store_contract.hpp"

/// The suites of what not every store can do: each skips itself, aloud, where the traits of the store's source say no.
/// An implementation instantiates all of them with INSTANTIATE_ORDER_CONTRACTS(Name, factory).
namespace sluice::test {

/// What cases about order share.
class OrderedContract : public StoreContract {
 protected:
  /// Sends messages named after their groups: the first letter; "-" for none.
  void send_all(const std::vector<std::string>& ids, Duration delay = {}) {
    for (const std::string& id : ids) {
      const queue::NewMessage message{
          .id = id, .body = id, .group = id.starts_with('-') ? "" : id.substr(0, 1), .delay = delay};
      const auto sent = desk().send(queue_name(), std::span(&message, 1), soon());
      EXPECT_EQ(sent.front().status, queue::SendStatus::sent) << sent.front().error.message();
      clock().advance(1ms);
    }
  }
  std::vector<queue::Delivery> take(std::size_t max = 10, queue::ClaimRules rules = {.order = queue::Order::group}) {
    return claim_as(standard(), {.max = max, .rules = rules}).deliveries;
  }
  queue::Delivery take_one(queue::ClaimRules rules = {.order = queue::Order::group}) {
    auto claimed = take(1, rules);
    EXPECT_THAT(claimed, ::testing::SizeIs(1));
    return claimed.empty() ? queue::Delivery() : std::move(claimed.front());
  }
  std::vector<std::string> ids(std::size_t max = 10, queue::ClaimRules rules = {.order = queue::Order::group}) {
    return ids_of(take(max, rules));
  }
  void done(const queue::Delivery& delivery) {
    EXPECT_EQ(settle(standard(), delivery.receipt, queue::CompletionAction::remove), queue::SettleStatus::applied);
  }
  void end(const queue::Delivery& delivery, queue::CompletionAction action, Duration delay = {}, bool hold = false) {
    const queue::Completion completion{.receipt = delivery.receipt,
                                       .action = action,
                                       .delay = delay,
                                       .failure = failure("it failed"),
                                       .hold_group = hold};
    EXPECT_EQ(desk().settle(standard(), std::span(&completion, 1), soon()).front().status,
              queue::SettleStatus::applied);
  }
  /// Takes one message after the other to its end.
  std::vector<std::string> work_off(queue::ClaimRules rules = {.order = queue::Order::group}) {
    std::vector<std::string> order;
    for (auto claimed = take(1, rules); !claimed.empty(); claimed = take(1, rules)) {
      order.push_back(claimed.front().message.id);
      done(claimed.front());
      clock().advance(1ms);
    }
    return order;
  }
};

/// Order within groups, and turns by group. A store that keeps no groups says so in its traits, and a job that wants
/// them is refused there.
class OrderContract : public OrderedContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!IsSkipped() && !desk().source(standard()).traits().groups) {
      GTEST_SKIP() << "NOT TESTED: this store keeps no groups; jobs that want them are refused";
    }
  }
};

/// One message after the other.
class SequenceContract : public OrderedContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!IsSkipped() && !desk().source(standard()).traits().sequence) {
      GTEST_SKIP() << "NOT TESTED: this store hands out no queue in order; jobs that want it are refused";
    }
  }
};

/// Priorities.
class PriorityContract : public OrderedContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (!IsSkipped() && !desk().source(standard()).traits().priorities) {
      GTEST_SKIP() << "NOT TESTED: this store has no priorities; messages and jobs that want them are refused";
    }
  }
};

}  // namespace sluice::test

#define INSTANTIATE_ORDER_CONTRACTS(name, factory)                                          \
  INSTANTIATE_TEST_SUITE_P(name, OrderContract, ::testing::Values(factory), store_name);    \
  INSTANTIATE_TEST_SUITE_P(name, SequenceContract, ::testing::Values(factory), store_name); \
  INSTANTIATE_TEST_SUITE_P(name, PriorityContract, ::testing::Values(factory), store_name)
