// An idle job looks at the times of the store's files, and at the store only where they have changed.

#include "host/stores/sqlite/quiet_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>

#include <stdexcept>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using queue::sqlite::QuietFile;

class QuietFileTest : public ::testing::Test {
 protected:
  QuietFile::Moment moment(Duration after = {}) const {
    QuietFile::Moment now;
    now.heard = 7;
    now.version = {1, 1};
    now.wall = WallTime(1'000'000s) + after;
    now.steady = SteadyTime(500s) + after;
    return now;
  }
  /// Whether the answer is still the same, with `change` made to what was.
  template <typename Change>
  bool same_after(Change change) {
    queue::ClaimRequest request;
    QuietFile::Moment now = moment(1s);
    quiet_.looked(request, moment(), {});
    change(request, now);
    return quiet_.same_again(request, now).has_value();
  }
  QuietFile quiet_;
};

TEST_F(QuietFileTest, WhatNothingHasTouchedIsNotLookedAtAgain) {
  EXPECT_FALSE(quiet_.same_again({}, moment())) << "nobody has looked yet";
  EXPECT_TRUE(same_after([](auto&, auto&) {}));
  EXPECT_TRUE(same_after([](auto& request, auto&) { request.max = 40; }));
}

TEST_F(QuietFileTest, AnythingThatAClaimDependsOnHasItLookAgain) {
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.heard = 8; }));
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.version->second = 2; }));
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.version->first = 2; })) << "as another connection has it";
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.version.reset(); }));
  EXPECT_FALSE(same_after([](auto& request, auto&) { request.suspects = false; }));
  EXPECT_FALSE(same_after([](auto& request, auto&) { request.counts = true; }));
  EXPECT_FALSE(same_after([](auto& request, auto&) { request.rules.fair = true; }));
  EXPECT_FALSE(same_after([](auto& request, auto&) { request.max = 0; }));
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.wall -= 2s; })) << "the clock was set back";
  EXPECT_FALSE(same_after([](auto&, auto& now) { now.steady += 10s; })) << "it is believed for a while only";
}

TEST_F(QuietFileTest, AMessageThatComesDueIsLookedFor) {
  quiet_.looked({}, moment(), {.deliveries = {}, .next_due = 3s});
  const auto before = quiet_.same_again({}, moment(2s));
  ASSERT_TRUE(before);
  EXPECT_EQ(before->next_due, 1s);
  EXPECT_FALSE(quiet_.same_again({}, moment(3s)));
  quiet_.looked({}, moment(), {.deliveries = {}, .next_due = 0s});
  EXPECT_FALSE(quiet_.same_again({}, moment())) << "something was passed over";
}

TEST_F(QuietFileTest, OnlyAClaimThatFoundNothingIsRemembered) {
  queue::Claimed one;
  one.deliveries.emplace_back();
  quiet_.looked({}, moment(), {});
  quiet_.looked({}, moment(), one);
  EXPECT_FALSE(quiet_.same_again({}, moment()));
  quiet_.looked({}, moment(), {});
  quiet_.forget();
  EXPECT_FALSE(quiet_.same_again({}, moment()));
  QuietFile::Moment restless = moment();
  restless.version.reset();
  quiet_.looked({}, restless, {});
  EXPECT_FALSE(quiet_.same_again({}, moment()));
}

/// A connection behind the store's back that has the write lock.
class Holder {
 public:
  explicit Holder(const std::string& file) {
    if (sqlite3_open(file.c_str(), &handle_) != SQLITE_OK ||
        sqlite3_exec(handle_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(handle_));
    }
  }
  ~Holder() { sqlite3_close(handle_); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  sqlite3* handle_ = nullptr;
};

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

TEST_F(IdleSourceTest, TakesNoLockWhileNobodyWrites) {
  const auto first = claim(1h);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_GE(first->next_due, 1h);
  clock_.advance(1s);
  const Holder other(file_);
  const auto again = claim(1s);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(again->deliveries.empty());
  EXPECT_EQ(again->next_due, *first->next_due - 1s);
}

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
