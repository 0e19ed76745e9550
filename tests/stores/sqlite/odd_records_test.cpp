// Records that a copy brings from elsewhere, with values that no queue of ours has made: each is refused or works.

#include <gtest/gtest.h>

#include <limits>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using queue::PutStatus;
using queue::StoredMessage;

class OddRecordsTest : public ::testing::Test {
 public:
  OddRecordsTest() : store_(open_store(file_, clock_, random_)) {}
  ~OddRecordsTest() override {
    store_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }
  StoredMessage record(const std::string& id) {
    StoredMessage made;
    made.message.id = id;
    made.message.sent_at = clock_.wall_now();
    made.created_at = clock_.wall_now();
    made.updated_at = clock_.wall_now();
    made.version = 1;
    return made;
  }
  queue::PutResult put(const StoredMessage& record) {
    return store_->put("orders", std::span(&record, 1), queue::PutMode::replace, Deadline::never()).at(0);
  }
  /// Claims until nothing is left; the number of claims.
  std::size_t claim_and_settle(queue::CompletionAction action) {
    std::size_t count = 0;
    const auto claims = store_->claim({"orders"}, 100, 30s, Deadline::never());
    EXPECT_TRUE(claims) << claims.error().message();
    for (const queue::Delivery& claim : claims ? *claims : std::vector<queue::Delivery>()) {
      const queue::Completion settlement{.receipt = claim.receipt, .action = action};
      EXPECT_EQ(store_->settle({"orders"}, std::span(&settlement, 1), Deadline::never())[0].status,
                queue::SettleStatus::applied);
      ++count;
    }
    return count;
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

TEST_F(OddRecordsTest, AVersionThatCannotGrowIsRefused) {
  StoredMessage last = record("A-1");
  last.version = std::numeric_limits<std::int64_t>::max();
  const auto refused = put(last);
  EXPECT_EQ(refused.status, PutStatus::failed);
  EXPECT_EQ(refused.error.code(), ErrorCode::invalid) << refused.error.message();
  ASSERT_EQ(put(record("A-2")).status, PutStatus::written);
  EXPECT_EQ(claim_and_settle(queue::CompletionAction::remove), 1U) << "the queue must go on";
}

TEST_F(OddRecordsTest, AVersionBelowOneGrowsLikeAnother) {
  for (const std::int64_t version : {std::int64_t{0}, std::int64_t{-7}, std::numeric_limits<std::int64_t>::min()}) {
    StoredMessage odd = record("A-1");
    odd.version = version;
    ASSERT_EQ(put(odd).status, PutStatus::written);
    EXPECT_EQ(claim_and_settle(queue::CompletionAction::retry), 1U);
    EXPECT_EQ(store_->get("orders", "A-1", Deadline::never())->version, version + 2);
  }
}

// As a record has it that was copied from where nothing had happened to it yet.
TEST_F(OddRecordsTest, AnyVersionIsClaimedInTheOrderOfItsGroup) {
  const auto claim = [this] {
    return store_->source({"orders"})
        .claim({.max = 100, .visibility = 30s, .rules = {.order = queue::Order::group}}, Deadline::never());
  };
  for (const std::int64_t version : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{-1},
                                     std::numeric_limits<std::int64_t>::min()}) {
    for (int i = 0; i < 3; ++i) {
      StoredMessage odd = record("v" + std::to_string(version) + "-" + std::to_string(i));
      odd.version = version;
      odd.message.group = "g" + std::to_string(version);
      ASSERT_EQ(put(odd).status, PutStatus::written);
    }
  }
  std::size_t done = 0;
  while (done < 15) {
    const auto claimed = claim();
    ASSERT_TRUE(claimed) << claimed.error().message();
    ASSERT_FALSE(claimed->deliveries.empty()) << "after " << done;
    for (const auto& delivery : claimed->deliveries) {
      EXPECT_EQ(delivery.message.attempt, 1U);
      const queue::Completion settlement{.receipt = delivery.receipt};
      ASSERT_EQ(store_->settle({"orders"}, std::span(&settlement, 1), Deadline::never())[0].status,
                queue::SettleStatus::applied);
      ++done;
    }
  }
}

TEST_F(OddRecordsTest, ACountOfReceivesAtItsEndStaysThere) {
  StoredMessage odd = record("A-1");
  odd.message.attempt = std::numeric_limits<std::uint32_t>::max();
  ASSERT_EQ(put(odd).status, PutStatus::written);
  for (int round = 0; round < 3; ++round) {
    const auto claims = store_->claim({"orders"}, 1, 30s, Deadline::never());
    ASSERT_TRUE(claims) << claims.error().message();
    ASSERT_EQ(claims->size(), 1U);
    EXPECT_EQ(claims->at(0).message.attempt, std::numeric_limits<std::uint32_t>::max())
        << "a count that starts anew would hide a poison message";
    EXPECT_EQ(store_->get("orders", "A-1", Deadline::never())->message.attempt,
              std::numeric_limits<std::uint32_t>::max());
    clock_.advance(31s);
  }
}

TEST_F(OddRecordsTest, TimesAtTheirEndsAreKept) {
  StoredMessage odd = record("A-1");
  odd.message.sent_at = WallTime::min();
  odd.created_at = WallTime::min();
  odd.invisible_until = WallTime::min();
  ASSERT_EQ(put(odd).status, PutStatus::written);
  StoredMessage late = record("A-2");
  late.message.sent_at = WallTime::max();
  late.invisible_until = WallTime::max();
  ASSERT_EQ(put(late).status, PutStatus::written);
  const queue::Change front{.id = "A-2", .action = queue::ChangeAction::move_to_front};
  EXPECT_EQ(store_->change("orders", std::span(&front, 1), Deadline::never())[0].status, queue::ChangeStatus::applied);
  EXPECT_EQ(claim_and_settle(queue::CompletionAction::remove), 2U);
}

}  // namespace
}  // namespace sluice::test
