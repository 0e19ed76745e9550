// Messages whose last delivery ended without a word: handed out alone, counted once, and marked until somebody tells.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/stores/core/outcomes.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using queue::Completion;
using queue::CompletionAction;
using ::testing::ElementsAre;

class SuspectsTest : public ::testing::Test {
 public:
  SuspectsTest() : store_(open_store(file_, clock_, random_)) {}
  ~SuspectsTest() override {
    store_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }
  void send(std::initializer_list<const char*> ids) {
    for (const char* id : ids) {
      const queue::NewMessage message{.id = id, .body = "x"};
      ASSERT_EQ(store_->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
    }
  }
  queue::Claimed claim(std::size_t max, bool suspects = true) {
    auto claimed =
        store_->source({"orders"}).claim({.max = max, .visibility = 30s, .suspects = suspects}, Deadline::never());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return std::move(*claimed);
  }
  std::vector<std::string> claimed_ids(std::size_t max, bool suspects = true) {
    std::vector<std::string> ids;
    for (const auto& delivery : claim(max, suspects).deliveries) {
      ids.push_back(delivery.message.id + (delivery.suspect ? "?" : ""));
    }
    return ids;
  }
  void settle(const queue::Delivery& delivery, CompletionAction action, bool suspect) {
    const Completion completion{
        .receipt = delivery.receipt, .action = action, .marks = suspect ? queue::core::kSuspect : 0};
    ASSERT_EQ(store_->settle({"orders"}, std::span(&completion, 1), Deadline::never())[0].status,
              queue::SettleStatus::applied);
  }
  queue::StoredMessage get(const std::string& id) { return *store_->get("orders", id, Deadline::never()); }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

TEST_F(SuspectsTest, EachIsHandedOutAloneAndTheRestTogether) {
  send({"a", "b"});
  ASSERT_EQ(claim(2).deliveries.size(), 2U);
  clock_.advance(31s);
  send({"c", "d"});
  const auto first = claim(10);
  ASSERT_EQ(first.deliveries.size(), 1U);
  EXPECT_TRUE(first.deliveries[0].suspect);
  EXPECT_EQ(first.deliveries[0].message.id, "a");
  EXPECT_EQ(first.next_due, Duration::zero()) << "there is more";
  EXPECT_THAT(claimed_ids(10), ElementsAre("b?"));
  EXPECT_THAT(claimed_ids(10), ElementsAre("c", "d"));
}

TEST_F(SuspectsTest, AreWaitedForByNobodyBehindThem) {
  for (int i = 0; i < 3000; ++i) {
    send({("s" + std::to_string(i)).c_str()});
  }
  ASSERT_EQ(claim(3000).deliveries.size(), 3000U);
  clock_.advance(31s);
  send({"behind"});
  EXPECT_THAT(claimed_ids(5, false), ElementsAre("behind"));
  const auto none = claim(5, false);
  EXPECT_TRUE(none.deliveries.empty());
  EXPECT_EQ(none.next_due, 30s + Duration(1)) << "of the one behind; suspects do not count for who takes none";
  EXPECT_THAT(claimed_ids(5), ElementsAre("s0?"));
}

TEST_F(SuspectsTest, TheFirstSuspectDeliveryTakesThePlaceOfTheUnknownOne) {
  send({"a"});
  ASSERT_EQ(claim(1).deliveries.at(0).message.attempt, 1U);
  clock_.advance(31s);
  EXPECT_EQ(claim(1).deliveries.at(0).message.attempt, 1U);
  EXPECT_EQ(get("a").message.attempt, 1U);
  EXPECT_EQ(get("a").marks, queue::core::kSuspect);
  clock_.advance(31s);
  EXPECT_EQ(claim(1).deliveries.at(0).message.attempt, 2U) << "a start of its own";
  clock_.advance(31s);
  EXPECT_EQ(claim(1).deliveries.at(0).message.attempt, 3U);
}

TEST_F(SuspectsTest, StaysOneWhenItsCompletionSaysSoAndNoneOtherwise) {
  send({"a"});
  for (const auto action : {CompletionAction::retry, CompletionAction::release}) {
    settle(claim(1).deliveries.at(0), action, true);
    EXPECT_EQ(get("a").marks, queue::core::kSuspect);
    EXPECT_THAT(claimed_ids(1), ElementsAre("a?"));
    clock_.advance(31s);
    settle(claim(1).deliveries.at(0), action, false);
    EXPECT_EQ(get("a").marks, 0U);
    EXPECT_THAT(claimed_ids(1), ElementsAre("a"));
    clock_.advance(31s);
  }
}

TEST_F(SuspectsTest, AMarkOutlivesADelay) {
  send({"a"});
  const Completion completion{.receipt = claim(1).deliveries.at(0).receipt,
                              .action = CompletionAction::retry,
                              .delay = 5s,
                              .marks = queue::core::kSuspect};
  ASSERT_EQ(store_->settle({"orders"}, std::span(&completion, 1), Deadline::never())[0].status,
            queue::SettleStatus::applied);
  EXPECT_EQ(claim(1).next_due, 5s + Duration(1));
  clock_.advance(5s + Duration(1));
  const auto again = claim(1);
  ASSERT_EQ(again.deliveries.size(), 1U);
  EXPECT_TRUE(again.deliveries[0].suspect);
  EXPECT_EQ(again.deliveries[0].message.attempt, 2U);
}

TEST_F(SuspectsTest, AreListedCountedAndCopied) {
  send({"a", "b"});
  claim(1);
  clock_.advance(31s);
  ASSERT_THAT(claimed_ids(1, false), ElementsAre("b"));
  const auto stats = store_->stats({"orders"}, Deadline::never());
  EXPECT_EQ(stats->ready, 1U);
  EXPECT_EQ(stats->in_flight, 1U);
  EXPECT_EQ(stats->oldest_ready, get("a").message.sent_at);
  EXPECT_EQ(all_ids(*store_, "orders").size(), 2U);
  queue::StoredMessage copy = get("a");
  copy.message.id = "copy";
  copy.received_at.reset();
  copy.invisible_until.reset();
  copy.marks = queue::core::kSuspect;
  ASSERT_EQ(store_->put("orders", std::span(&copy, 1), queue::PutMode::insert, Deadline::never())[0].status,
            queue::PutStatus::written);
  EXPECT_EQ(get("copy").marks, queue::core::kSuspect);
  EXPECT_THAT(claimed_ids(9), ElementsAre("a?"));
  EXPECT_THAT(claimed_ids(9), ElementsAre("copy?"));
}

TEST_F(SuspectsTest, ARecordThatNobodyCanReadStopsNothing) {
  send({"a", "b"});
  claim(2);
  clock_.advance(31s);
  raw_sql(file_, "UPDATE sluice_messages SET attributes = x'FF00' WHERE id = 'a'");
  EXPECT_THAT(claimed_ids(2), ElementsAre("b?"));
  EXPECT_THAT(get("a").failure.error, ::testing::HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace sluice::test
