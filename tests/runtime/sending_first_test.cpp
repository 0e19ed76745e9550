// Completions of a source that shares no transaction with the queues they send to.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "host/queue/effects.hpp"
#include "host/stores/emit_source.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_source.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::SendResult;
using queue::SettleStatus;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

/// Rows whose marks may get lost, and which say in which order their messages go.
class Rows final : public ForwardingSource {
 public:
  Rows(std::unique_ptr<queue::Source> source, const bool& loses_marks, std::optional<queue::SendOrder>& order,
       std::size_t& handled)
      : ForwardingSource(std::move(source)), loses_marks_(loses_marks), order_(order), handled_(handled) {}
  queue::SendOrder send_order(std::span<const queue::Receipt> receipts) override {
    return order_ ? *order_ : ForwardingSource::send_order(receipts);
  }
  void handled(std::span<const queue::Receipt> receipts) override { handled_ += receipts.size(); }
  std::vector<queue::SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    EXPECT_TRUE(
        std::none_of(completions.begin(), completions.end(), [](const auto& one) { return one.effects != nullptr; }));
    const queue::SettleResult lost{SettleStatus::failed, Error(ErrorCode::unavailable, "the database is gone")};
    return loses_marks_ ? std::vector(completions.size(), lost) : ForwardingSource::settle(completions, deadline);
  }

 private:
  const bool& loses_marks_;
  std::optional<queue::SendOrder>& order_;
  std::size_t& handled_;
};

/// A queue that takes nothing, for one reason.
class ClosedSender final : public queue::Sender {
 public:
  ClosedSender(Error why, Deadline& asked_until) : why_(std::move(why)), asked_until_(asked_until) {}
  std::vector<SendResult> send(std::span<const queue::NewMessage> messages, Deadline deadline) override {
    asked_until_ = deadline;
    return {messages.size(), SendResult{queue::SendStatus::failed, {}, why_}};
  }

 private:
  const Error why_;
  Deadline& asked_until_;
};

class SendingFirstTest : public ::testing::Test {
 protected:
  SendingFirstTest() {
    source_ = queue::sending_first(
        std::make_unique<Rows>(*queues_.open_source({"rows"}), loses_marks_, order_, handled_),
        [this](const std::string& to) -> Result<std::unique_ptr<queue::Sender>> {
          const auto closed = closed_.find(to);
          if (closed != closed_.end() && closed->second.code() == ErrorCode::not_found) {
            return closed->second;
          }
          if (closed != closed_.end()) {
            return std::make_unique<ClosedSender>(closed->second, asked_until_);
          }
          return queues_.open_sender(to);
        },
        clock_, [this](const std::string& warning) { warnings_.push_back(warning); });
  }

  /// Claims a new row, whose handler sends to these queues.
  Completion row(const std::string& name, const std::vector<std::string>& queues) {
    const queue::NewMessage message{.body = name};
    (*queues_.open_sender("rows"))->send({&message, 1}, Deadline::never());
    const auto claimed = source_->claim({.max = 1, .visibility = 30s}, Deadline::never());
    EXPECT_TRUE(claimed && claimed->deliveries.size() == 1);
    auto effects = std::make_shared<queue::Effects>();
    for (const std::string& queue : queues) {
      effects->messages.push_back(
          {queue, {.id = "made-" + name + queue, .body = name, .group = "g", .dedup_id = "table/" + name}, true});
    }
    return {.receipt = claimed->deliveries.at(0).receipt, .effects = std::move(effects)};
  }
  std::vector<queue::SettleResult> settle(const std::vector<Completion>& completions) {
    return source_->settle(completions, Deadline::after(clock_, 10s));
  }
  std::vector<std::string> lying_in(const std::string& queue) {
    std::vector<std::string> bodies;
    const auto page = (*queues_.open_operator(queue))->list({}, Deadline::never());
    for (const auto& message : page->messages) {
      bodies.push_back(message.message.body);
    }
    return bodies;
  }

  FakeClock clock_;
  SeededRandom random_{1};
  SimQueues queues_{clock_, random_};
  bool loses_marks_ = false;
  std::optional<queue::SendOrder> order_;
  std::size_t handled_ = 0;
  std::vector<std::string> warnings_;
  std::map<std::string, Error> closed_;
  Deadline asked_until_ = Deadline::never();
  std::unique_ptr<queue::Source> source_;
};

TEST_F(SendingFirstTest, MessagesAreThereWhenTheirRowsAreMarked) {
  const Completion none{.receipt = row("0", {}).receipt};
  const auto results = settle({row("1", {"mail", "bills"}), none, row("2", {"mail"})});
  for (const auto& result : results) {
    EXPECT_EQ(result.status, SettleStatus::applied) << result.error.message();
  }
  EXPECT_THAT(lying_in("mail"), ElementsAre("1", "2"));
  EXPECT_THAT(lying_in("bills"), ElementsAre("1"));
  EXPECT_THAT(lying_in("rows"), ElementsAre());
}

TEST_F(SendingFirstTest, ARowWhoseMarkIsLostIsSentAgainAndStoredOnce) {
  const std::vector<Completion> both{row("1", {"mail"}), row("2", {"mail"})};
  loses_marks_ = true;
  EXPECT_EQ(settle(both).at(1).status, SettleStatus::failed);
  loses_marks_ = false;
  EXPECT_EQ(settle(both).at(1).status, SettleStatus::applied);
  EXPECT_THAT(lying_in("mail"), ElementsAre("1", "2"));
}

TEST_F(SendingFirstTest, ARowThatNothingIsSaidOfHasFailed) {
  const std::vector<Completion> both{row("1", {"mail"}), row("2", {"mail"})};
  source_ = queue::sending_first(std::make_unique<MuteSource>(*queues_.open_source({"rows"})),
                                 [this](const std::string& to) { return queues_.open_sender(to); }, clock_, {});
  const auto results = settle(both);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].status, SettleStatus::failed);
  EXPECT_EQ(results[1].error.code(), ErrorCode::internal);
}

TEST_F(SendingFirstTest, MessagesGoInTheOrderOfTheirSourceAndTheirRowsAreHandled) {
  const std::vector<Completion> all{row("3", {"mail"}), row("9", {"mail"}), row("1", {"mail"}), row("2", {"mail"}),
                                    row("4", {"mail"})};
  order_ = queue::SendOrder{.now = {{2, 3, 0}}, .never = {1}};
  const auto results = settle(all);
  EXPECT_THAT(lying_in("mail"), ElementsAre("1", "2", "3"));
  EXPECT_EQ(handled_, 3U);
  EXPECT_THAT(lying_in("rows"), ElementsAre("9", "4"));
  EXPECT_EQ(results.at(1).status, SettleStatus::refused);
  EXPECT_EQ(results.at(1).wait, Duration::zero()) << "no attempt counts";
  EXPECT_EQ(results.at(4).status, SettleStatus::failed);
  EXPECT_TRUE(results.at(4).left);
  EXPECT_GT(results.at(4).wait, Duration::zero()) << "it is not asked for over and over";
}

TEST_F(SendingFirstTest, BehindARowThatCouldNotBeSentNoneOfItsGroupGoesToAnyQueue) {
  closed_.emplace("full", Error(ErrorCode::unavailable, "no answer"));
  const std::vector<Completion> all{row("1", {"mail"}), row("2", {"full"}), row("3", {"mail"}), row("4", {"bills"}),
                                    row("5", {"mail"})};
  order_ = queue::SendOrder{.now = {{0, 1, 2, 3}, {4}}, .never = {}};
  const auto results = settle(all);
  EXPECT_THAT(lying_in("mail"), ElementsAre("1", "5"));
  EXPECT_TRUE(lying_in("bills").empty());
  EXPECT_EQ(handled_, 2U);
  EXPECT_EQ(results.at(1).status, SettleStatus::failed);
  EXPECT_FALSE(results.at(1).left);
  EXPECT_TRUE(results.at(2).left);
  EXPECT_TRUE(results.at(3).left);
}

TEST_F(SendingFirstTest, WhereARowGoesToSeveralQueuesThoseBehindItGoOnceItHasGoneToAll) {
  closed_.emplace("gone", Error(ErrorCode::queue_missing, "no table"));
  const std::vector<Completion> all{row("1", {"mail", "gone"}), row("2", {"mail", "gone"})};
  order_ = queue::SendOrder{.now = {{0, 1}}, .never = {}};
  const auto results = settle(all);
  EXPECT_THAT(lying_in("mail"), ElementsAre("1")) << "what waits is not sent over and over";
  EXPECT_TRUE(results.at(0).wait);
  EXPECT_TRUE(results.at(1).left);
}

TEST_F(SendingFirstTest, WhatFollowsARefusedMessageInItsGroupIsLeft) {
  Completion large = row("1", {"mail"});
  auto effects = std::make_shared<queue::Effects>(*large.effects);
  effects->messages.at(0).message.body.resize(std::size_t{1} << 20U);
  large.effects = effects;
  order_ = queue::SendOrder{.now = {{0, 1}}, .never = {}};
  const auto results = settle({large, row("2", {"mail"})});
  EXPECT_EQ(results.at(0).status, SettleStatus::refused);
  EXPECT_TRUE(results.at(1).left);
  EXPECT_TRUE(lying_in("mail").empty());
  EXPECT_EQ(handled_, 0U);
}

TEST_F(SendingFirstTest, AQueueThatDoesNotAnswerIsWaitedForAndTheOthersGoOn) {
  closed_.emplace("mail", Error(ErrorCode::unavailable, "no answer"));
  const Completion waiting = row("1", {"bills", "mail"});
  auto results = settle({waiting, row("2", {"bills"})});
  EXPECT_EQ(results.at(0).status, SettleStatus::failed);
  EXPECT_THAT(results.at(0).error.message(), HasSubstr("to queue mail could not be sent: no answer"));
  EXPECT_EQ(results.at(1).status, SettleStatus::applied);
  EXPECT_EQ(asked_until_.left(clock_.steady_now()), 5s) << "the rest is for the marks";
}

TEST_F(SendingFirstTest, OfARowWhoseMessageIsInDoubtNothingIsWritten) {
  closed_.emplace("mail", Error(ErrorCode::unknown_outcome, "no answer"));
  const auto results = settle({row("1", {"mail"})});
  EXPECT_EQ(results.at(0).status, SettleStatus::failed);
  EXPECT_EQ(results.at(0).error.code(), ErrorCode::unavailable) << "which is no doubt about the row";
}

TEST_F(SendingFirstTest, WhatAQueueWillNeverTakeIsThePolicysAffair) {
  closed_.emplace("mail", Error(ErrorCode::invalid, "too large"));
  const auto results = settle({row("1", {"mail"})});
  EXPECT_EQ(results.at(0).status, SettleStatus::refused);
  EXPECT_EQ(results.at(0).wait, std::nullopt);
  EXPECT_EQ(lying_in("rows").size(), 1U) << "it is as it was";
}

TEST_F(SendingFirstTest, WhatWaitsForOneQueueGoesToNoOther) {
  closed_.emplace("mials", Error(ErrorCode::not_found, "nobody knows it"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(settle({row(std::to_string(i), {"bills", "mials"})}).at(0).wait);
  }
  EXPECT_TRUE(lying_in("bills").empty());
}

TEST_F(SendingFirstTest, AQueueThatIsNotThereIsWaitedForAndNoAttemptCounts) {
  closed_.emplace("mials", Error(ErrorCode::not_found, "nobody knows it"));
  closed_.emplace("bills", Error(ErrorCode::queue_missing, "no table"));
  const std::vector<Completion> all{row("1", {"mials"}), row("2", {"bills"}), row("3", {"mials"}), row("4", {"mail"})};
  for (int i = 0; i < 2; ++i) {
    const auto results = settle({all[0], all[1], all[2]});
    EXPECT_THAT(results, Each(AllOf(Field(&queue::SettleResult::status, SettleStatus::refused),
                                    Field(&queue::SettleResult::wait, Duration(5s)))));
  }
  EXPECT_EQ(settle({all[3]}).at(0).status, SettleStatus::applied) << "the others go on";
  EXPECT_EQ(warnings_.size(), 2U) << "each queue once";
  EXPECT_THAT(warnings_, Contains("messages to queue mials wait, and no attempt is counted: nobody knows it"));
  clock_.advance(10min);
  settle({all[0]});
  EXPECT_EQ(warnings_.size(), 3U);
}

}  // namespace
}  // namespace sluice::test
