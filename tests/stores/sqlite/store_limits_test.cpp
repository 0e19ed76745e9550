// What the embedded store does at its limits: a full file, large bodies, records that nobody can read, other processes'
// locks, slow readers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::HasSubstr;

class StoreLimitsTest : public ::testing::Test {
 protected:
  void open(const queue::SqliteOptions& options = {}) { store_ = open_store(file_, clock_, random_, options); }
  queue::SendResult send(const std::string& id, std::size_t body) {
    const queue::NewMessage message{.id = id, .body = std::string(body, 'x')};
    return store_->send("orders", std::span(&message, 1), Deadline::never()).at(0);
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

/// A connection behind the store's back that keeps a transaction open.
class Intruder {
 public:
  Intruder(const std::string& file, const char* sql) {
    if (sqlite3_open(file.c_str(), &handle_) != SQLITE_OK ||
        sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(handle_));
    }
  }
  ~Intruder() { sqlite3_close(handle_); }
  Intruder(const Intruder&) = delete;
  Intruder& operator=(const Intruder&) = delete;

 private:
  sqlite3* handle_ = nullptr;
};

TEST_F(StoreLimitsTest, FullFileRefusesSendsAndLosesNothing) {
  open({.path = {}, .max_file_bytes = 600 * 1024});
  std::vector<std::string> accepted;
  queue::SendResult last;
  for (int i = 0; i < 1000; ++i) {
    last = send("id" + std::to_string(1000 + i), 3000);
    if (last.status != queue::SendStatus::sent) {
      break;
    }
    accepted.push_back(last.id);
  }
  ASSERT_EQ(last.status, queue::SendStatus::failed);
  EXPECT_EQ(last.error.code(), ErrorCode::full) << last.error.message();
  EXPECT_TRUE(last.error.transient());
  EXPECT_GT(accepted.size(), 50U);
  EXPECT_EQ(all_ids(*store_, "orders"), accepted);
  const auto claims = store_->claim({"orders"}, 20, 30s, Deadline::never());
  ASSERT_TRUE(claims) << claims.error().message();
  std::vector<queue::Completion> settlements;
  for (const auto& claim : *claims) {
    settlements.push_back({.receipt = claim.receipt});
  }
  for (const auto& result : store_->settle({"orders"}, settlements, Deadline::never())) {
    EXPECT_EQ(result.status, queue::SettleStatus::applied) << "work goes on while there is no room for more";
  }
  EXPECT_EQ(send("again", 3000).status, queue::SendStatus::sent) << "what was settled made room";
  store_.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(StoreLimitsTest, AFullFileOfGroupsIsWorkedOffAndTakesMore) {
  open({.path = {}, .max_file_bytes = 600 * 1024});
  const auto claim = [this](std::size_t max) {
    return store_->source({"orders"})
        .claim({.max = max, .visibility = 30s, .rules = {.order = queue::Order::group}}, Deadline::never());
  };
  const auto fill = [this](const std::string& prefix) {
    std::size_t sent = 0;
    for (; sent < 10'000; ++sent) {
      const queue::NewMessage message{
          .id = prefix + std::to_string(sent), .body = std::string(900, 'x'), .group = std::to_string(sent % 7)};
      if (store_->send("orders", std::span(&message, 1), Deadline::never()).at(0).status != queue::SendStatus::sent) {
        break;
      }
    }
    return sent;
  };
  ASSERT_EQ(send("first", 1).status, queue::SendStatus::sent);
  ASSERT_TRUE(claim(0));  // from here on it keeps the order
  const std::size_t first = 1 + fill("a");
  ASSERT_GT(first, 100U);
  std::size_t done = 0;
  const auto work = [&](std::size_t wanted) {
    for (const std::size_t end = done + wanted; done < end;) {
      const auto claimed = claim(5);
      ASSERT_TRUE(claimed) << claimed.error().message() << " after " << done;
      ASSERT_FALSE(claimed->deliveries.empty()) << "after " << done;
      std::vector<queue::Completion> completions;
      for (const auto& delivery : claimed->deliveries) {
        completions.push_back({.receipt = delivery.receipt});
      }
      for (const auto& result : store_->settle({"orders"}, completions, Deadline::never())) {
        ASSERT_EQ(result.status, queue::SettleStatus::applied) << result.error.message() << " after " << done;
      }
      done += completions.size();
    }
  };
  work(first / 2);
  const std::size_t second = fill("b");
  EXPECT_GT(second, first / 4) << "what was settled made room";
  work(first + second - done);
  EXPECT_TRUE(all_ids(*store_, "orders").empty());
  store_.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(StoreLimitsTest, OneClaimHoldsBoundedMemory) {
  open();
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(send("id" + std::to_string(i), 1024 * 1024).status, queue::SendStatus::sent);
  }
  std::size_t claimed = 0;
  for (int round = 0; round < 4 && claimed < 12; ++round) {
    const auto claims = store_->claim({"orders"}, 100, 30s, Deadline::never());
    ASSERT_TRUE(claims);
    EXPECT_LE(claims->size(), 8U);
    EXPECT_GE(claims->size(), 1U);
    claimed += claims->size();
  }
  EXPECT_EQ(claimed, 12U);
}

TEST_F(StoreLimitsTest, OneClaimHoldsBoundedMemoryOfCheckpointsToo) {
  open();
  std::vector<queue::StoredMessage> records(200);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].message.id = "id" + std::to_string(i);
    records[i].message.sent_at = clock_.wall_now() - 1s;
    records[i].message.checkpoint = std::string(queue::kMostCheckpointBytes, 'x');
  }
  for (const auto& result : store_->put("orders", records, queue::PutMode::insert, Deadline::never())) {
    ASSERT_EQ(result.status, queue::PutStatus::written) << result.error.message();
  }
  const auto claims = store_->claim({"orders"}, records.size(), 30s, Deadline::never());
  ASSERT_TRUE(claims) << claims.error().message();
  EXPECT_EQ(claims->size(), queue::kClaimBytes / queue::kMostCheckpointBytes);
}

TEST_F(StoreLimitsTest, AMessageLargerThanAClaimIsClaimedAlone) {
  open();
  ASSERT_EQ(send("big", 12 * 1024 * 1024).status, queue::SendStatus::sent);
  ASSERT_EQ(send("small", 1).status, queue::SendStatus::sent);
  const auto claims = store_->claim({"orders"}, 10, 30s, Deadline::never());
  ASSERT_TRUE(claims);
  ASSERT_EQ(claims->size(), 1U);
  EXPECT_EQ(claims->at(0).message.body.size(), 12U * 1024 * 1024);
}

TEST_F(StoreLimitsTest, ClaimAndRetryOfALargeBodyWriteLittle) {
  open();
  ASSERT_EQ(send("big", 8 * 1024 * 1024).status, queue::SendStatus::sent);
  store_.reset();
  open();
  for (int i = 0; i < 10; ++i) {
    const auto claims = store_->claim({"orders"}, 1, 30s, Deadline::never());
    ASSERT_TRUE(claims);
    ASSERT_EQ(claims->size(), 1U);
    const queue::Completion settlement{.receipt = claims->at(0).receipt, .action = queue::CompletionAction::retry};
    ASSERT_EQ(store_->settle({"orders"}, std::span(&settlement, 1), Deadline::never())[0].status,
              queue::SettleStatus::applied);
  }
  EXPECT_LT(std::filesystem::file_size(file_ + "-wal"), 1024U * 1024) << "the body was written again";
}

TEST_F(StoreLimitsTest, ARecordThatNobodyCanReadStopsNothing) {
  open();
  for (const std::string id : {"A-1", "A-2", "A-3"}) {
    ASSERT_EQ(send(id, 10).status, queue::SendStatus::sent);
  }
  raw_sql(file_, "UPDATE sluice_messages SET attributes = x'FF00' WHERE id = 'A-1'");
  const auto claims = store_->claim({"orders"}, 2, 30s, Deadline::never());
  ASSERT_TRUE(claims) << claims.error().message();
  ASSERT_EQ(claims->size(), 2U);
  EXPECT_EQ(claims->at(0).message.id, "A-2");
  auto shown = store_->get("orders", "A-1", Deadline::never());
  ASSERT_TRUE(shown);
  EXPECT_TRUE(shown->message.attributes.contains("(unreadable)"));
  EXPECT_THAT(shown->failure.error, HasSubstr("cannot be read"));
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->ready, 0U) << "nobody can claim it";
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->delayed, 1U);
  // An edit that takes the damage away, and it is a message like any other.
  const queue::ContentEdit mend{.path = {"attributes", "(unreadable)"}, .json = std::nullopt};
  ASSERT_TRUE(store_->edit("orders", "A-1", shown->version, std::span(&mend, 1), Deadline::never()));
  const queue::Change front{.id = "A-1", .action = queue::ChangeAction::move_to_front};
  store_->change("orders", std::span(&front, 1), Deadline::never());
  const auto mended = store_->claim({"orders"}, 2, 30s, Deadline::never());
  ASSERT_EQ(mended->size(), 1U);
  EXPECT_EQ(mended->at(0).message.id, "A-1");
  EXPECT_TRUE(store_->remove("orders", "A-1", Deadline::never()));
  store_.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(StoreLimitsTest, AnotherProcessesLockIsWaitedForNoLongerThanTheDeadline) {
  open();
  ASSERT_EQ(send("A-1", 10).status, queue::SendStatus::sent);
  {
    const Intruder intruder(file_, "BEGIN IMMEDIATE");
    const auto claims = store_->claim({"orders"}, 1, 30s, Deadline::after(clock_, 30ms));
    ASSERT_FALSE(claims);
    EXPECT_EQ(claims.error().code(), ErrorCode::timeout) << claims.error().message();
    EXPECT_THAT(claims.error().message(), HasSubstr("another process"));
    EXPECT_EQ(store_->stats({"orders"}, Deadline::after(clock_, 30ms))->ready, 1U) << "readers do not wait";
  }
  EXPECT_EQ(store_->claim({"orders"}, 1, 30s, Deadline::after(clock_, 5s))->size(), 1U);
}

TEST_F(StoreLimitsTest, ASlowReaderHoldsUpNoWriter) {
  open();
  ASSERT_EQ(send("A-1", 10).status, queue::SendStatus::sent);
  const Intruder intruder(file_, "BEGIN; SELECT count(*) FROM sluice_messages");
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(send("id" + std::to_string(i), 10'000).status, queue::SendStatus::sent);
  }
  EXPECT_EQ(store_->claim({"orders"}, 100, 30s, Deadline::after(clock_, 5s))->size(), 51U);
}

TEST_F(StoreLimitsTest, TheLogStaysShort) {
  open();
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(send("id" + std::to_string(i), 1024 * 1024).status, queue::SendStatus::sent);
  }
  EXPECT_LT(std::filesystem::file_size(file_ + "-wal"), 64U * 1024 * 1024);
}

TEST_F(StoreLimitsTest, RefusesAQueueWithoutAName) {
  open();
  for (const std::string& name : {std::string(), std::string(5000, 'q')}) {
    EXPECT_EQ(store_->queues().open_source({name}).error().code(), ErrorCode::invalid);
    EXPECT_EQ(store_->queues().open_sender(name).error().code(), ErrorCode::invalid);
    EXPECT_EQ(store_->queues().open_operator(name).error().code(), ErrorCode::invalid);
  }
}

TEST_F(StoreLimitsTest, TheClockMayGoBack) {
  open();
  ASSERT_EQ(send("A-1", 10).status, queue::SendStatus::sent);
  clock_.set_wall(clock_.wall_now() - 3600s);
  EXPECT_EQ(store_->claim({"orders"}, 1, 30s, Deadline::never())->size(), 0U);
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->delayed, 1U);
  ASSERT_EQ(send("A-2", 10).status, queue::SendStatus::sent);
  EXPECT_EQ(store_->claim({"orders"}, 1, 30s, Deadline::never())->at(0).message.id, "A-2");
  clock_.advance(2h);
  EXPECT_EQ(store_->claim({"orders"}, 5, 30s, Deadline::never())->at(0).message.id, "A-2");
  EXPECT_EQ(store_->claim({"orders"}, 5, 30s, Deadline::never())->at(0).message.id, "A-1");
}

TEST_F(StoreLimitsTest, AMillionDelaysDoNotComeBackInOneTransaction) {
  open();
  std::vector<queue::NewMessage> batch(1000);
  for (auto& message : batch) {
    message.body = "x";
    message.delay = 1s;
  }
  for (int i = 0; i < 12; ++i) {
    for (const auto& result : store_->send("orders", batch, Deadline::never())) {
      ASSERT_EQ(result.status, queue::SendStatus::sent);
    }
  }
  clock_.advance(2s);
  std::size_t claimed = 0;
  while (true) {
    const auto claims = store_->claim({"orders"}, 3000, 30s, Deadline::never());
    ASSERT_TRUE(claims);
    if (claims->empty()) {
      break;
    }
    claimed += claims->size();
  }
  EXPECT_EQ(claimed, 12'000U);
  store_.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

}  // namespace
}  // namespace sluice::test
