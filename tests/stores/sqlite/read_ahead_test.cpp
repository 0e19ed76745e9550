// What is read ahead of a claim is handed out only while it is as it was read: somebody else may claim it, settle it,
// give it back or edit it in between. Then the claim reads what lies there.

#include "host/stores/sqlite/read_ahead.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "host/queue/content_edit.hpp"
#include "host/stores/sqlite/read_lane.hpp"
#include "host/stores/sqlite/ready_rows.hpp"
#include "host/stores/sqlite/records.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::Delivery;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

namespace sqlite = queue::sqlite;

class ReadAhead : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(connection_.open(sqlite::Connection::Access::write));
    ASSERT_TRUE(reading_.open(sqlite::Connection::Access::read));
    records_ = std::make_unique<sqlite::Records>(connection_);
    reader_ = std::make_unique<sqlite::ReadAhead>(reading_);
    // Kept from here on.
    send("z0");
    const auto first = other_->source({"orders"}).claim(request(), Deadline::never());
    settle(first->deliveries, queue::CompletionAction::remove);
  }
  void TearDown() override {
    EXPECT_FALSE(connection_.failed()) << connection_.failure().message();
    EXPECT_FALSE(reading_.failed()) << reading_.failure().message();
    other_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

  static queue::ClaimRequest request(std::size_t max = 10) {
    return {.max = max, .visibility = 30s, .suspects = false, .rules = {.order = queue::Order::group}};
  }
  void send(const std::string& id, const std::string& body = "sent") {
    clock_.advance(1ms);
    const queue::NewMessage message{.id = id, .body = body, .group = id.substr(0, 1)};
    ASSERT_EQ(other_->send("orders", std::span(&message, 1), Deadline::never()).at(0).status, queue::SendStatus::sent);
  }
  std::vector<Delivery> claim_elsewhere(std::size_t max) {
    return other_->source({"orders"}).claim(request(max), Deadline::never())->deliveries;
  }
  void settle(const std::vector<Delivery>& deliveries, queue::CompletionAction action) {
    for (const Delivery& delivery : deliveries) {
      const queue::Completion completion{.receipt = delivery.receipt, .action = action};
      ASSERT_EQ(other_->settle({"orders"}, std::span(&completion, 1), Deadline::never()).at(0).status,
                queue::SettleStatus::applied);
    }
  }
  sqlite::HeadsRead read(const queue::ClaimRequest& request, const queue::QueueAddress& address = {"orders"}) {
    reading_.execute("BEGIN");
    sqlite::HeadsRead heads{reader_->heads(address, request, clock_.wall_now()), 0};
    reading_.execute("COMMIT");
    return heads;
  }
  std::vector<Delivery> claim(sqlite::HeadsRead& heads, const queue::ClaimRequest& request) {
    connection_.execute("BEGIN IMMEDIATE");
    records_->begin();
    const std::int64_t half = sqlite::half_of(records_->queue("orders").value_or(0), queue::Half::standard);
    auto claimed = records_->claimer().claim(half, request, sqlite::Lease(clock_, 30s), &heads);
    records_->finish();
    connection_.execute("COMMIT");
    return claimed.deliveries;
  }
  static std::string told(const std::vector<Delivery>& deliveries) {
    std::string text;
    for (const Delivery& delivery : deliveries) {
      text += delivery.message.id + ":" + delivery.message.body + ":" + std::to_string(delivery.message.attempt) + " ";
    }
    return text;
  }
  /// What has been claimed is held, for the span that was asked for.
  void expect_held(const std::vector<Delivery>& deliveries) {
    for (const Delivery& delivery : deliveries) {
      EXPECT_EQ(delivery.invisible_until, clock_.wall_now() + 30s);
      EXPECT_EQ(delivery.leased_until, clock_.steady_now() + 30s);
    }
    settle(deliveries, queue::CompletionAction::remove);
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> other_ = open_store(file_, clock_, random_);
  sqlite::Connection connection_{file_};
  sqlite::Connection reading_{file_};
  std::unique_ptr<sqlite::Records> records_;
  std::unique_ptr<sqlite::ReadAhead> reader_;
};

TEST_F(ReadAhead, IsHandedOutAsItWasRead) {
  for (const std::string id : {"a1", "b1", "a2", "c1"}) {
    send(id);
  }
  auto heads = read(request());
  EXPECT_EQ(heads.heads.size(), 3U);
  const auto claimed = claim(heads, request());
  EXPECT_EQ(told(claimed), "a1:sent:1 b1:sent:1 c1:sent:1 ");
  EXPECT_EQ(heads.used, 3U);
  expect_held(claimed);
}

TEST_F(ReadAhead, IsAsMuchAsTheClaimTakes) {
  for (const std::string id : {"a1", "b1", "c1", "d1"}) {
    send(id, std::string(100, 'x'));
  }
  EXPECT_EQ(read(request(2)).heads.size(), 2U);
  auto small = request();
  small.bytes = 250;
  auto heads = read(small);
  EXPECT_EQ(heads.heads.size(), 3U);
  EXPECT_EQ(claim(heads, small).size(), 3U);
  EXPECT_EQ(claim(heads, small).size(), 1U);
}

TEST_F(ReadAhead, GivesWayToWhatWasEditedMeanwhile) {
  for (const std::string id : {"a1", "b1"}) {
    send(id);
  }
  auto heads = read(request());
  const queue::ContentEdit edit{.path = {"attributes", "color"}, .json = "\"red\""};
  const auto version = other_->get("orders", "b1", Deadline::never())->version;
  const auto edited = other_->edit("orders", "b1", version, std::span(&edit, 1), Deadline::never());
  ASSERT_TRUE(edited) << edited.error().message();
  const auto claimed = claim(heads, request());
  ASSERT_EQ(told(claimed), "a1:sent:1 b1:sent:1 ");
  EXPECT_TRUE(claimed[0].message.attributes.empty());
  EXPECT_EQ(claimed[1].message.attributes, (queue::Attributes{{"color", "red"}}));
  EXPECT_EQ(heads.used, 1U);
  expect_held(claimed);
}

TEST_F(ReadAhead, LeavesWhatAnotherHostHasTaken) {
  for (const std::string id : {"a1", "b1", "a2", "c1", "d1"}) {
    send(id);
  }
  auto heads = read(request());
  clock_.advance(1ms);
  settle(claim_elsewhere(1), queue::CompletionAction::remove);
  const auto theirs = claim_elsewhere(1);
  EXPECT_EQ(told(theirs), "b1:sent:1 ");
  auto claimed = claim(heads, request());
  // Behind the heads that were there: a2 has got its turn only now.
  EXPECT_EQ(told(claimed), "c1:sent:1 d1:sent:1 a2:sent:1 ");
  EXPECT_EQ(heads.used, 2U);
  expect_held(claimed);
  settle(theirs, queue::CompletionAction::remove);
}

TEST_F(ReadAhead, CountsWhatWasTriedMeanwhile) {
  for (const std::string id : {"a1", "b1"}) {
    send(id);
  }
  auto heads = read(request());
  settle(claim_elsewhere(1), queue::CompletionAction::retry);
  const auto claimed = claim(heads, request());
  EXPECT_EQ(claimed.size(), 2U);
  EXPECT_EQ(heads.used, 1U);
  for (const Delivery& delivery : claimed) {
    EXPECT_EQ(delivery.message.attempt, delivery.message.id == "a1" ? 2U : 1U) << delivery.message.id;
  }
  expect_held(claimed);
}

TEST_F(ReadAhead, IsReadAgainByATransactionThatIsMadeAgain) {
  for (const std::string id : {"a1", "b1"}) {
    send(id);
  }
  auto heads = read(request());
  connection_.execute("BEGIN IMMEDIATE");
  records_->begin();
  const std::int64_t half = sqlite::half_of(records_->queue("orders").value_or(0), queue::Half::standard);
  EXPECT_EQ(records_->claimer().claim(half, request(), sqlite::Lease(clock_, 30s), &heads).deliveries.size(), 2U);
  connection_.execute("ROLLBACK");
  const auto claimed = claim(heads, request());
  EXPECT_EQ(told(claimed), "a1:sent:1 b1:sent:1 ");
  EXPECT_EQ(heads.used, 0U);
  expect_held(claimed);
}

TEST_F(ReadAhead, LeavesToTheClaimWhatCannotBeRead) {
  for (const std::string id : {"a1", "b1"}) {
    send(id);
  }
  raw_sql(file_, "UPDATE messages SET attributes = x'01' WHERE id = 'a1'");
  auto heads = read(request());
  EXPECT_EQ(heads.heads.size(), 1U);
  const auto claimed = claim(heads, request());
  EXPECT_EQ(told(claimed), "b1:sent:1 ");
  expect_held(claimed);
  const auto aside = other_->get("orders", "a1", Deadline::never());
  EXPECT_FALSE(aside && aside->invisible_until <= clock_.wall_now());
}

TEST_F(ReadAhead, IsNothingWhereNoGroupsAreInOrder) {
  const queue::NewMessage message{.id = "m", .body = "b"};
  for (const std::string queue : {"orders", "plain"}) {
    other_->send(queue, std::span(&message, 1), Deadline::never());
  }
  EXPECT_TRUE(read(request(), {"plain"}).heads.empty());
  EXPECT_TRUE(read(request(), {"absent"}).heads.empty());
  EXPECT_TRUE(read(request(), {"orders", queue::Half::dlq}).heads.empty());
  // Without a group, but in a queue that has some.
  EXPECT_EQ(read(request()).heads.size(), 1U);
}

TEST(ReadAheadPolicy, WaitsForALargeClaim) {
  sqlite::ReadAheadPolicy policy(64);
  queue::ClaimRequest request{.max = 1'000, .rules = {.order = queue::Order::group}};
  EXPECT_FALSE(policy.wanted(request));
  policy.claimed(63, nullptr);
  EXPECT_FALSE(policy.wanted(request));
  policy.claimed(64, nullptr);
  EXPECT_TRUE(policy.wanted(request));
  request.max = 63;
  EXPECT_FALSE(policy.wanted(request));
  request = {.max = 1'000};
  EXPECT_FALSE(policy.wanted(request));
}

TEST(ReadAheadPolicy, PassesMoreOftenTheMoreItIsInVain) {
  sqlite::ReadAheadPolicy policy(64);
  const queue::ClaimRequest request{.max = 1'000, .rules = {.order = queue::Order::group}};
  policy.claimed(1'000, nullptr);
  // How many claims pass until it is tried again.
  const auto passed = [&policy, &request](std::size_t used) {
    const sqlite::HeadsRead read{{}, used};
    policy.claimed(1'000, &read);
    std::size_t claims = 0;
    while (!policy.wanted(request)) {
      policy.claimed(1'000, nullptr);
      ++claims;
    }
    return claims;
  };
  EXPECT_EQ(passed(1'000), 0U);
  EXPECT_EQ(passed(499), 1U);
  EXPECT_EQ(passed(0), 2U);
  EXPECT_EQ(passed(0), 4U);
  EXPECT_EQ(passed(500), 0U);
  EXPECT_EQ(passed(0), 1U);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(passed(0), 64U);
  }
}

TEST(ReadLane, OpensAgainWhereThatHasFailed) {
  TempFolder folder;
  const std::string path = folder.file("store.db");
  const FakeClock clock;
  SeededRandom random{1};
  const auto store = open_store(path, clock, random);
  const sqlite::StoreFile file({.path = path});
  int opened = 0;
  const auto open = [&opened, &path]() -> Result<std::unique_ptr<sqlite::Connection>> {
    auto connection = std::make_unique<sqlite::Connection>(path);
    if (++opened == 1) {
      return Error(ErrorCode::unavailable, "not yet");
    }
    const auto access = connection->open(sqlite::Connection::Access::read);
    return access ? Result<std::unique_ptr<sqlite::Connection>>(std::move(connection)) : access.error();
  };
  sqlite::ReadLane<sqlite::ReadAhead> lane(clock, file, open);
  int read = 0;
  const auto work = [&read](sqlite::ReadAhead&) { ++read; };
  const auto refused = lane.run(work, Deadline::never());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "not yet");
  EXPECT_TRUE(lane.run(work, Deadline::never()));
  EXPECT_TRUE(lane.run(work, Deadline::never()));
  EXPECT_EQ(read, 2);
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace sluice::test
