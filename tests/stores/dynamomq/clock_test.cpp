// Hosts whose wall clocks are wrong, and what DynamoDB's answers tell them.

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using queue::CompletionAction;
using queue::SettleStatus;

/// A host with a clock of its own, beside those that are right.
class WrongClock : public StoreOnEmulator {
 protected:
  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      host().faults().tell_time(&clock());
    }
  }
  EmulatedHost& wrong_host(Duration ahead) {
    wrong_clock_.set_wall(clock().wall_now() + ahead);
    wrong_clock_.set_steady(clock().steady_now());
    queue::dynamomq::DynamoMqOptions options;
    options.queues["orders"].table = table();
    options.warn = [this](const std::string& text) { warnings_.push_back(text); };
    wrong_ = std::make_unique<EmulatedHost>(wrong_clock_, "worker-w", 9, options);
    wrong_->faults().tell_time(&clock());
    return *wrong_;
  }
  void pass_time(Duration span) {
    clock().advance(span);
    wrong_clock_.advance(span);
  }

  FakeClock wrong_clock_;
  std::vector<std::string> warnings_;

 private:
  std::unique_ptr<EmulatedHost> wrong_;
};

TEST_F(WrongClock, AheadTakesNothingThatIsHeld) {
  send(42);
  ASSERT_EQ(claim(42).size(), 42U);
  auto& ahead = wrong_host(1h);
  EXPECT_TRUE(claim(ahead.desk(), 100).empty()) << "its neighbour's live leases";
}

TEST_F(WrongClock, AheadHidesNothingLongerThanItMay) {
  send(3);
  auto& ahead = wrong_host(1h);
  ASSERT_EQ(claim(ahead.desk(), 3, 30s).size(), 3U);
  pass_time(32s);
  std::size_t back = 0;
  while (!claim(1).empty()) {
    ++back;
  }
  EXPECT_EQ(back, 3U) << "it has died, and its leases are over";
}

TEST_F(WrongClock, AheadSendsWhatIsDueAtOnce) {
  auto& ahead = wrong_host(1h);
  const queue::NewMessage message{.id = "x", .body = "x"};
  ASSERT_EQ(ahead.desk().send("orders", std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
  pass_time(1s);
  EXPECT_EQ(claim(1).size(), 1U);
}

TEST_F(WrongClock, BehindSettlesAndRetriesInTime) {
  send(1);
  auto& behind = wrong_host(-1h);
  const auto claims = claim(behind.desk(), 1);
  ASSERT_EQ(claims.size(), 1U);
  EXPECT_TRUE(claim(1).empty());
  ASSERT_EQ(applied(settle(behind.desk(), claims, CompletionAction::retry, 10s)), 1U);
  EXPECT_TRUE(claim(1).empty());
  pass_time(12s);
  EXPECT_EQ(claim(1).size(), 1U);
}

TEST_F(WrongClock, IsWarnedAboutOnce) {
  send(2);
  auto& ahead = wrong_host(1h);
  claim(ahead.desk(), 1);
  claim(ahead.desk(), 1);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0],
              ::testing::HasSubstr("ahead of DynamoDB's: it says 2026-01-02T04:04:05Z at 2026-01-02T03:04:0"));
}

TEST_F(WrongClock, ThatJumpsIsAskedAboutBeforeAnythingIsWritten) {
  send(4);
  auto& jumping = wrong_host(0s);
  const auto held = claim(jumping.desk(), 1);
  ASSERT_EQ(held.size(), 1U);
  wrong_clock_.set_wall(wrong_clock_.wall_now() + 1h);
  const auto more = claim(jumping.desk(), 10);
  EXPECT_EQ(more.size(), 3U);
  EXPECT_EQ(ids_of(more).count(held[0].message.id), 0U) << "its own, still held";
  pass_time(32s);
  EXPECT_FALSE(claim(1).empty());
}

TEST_F(WrongClock, ThatNobodyCanPutRightRefusesToWork) {
  send(1);
  auto& lost = wrong_host(0s);
  FakeClock other(clock().wall_now() + 3h);
  lost.faults().tell_time(&other);
  ASSERT_TRUE(lost.desk().stats(standard(), soon()));
  bool ahead = true;
  lost.faults().choose([&](const std::string&, const std::string&) {
    ahead = !ahead;  // two servers that disagree, one after the other
    lost.faults().tell_time(ahead ? &other : &clock());
    return HttpFault::none;
  });
  const auto claims = lost.desk().claim(standard(), 1, 30s, soon());
  ASSERT_FALSE(claims);
  EXPECT_EQ(claims.error().code(), ErrorCode::unavailable);
  EXPECT_THAT(claims.error().message(), ::testing::HasSubstr("the time is not known to within 15 s"));
  EXPECT_THAT(claims.error().message(), ::testing::HasSubstr("this machine's clock says 2026-01-02T03:04:05Z"));
  lost.faults().choose({});
  lost.faults().tell_time(&clock());
  for (int poll = 0; poll < 3; ++poll) {
    lost.desk().stats(standard(), soon());
  }
  EXPECT_TRUE(lost.desk().claim(standard(), 1, 30s, soon()));
}

}  // namespace
}  // namespace sluice::test
