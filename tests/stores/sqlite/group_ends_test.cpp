// The ends of messages that are in groups: by whoever holds them, each once.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "host/queue/content_edit.hpp"
#include "host/queue/effects.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::CompletionAction;
using queue::Delivery;
using queue::SettleStatus;
using std::chrono_literals::operator""s;

class GroupEnds : public ::testing::Test {
 protected:
  void TearDown() override {
    store_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

  queue::SendStatus send(const std::string& id, std::size_t body = 10, const std::string& unique = {}) {
    const queue::NewMessage message{
        .id = id, .body = std::string(body, 'x'), .group = id.substr(0, 1), .unique_key = unique};
    return store_->send("orders", std::span(&message, 1), Deadline::never()).at(0).status;
  }
  std::vector<Delivery> claim(std::size_t max = 100) { return claim_from(*store_, max); }
  static std::vector<Delivery> claim_from(StoreDesk& store, std::size_t max = 100) {
    return store.source({"orders"})
        .claim({.max = max, .visibility = 30s, .rules = {.order = queue::Order::group}}, Deadline::never())
        ->deliveries;
  }
  static std::vector<SettleStatus> settle(StoreDesk& store, const std::vector<Completion>& completions) {
    std::vector<SettleStatus> statuses;
    for (const auto& result : store.settle({"orders"}, completions, Deadline::never())) {
      statuses.push_back(result.status);
    }
    return statuses;
  }
  std::size_t rows(const std::string& table) {
    return std::stoul(raw_sql(file_, "SELECT count(*) FROM " + table).at(0));
  }
  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_ = open_store(file_, clock_, random_);
};

TEST_F(GroupEnds, AnEndIsToldOnceInABatch) {
  send("a1");
  send("a2");
  const Completion done{.receipt = claim().at(0).receipt};
  EXPECT_EQ(settle(*store_, {done, done}), (std::vector{SettleStatus::applied, SettleStatus::lost}));
  Completion again{.receipt = claim().at(0).receipt};
  Completion back = again;
  back.action = CompletionAction::retry;
  EXPECT_EQ(settle(*store_, {back, again}), (std::vector{SettleStatus::applied, SettleStatus::lost}));
  again.receipt = claim().at(0).receipt;
  back.receipt = again.receipt;
  EXPECT_EQ(settle(*store_, {again, back}), (std::vector{SettleStatus::applied, SettleStatus::lost}));
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->ready, 0U);
}

TEST_F(GroupEnds, AReceiptOfAnotherIdOrVersionHoldsNothing) {
  send("a1");
  const auto receipt = claim().at(0).receipt;
  queue::Receipt other = receipt;
  other.id = "b1";
  queue::Receipt older = receipt;
  --older.version;
  EXPECT_EQ(settle(*store_, {{.receipt = other}, {.receipt = older}}),
            (std::vector{SettleStatus::lost, SettleStatus::lost}));
  EXPECT_EQ(settle(*store_, {{.receipt = receipt}}), std::vector{SettleStatus::applied});
}

TEST_F(GroupEnds, NorDoesOneOfAnEarlierDeliveryBesideThatOfTheLastOne) {
  send("a1");
  const auto late = claim().at(0).receipt;
  clock_.advance(31s);
  const auto receipt = claim().at(0).receipt;
  queue::Receipt other = receipt;
  other.id = "b1";
  EXPECT_EQ(settle(*store_, {{.receipt = late}, {.receipt = other}, {.receipt = receipt}, {.receipt = late}}),
            (std::vector{SettleStatus::lost, SettleStatus::lost, SettleStatus::applied, SettleStatus::lost}));
}

TEST_F(GroupEnds, AMessageThatChangedItsGroupAndItsHostFreesTheNewOne) {
  const auto other = open_store(file_, clock_, random_);
  for (const std::string id : {"a1", "a2", "b2"}) {
    send(id);
    clock_.advance(1s);
  }
  ASSERT_EQ(claim(1).at(0).message.id, "a1");
  clock_.advance(31s);
  const auto found = store_->get("orders", "a1", Deadline::never());
  const queue::ContentEdit edit{.path = {"group"}, .json = "\"b\""};
  ASSERT_TRUE(store_->edit("orders", "a1", found->version, std::span(&edit, 1), Deadline::never()));
  // Another host has it now, and leaves it to this one to say that it is done.
  std::vector<Completion> done;
  for (auto claimed = claim_from(*other); !claimed.empty(); claimed = claim_from(*other)) {
    for (const Delivery& delivery : claimed) {
      done.push_back({.receipt = delivery.receipt});
    }
  }
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(settle(*store_, done), (std::vector{SettleStatus::applied, SettleStatus::applied}));
  EXPECT_EQ(claim().at(0).message.id, "b2");
}

TEST_F(GroupEnds, AnotherHostSettlesWhatThisOneHasClaimed) {
  const auto other = open_store(file_, clock_, random_);
  send("a1");
  send("a2");
  const Completion done{.receipt = claim().at(0).receipt};
  EXPECT_EQ(settle(*other, {done}), std::vector{SettleStatus::applied});
  EXPECT_EQ(settle(*store_, {done}), std::vector{SettleStatus::lost});
  const Completion next{.receipt = claim_from(*other).at(0).receipt};
  EXPECT_EQ(settle(*other, {next}), std::vector{SettleStatus::applied});
  EXPECT_EQ(settle(*store_, {next}), std::vector{SettleStatus::lost});
  EXPECT_TRUE(all_ids(*store_, "orders").empty());
}

TEST_F(GroupEnds, WhatARefusedEffectUndoesIsThere) {
  raw_sql(file_, "CREATE TABLE accounts (number INTEGER PRIMARY KEY)");
  for (const std::string id : {"a1", "b1", "c1"}) {
    send(id);
  }
  std::vector<Completion> completions;
  for (const Delivery& delivery : claim()) {
    auto effects = std::make_shared<queue::Effects>();
    // The second one changes no row, though it says one.
    const std::int64_t number = delivery.message.id == "b1" ? 1 : 0;
    effects->writes.push_back({queue::SqlWrite{"INSERT INTO accounts SELECT NULL WHERE ?1 = 0", {number}, 1}});
    completions.push_back({.receipt = delivery.receipt, .effects = std::move(effects)});
  }
  EXPECT_EQ(settle(*store_, completions),
            (std::vector{SettleStatus::applied, SettleStatus::refused, SettleStatus::applied}));
  EXPECT_EQ(rows("accounts"), 2U);
  EXPECT_EQ(all_ids(*store_, "orders"), std::vector<std::string>{"b1"});
  EXPECT_EQ(settle(*store_, {{.receipt = completions[1].receipt}}), std::vector{SettleStatus::applied});
}

TEST_F(GroupEnds, AnIdThatEndsWithAnEffectIsFreeForIt) {
  send("a1");
  auto effects = std::make_shared<queue::Effects>();
  effects->messages.push_back({"orders", {.id = "a1", .body = "again", .group = "a"}, false});
  EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt, .effects = effects}}),
            std::vector{SettleStatus::applied});
  EXPECT_EQ(claim().at(0).message.body, "again");
}

}  // namespace
}  // namespace sluice::test
