#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/queue/effects.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {

using std::chrono_literals::operator""s;
using queue::Completion;
using queue::Effects;
using queue::SettleResult;
using queue::SettleStatus;
using queue::SqlBlob;
using queue::SqlValue;
using queue::SqlWrite;

/// A store with a table of the user's, and messages whose ends bring statements on it.
class SqliteEffects : public ::testing::Test {
 public:
  ~SqliteEffects() override {
    store_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

 protected:
  SqliteEffects() : store_(open_store(file_, clock_, random_)) {
    sql("CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0)); "
        "INSERT INTO accounts VALUES ('alice', 10), ('bob', 0)");
  }

  std::vector<std::string> sql(const std::string& text) const { return raw_sql(file_, text); }
  std::string balance(const std::string& name) const {
    return sql("SELECT balance FROM accounts WHERE name = '" + name + "'").at(0);
  }
  std::vector<queue::Delivery> claim(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const queue::NewMessage message{.id = "m" + std::to_string(next_++), .body = "x"};
      EXPECT_EQ(store_->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
    }
    auto claimed = store_->claim({"orders"}, count, 30s, Deadline::never());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return std::move(*claimed);
  }
  static Completion with(const queue::Delivery& delivery, std::vector<SqlWrite> writes) {
    auto effects = std::make_shared<Effects>();
    for (SqlWrite& write : writes) {
      effects->writes.push_back({std::move(write)});
    }
    return {.receipt = delivery.receipt, .effects = std::move(effects)};
  }
  /// As a job does it: what a call has left goes into the next one.
  std::vector<SettleResult> settle(std::vector<Completion> completions) {
    auto results = store_->settle({"orders"}, completions, Deadline::never());
    std::vector<Completion> left;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].left) {
        EXPECT_EQ(results[i].status, SettleStatus::failed);
        left.push_back(std::move(completions[i]));
      }
    }
    EXPECT_LT(left.size(), std::max<std::size_t>(1, completions.size())) << "each call brings some to their end";
    ++calls_;
    if (!left.empty()) {
      auto then = settle(std::move(left));
      auto next = then.begin();
      for (SettleResult& result : results) {
        if (result.left) {
          result = std::move(*next++);
        }
      }
    }
    return results;
  }
  SettleResult run(SqlWrite write) { return settle({with(claim(1).at(0), {std::move(write)})}).at(0); }
  /// What is said of a statement that is refused; nothing has changed by it.
  std::string refusal(SqlWrite write) {
    const auto delivery = claim(1).at(0);
    const SettleResult result = settle({with(delivery, {std::move(write)})}).at(0);
    EXPECT_EQ(result.status, SettleStatus::refused) << result.error.message();
    EXPECT_EQ(balance("alice"), "10");
    EXPECT_EQ(settle({{.receipt = delivery.receipt}}).at(0).status, SettleStatus::applied);
    return result.error.message();
  }
  static SqlWrite debit(std::int64_t amount) {
    return {"UPDATE accounts SET balance = balance - ?1 WHERE name = 'alice'", {amount}, 1};
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
  int next_ = 0;
  int calls_ = 0;  ///< of `settle`
};

}  // namespace sluice::test
