// An idle job finds what comes to its queue, whoever put it there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

class IdleSourceTest : public ::testing::Test {
 protected:
  IdleSourceTest() {
    source().start({.on_ready = [] {}});
    send({.id = "later", .body = "x", .delay = 1h});
  }
  queue::Source& source() { return store_->source({"orders"}); }
  void send(const queue::NewMessage& message) {
    ASSERT_EQ(store_->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  }
  Result<queue::Claimed> claim(Duration patience) {
    return source().claim({.max = 5, .visibility = 30s}, Deadline::after(clock_, patience));
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_ = open_store(file_, clock_, random_);
};

TEST_F(IdleSourceTest, FindsWhatSomebodyWroteWhoRangNoBell) {
  ASSERT_TRUE(claim(1h));
  raw_sql(file_, "UPDATE sluice_deliveries SET until = 1, sent_at = 1; UPDATE sluice_messages SET sent_at = 1");
  const auto found = claim(1h);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->deliveries.size(), 1U);
}

TEST_F(IdleSourceTest, FindsWhatComesDue) {
  ASSERT_TRUE(claim(2h));
  clock_.advance(9s);
  EXPECT_TRUE(claim(2h)->deliveries.empty());
  clock_.advance(1h);
  EXPECT_EQ(claim(2h)->deliveries.size(), 1U);
}

TEST_F(IdleSourceTest, ACheckpointMakesNoRoomInFlight) {
  send({.id = "a", .body = "x"});
  send({.id = "b", .body = "x"});
  std::atomic<int> woken{0};
  const auto held_back = *store_->queues().open_source({"orders"});
  held_back->start({.on_ready = [&woken] { ++woken; }});
  const queue::ClaimRequest limited{.max = 5, .visibility = 30s, .rules = {.max_in_flight = 1}};
  const auto held = held_back->claim(limited, Deadline::never());
  ASSERT_TRUE(held) << held.error().message();
  ASSERT_EQ(held->deliveries.size(), 1U);
  ASSERT_FALSE(held_back->claim(limited, Deadline::never()));
  const int before = woken;
  queue::Receipt receipt = held->deliveries[0].receipt;
  const auto stored = held_back->checkpoint(receipt, "half", nullptr, Deadline::never());
  ASSERT_EQ(stored.status, queue::SettleStatus::applied) << stored.error.message();
  EXPECT_EQ(woken, before);
  receipt.version = stored.version;
  const queue::Completion done{.receipt = receipt};
  ASSERT_EQ(held_back->settle({&done, 1}, Deadline::never()).front().status, queue::SettleStatus::applied);
  EXPECT_GT(woken, before);
}

TEST_F(IdleSourceTest, ALogThatWasTakenAwayIsNoticed) {
  ASSERT_TRUE(claim(1h));
  std::filesystem::rename(file_ + "-wal", file_ + "-elsewhere");
  const auto found = claim(1h);
  std::filesystem::rename(file_ + "-elsewhere", file_ + "-wal");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(), ::testing::HasSubstr("was removed or replaced"));
}

}  // namespace
}  // namespace sluice::test
