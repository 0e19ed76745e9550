// How many statements a settlement runs: what all messages of a batch need is done with a few, however many there are.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "host/queue/effects.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::Effects;
using std::chrono_literals::operator""s;

constexpr std::size_t kMessages = 400;
/// What a batch may take beside the statements of its messages: the transaction, the counters, and so on.
constexpr std::size_t kForTheBatch = 90;

std::atomic<std::size_t> statements{0};

int on_statement(unsigned /*what*/, void* /*context*/, void* /*statement*/, void* /*text*/) {
  ++statements;
  return 0;
}

/// SQLite calls it with each connection that is opened.
int on_open(sqlite3* connection, const char** /*error*/, const void* /*api*/) {
  sqlite3_trace_v2(connection, SQLITE_TRACE_STMT, &on_statement, nullptr);
  return SQLITE_OK;
}

// SQLite takes any kind of function there, and calls it as one of this kind.
void (*hook())() { return reinterpret_cast<void (*)()>(&on_open); }

class SqliteStatements : public ::testing::Test {
 protected:
  void SetUp() override {
    sqlite3_auto_extension(hook());
    store_ = open_store(file_, clock_, random_);
    raw_sql(file_,
            "CREATE TABLE accounts (number INTEGER PRIMARY KEY, balance INTEGER NOT NULL); "
            "INSERT INTO accounts VALUES (1, 0)");
  }
  void TearDown() override {
    store_.reset();
    sqlite3_cancel_auto_extension(hook());
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

  std::vector<Completion> claim(const std::string& queue, queue::Order order = queue::Order::none) {
    std::vector<Completion> completions;
    const auto claimed = store_->source({queue}).claim({.max = kMessages, .visibility = 30s, .rules = {.order = order}},
                                                       Deadline::never());
    for (const auto& delivery : claimed->deliveries) {
      completions.push_back({.receipt = delivery.receipt});
    }
    return completions;
  }
  void send(const std::string& queue) {
    std::vector<queue::NewMessage> messages(kMessages);
    for (std::size_t i = 0; i < kMessages; ++i) {
      messages[i].body = "x";
      messages[i].group = "group-" + std::to_string(i);
    }
    store_->send(queue, messages, Deadline::never());
  }
  /// Of a settlement of all of it.
  std::size_t count(const std::string& queue, const std::vector<Completion>& completions) {
    EXPECT_EQ(completions.size(), kMessages);
    statements = 0;
    for (const auto& result : store_->settle({queue}, completions, Deadline::never())) {
      EXPECT_EQ(result.status, queue::SettleStatus::applied) << result.error.message();
    }
    return statements;
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

TEST_F(SqliteStatements, AMessageInItsGroupTakesOneToEnd) {
  send("orders");
  send("orders");  // those behind, which come to the head
  EXPECT_LE(count("orders", claim("orders", queue::Order::group)), kMessages + kForTheBatch);
  // Then the lanes end too.
  EXPECT_LE(count("orders", claim("orders", queue::Order::group)), 2 * kMessages + kForTheBatch);
}

TEST_F(SqliteStatements, AMessageThatIsSentWithTheEndTakesNone) {
  send("orders");
  auto completions = claim("orders");
  for (Completion& completion : completions) {
    auto effects = std::make_shared<Effects>();
    effects->messages.push_back({"receipts", {.id = "of " + completion.receipt.id, .body = "r"}, true});
    effects->writes.push_back({queue::SqlWrite{"UPDATE accounts SET balance = balance + ?1", {std::int64_t{1}}, 1}});
    completion.effects = std::move(effects);
  }
  // The end of each message, and the user's own statement.
  EXPECT_LE(count("orders", completions), 2 * kMessages + kForTheBatch);
  EXPECT_EQ(all_ids(*store_, "receipts").size(), kMessages);
}

TEST_F(SqliteStatements, ARecordOfAKeyTakesNone) {
  send("orders");
  auto completions = claim("orders");
  for (Completion& completion : completions) {
    auto effects = std::make_shared<Effects>();
    effects->key = queue::KeyRecord{.job = "bill", .key = completion.receipt.id, .ttl = 60s, .own_id = true};
    completion.effects = std::move(effects);
  }
  EXPECT_LE(count("orders", completions), kMessages + kForTheBatch);
  EXPECT_EQ(raw_sql(file_, "SELECT sum(records) FROM key_batches").at(0), std::to_string(kMessages));
  // Nor a row of its own.
  EXPECT_LE(std::stoul(raw_sql(file_, "SELECT count(*) FROM key_batches").at(0)), kMessages / 80);
}

TEST_F(SqliteStatements, TheLookForIdsThatAreDoneIsPartOfTheClaimAndTakesNone) {
  const auto looked = [this](const std::string& queue, const std::string& job) {
    statements = 0;
    const auto claimed =
        store_->source({queue}).claim({.max = kMessages, .visibility = 30s, .own_ids_of = job}, Deadline::never());
    EXPECT_EQ(claimed->deliveries.size(), kMessages);
    for (const auto& delivery : claimed->deliveries) {
      EXPECT_EQ(delivery.own_id.asked, !job.empty());
      EXPECT_EQ(delivery.own_id.done, nullptr);
    }
    return statements.load();
  };
  send("orders");
  auto completions = claim("orders");
  for (Completion& completion : completions) {
    auto effects = std::make_shared<Effects>();
    effects->key = queue::KeyRecord{.job = "bill", .key = {}, .ttl = 60s, .own_id = true};
    completion.effects = std::move(effects);
  }
  count("orders", completions);
  send("orders");
  const std::size_t plain = looked("orders", "");
  send("orders");
  // Of ids that are new a filter tells: of one in two hundred it does not, and a row is read.
  EXPECT_LE(looked("orders", "bill"), plain + 3 + kMessages / 20);
}

TEST_F(SqliteStatements, RecordsOfKeysWriteFewPages) {
  // The log grows by a page of the file and a head of 24 bytes for each that is written.
  const auto pages = [this] { return std::filesystem::file_size(file_ + "-wal") / 4120; };
  const auto settle = [this, &pages](bool keyed) {
    send("orders");
    auto completions = claim("orders");
    for (Completion& completion : completions) {
      if (keyed) {
        auto effects = std::make_shared<Effects>();
        effects->key = queue::KeyRecord{.job = "bill", .key = completion.receipt.id, .ttl = 60s, .own_id = true};
        completion.effects = std::move(effects);
      }
    }
    const std::uintmax_t before = pages();
    count("orders", completions);
    return pages() - before;
  };
  settle(true);  // the first one makes the job
  const std::uintmax_t plain = settle(false);
  EXPECT_GT(plain, 10U) << "the log was begun anew, and tells nothing";
  // Of 39 bytes each a hundred lie on a page; beside them there are the counters, and the inner pages of the table.
  EXPECT_LE(settle(true), plain + kMessages / 100 + 6);
}

}  // namespace
}  // namespace sluice::test
