// What is done in a group lies under a tombstone until it is swept, and counts for nothing meanwhile; so that messages
// whose groups come at random do not write a page each.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
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

class Tombstones : public ::testing::Test {
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
  /// Keeps the order of groups from here on.
  void keep_order() {
    send("a");
    EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt}}), std::vector{SettleStatus::applied});
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_ = open_store(file_, clock_, random_);
};

TEST_F(Tombstones, MessagesOfGroupsAtRandomShareThePagesThatTheyWrite) {
  constexpr std::size_t kGroups = 1'000;
  constexpr std::size_t kBatch = 250;
  keep_order();
  std::vector<queue::NewMessage> messages(kBatch);
  for (std::size_t sent = 0; sent < 20 * kGroups; sent += kBatch) {
    for (auto& message : messages) {
      message.group = std::to_string(random_.next() % kGroups);
      message.body.assign(100, 'x');
    }
    store_->send("orders", messages, Deadline::never());
  }
  // The fifth number of the index of the log says how many pages it holds, until it is begun anew.
  const auto pages = [this] {
    std::array<std::uint32_t, 5> head{};
    std::ifstream(file_ + "-shm", std::ios::binary).read(reinterpret_cast<char*>(head.data()), sizeof(head));
    return head[4];
  };
  std::size_t written = 0;
  std::size_t done = 0;
  for (int batch = 0; batch < 60; ++batch) {
    std::vector<Completion> completions;
    for (const Delivery& delivery : claim(kBatch)) {
      completions.push_back({.receipt = delivery.receipt});
    }
    const std::size_t before = pages();
    for (const SettleStatus status : settle(*store_, completions)) {
      EXPECT_EQ(status, SettleStatus::applied);
    }
    if (pages() > before) {
      written += pages() - before;
      done += completions.size();
    }
  }
  ASSERT_GT(done, 5'000U) << "the log was begun anew too often to tell";
  // Without tombstones it is more than one page for each.
  EXPECT_LT(written * 10, done * 4) << written << " pages for " << done << " messages";
}

TEST_F(Tombstones, WhatIsBuriedIsGoneForEverybody) {
  send("a1", 10, "key");
  send("a2");
  send("b1");
  const auto claimed = claim();
  ASSERT_EQ(claimed.size(), 2U);
  const std::vector<Completion> done{{.receipt = claimed[0].receipt}};
  EXPECT_EQ(settle(*store_, done), std::vector{SettleStatus::applied});
  EXPECT_EQ(rows("messages"), 3U) << "it was not buried, so this tests nothing";
  EXPECT_EQ(rows("tombstones"), 1U);
  EXPECT_EQ(settle(*store_, done), std::vector{SettleStatus::lost});
  EXPECT_EQ(all_ids(*store_, "orders"), (std::vector<std::string>{"a2", "b1"}));
  EXPECT_FALSE(store_->get("orders", "a1", Deadline::never()));
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->ready, 1U);
  const queue::Change removal{.id = "a1", .action = queue::ChangeAction::remove};
  EXPECT_NE(store_->change("orders", std::span(&removal, 1), Deadline::never())[0].status,
            queue::ChangeStatus::applied);
  // Its id and its key are free again.
  EXPECT_EQ(send("a1", 10, "key"), queue::SendStatus::sent);
  EXPECT_EQ(all_ids(*store_, "orders").size(), 3U);
}

TEST_F(Tombstones, AnIdleClaimOfAnEmptyQueueSweeps) {
  for (const std::string id : {"a1", "a2", "b1"}) {
    send(id);
  }
  for (auto claimed = claim(); !claimed.empty(); claimed = claim()) {
    for (const Delivery& delivery : claimed) {
      EXPECT_EQ(settle(*store_, {{.receipt = delivery.receipt}}), std::vector{SettleStatus::applied});
    }
  }
  EXPECT_EQ(rows("messages"), 3U) << "others may end soon, to be swept with these";
  clock_.advance(1s);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(rows("messages"), 0U);
  EXPECT_EQ(rows("chains"), 0U);
  EXPECT_EQ(rows("tombstones"), 0U);
}

TEST_F(Tombstones, TheyAreSweptByAndBy) {
  keep_order();
  constexpr std::size_t kBatch = 500;
  std::vector<queue::NewMessage> messages(kBatch);
  std::size_t most = 0;
  for (int batch = 0; batch < 40; ++batch) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      messages[i].group = std::to_string(i);
    }
    store_->send("orders", messages, Deadline::never());
    std::vector<Completion> completions;
    for (const Delivery& delivery : claim(kBatch)) {
      completions.push_back({.receipt = delivery.receipt});
    }
    settle(*store_, completions);
    most = std::max(most, rows("messages"));
  }
  EXPECT_GT(most, 1'000U);
  EXPECT_LT(most, 6'000U);
}

TEST_F(Tombstones, HostsThatEndSoonSweepWhatThoseBeforeThemHaveLeft) {
  keep_order();
  std::vector<queue::NewMessage> messages(200);
  for (int run = 0; run < 10; ++run) {
    store_ = open_store(file_, clock_, random_);
    for (auto& message : messages) {
      message.group = std::to_string(random_.next() % 1'000);
    }
    store_->send("orders", messages, Deadline::never());
    for (auto claimed = claim(); !claimed.empty(); claimed = claim()) {
      std::vector<Completion> completions;
      completions.reserve(claimed.size());
      for (const Delivery& delivery : claimed) {
        completions.push_back({.receipt = delivery.receipt});
      }
      settle(*store_, completions);
    }
    EXPECT_LE(rows("messages"), 2 * messages.size());
  }
}

// Such as those of a queue beside a busier one in the same file.
TEST_F(Tombstones, ThoseThatLieFarApartAreSweptToo) {
  keep_order();
  constexpr std::size_t kBatch = 1'000;
  std::vector<queue::NewMessage> others(kBatch);
  std::vector<queue::NewMessage> messages(40);
  std::size_t most = 0;
  for (int batch = 0; batch < 100; ++batch) {
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i].group = std::to_string(i);
    }
    store_->send("orders", messages, Deadline::never());
    store_->send("plain", others, Deadline::never());
    std::vector<Completion> completions;
    for (const Delivery& delivery : claim(messages.size())) {
      completions.push_back({.receipt = delivery.receipt});
    }
    settle(*store_, completions);
    completions.clear();
    for (const Delivery& delivery : *store_->claim({"plain"}, kBatch, 30s, Deadline::never())) {
      completions.push_back({.receipt = delivery.receipt});
    }
    store_->settle({"plain"}, completions, Deadline::never());
    most = std::max(most, rows("messages"));
  }
  EXPECT_LT(most, 1'000U) << "of 4,000 that are done";
}

TEST_F(Tombstones, AnIdleClaimSweepsAlsoBesideWhatMustWait) {
  constexpr std::size_t kBatch = 1'000;
  keep_order();
  const queue::NewMessage late{.id = "z1", .group = "z", .delay = std::chrono::hours(24)};
  store_->send("orders", std::span(&late, 1), Deadline::never());
  std::vector<queue::NewMessage> messages(kBatch);
  for (int batch = 0; batch < 10; ++batch) {
    for (auto& message : messages) {
      message.group = std::to_string(random_.next() % kBatch);
    }
    store_->send("orders", messages, Deadline::never());
  }
  for (auto claimed = claim(kBatch); !claimed.empty(); claimed = claim(kBatch)) {
    std::vector<Completion> completions;
    completions.reserve(claimed.size());
    for (const Delivery& delivery : claimed) {
      completions.push_back({.receipt = delivery.receipt});
    }
    settle(*store_, completions);
  }
  ASSERT_GT(rows("messages"), kBatch) << "nothing was left lying, so this tests nothing";
  for (int i = 0; i < 10; ++i) {
    clock_.advance(10s);
    EXPECT_TRUE(claim().empty());
  }
  EXPECT_EQ(rows("messages"), 1U);
  EXPECT_EQ(rows("tombstones"), 0U);
}

TEST_F(Tombstones, AnEndIsToldOnceInABatch) {
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

TEST_F(Tombstones, AReceiptOfAnotherIdOrVersionHoldsNothing) {
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

TEST_F(Tombstones, NorDoesOneOfAnEarlierDeliveryBesideThatOfTheLastOne) {
  send("a1");
  const auto late = claim().at(0).receipt;
  clock_.advance(31s);
  const auto receipt = claim().at(0).receipt;
  queue::Receipt other = receipt;
  other.id = "b1";
  EXPECT_EQ(settle(*store_, {{.receipt = late}, {.receipt = other}, {.receipt = receipt}, {.receipt = late}}),
            (std::vector{SettleStatus::lost, SettleStatus::lost, SettleStatus::applied, SettleStatus::lost}));
  EXPECT_EQ(rows("tombstones"), 1U);
}

TEST_F(Tombstones, WhatWasExtendedIsBuriedToo) {
  send("a1");
  queue::Receipt receipt = claim().at(0).receipt;
  for (int i = 0; i < 2; ++i) {
    const auto extended = store_->extend({"orders"}, std::span(&receipt, 1), 30s, Deadline::never()).at(0);
    ASSERT_EQ(extended.status, SettleStatus::applied);
    receipt = extended.receipt;
  }
  EXPECT_EQ(settle(*store_, {{.receipt = receipt}}), std::vector{SettleStatus::applied});
  EXPECT_EQ(rows("tombstones"), 1U);
}

TEST_F(Tombstones, AMessageThatChangedItsGroupAndItsHostFreesTheNewOne) {
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

TEST_F(Tombstones, ALongMessageIsRemovedAtOnce) {
  send("a1", 5'000);
  send("a2", 5'000);
  EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt}}), std::vector{SettleStatus::applied});
  EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt}}), std::vector{SettleStatus::applied});
  const queue::NewMessage message{.id = "a3", .attributes = {{"k", std::string(5'000, 'x')}}, .group = "a"};
  store_->send("orders", std::span(&message, 1), Deadline::never());
  EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt}}), std::vector{SettleStatus::applied});
  EXPECT_EQ(rows("messages"), 0U);
  EXPECT_EQ(rows("chains"), 0U);
}

TEST_F(Tombstones, AnotherHostSettlesWhatThisOneHasClaimed) {
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

TEST_F(Tombstones, WhatARefusedEffectUndoesIsNotBuried) {
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

TEST_F(Tombstones, AnIdThatEndsWithAnEffectIsFreeForIt) {
  send("a1");
  auto effects = std::make_shared<queue::Effects>();
  effects->messages.push_back({"orders", {.id = "a1", .body = "again", .group = "a"}, false});
  EXPECT_EQ(settle(*store_, {{.receipt = claim().at(0).receipt, .effects = effects}}),
            std::vector{SettleStatus::applied});
  EXPECT_EQ(claim().at(0).message.body, "again");
}

}  // namespace
}  // namespace sluice::test
