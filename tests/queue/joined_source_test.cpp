// Several sources as one: turns by weight, receipts that find their source, and what one failing source means.

#include "host/queue/joined_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/forwarding_source.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::CompletionAction;
using queue::Delivery;
using queue::JoinedSource;
using std::chrono_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class JoinedSourceTest : public ::testing::Test {
 protected:
  JoinedSourceTest() {
    std::vector<JoinedSource::Part> parts;
    parts.push_back({*queues_.open_source({"urgent"}), 6, 30s, 0});
    parts.push_back({*queues_.open_source({"bulk"}), 3, 60s, 0});
    joined_ = std::make_unique<JoinedSource>(std::move(parts));
  }

  void send(const std::string& queue, std::size_t count) {
    std::vector<queue::NewMessage> messages(count);
    for (auto& message : messages) {
      message.body = queue;
    }
    for (const auto& sent : desk_.send(queue, messages, Deadline::never())) {
      EXPECT_EQ(sent.status, queue::SendStatus::sent);
    }
  }
  std::vector<Delivery> claim(std::size_t max) {
    auto claimed = joined_->claim({.max = max, .visibility = 1s}, Deadline::never());
    EXPECT_TRUE(claimed) << claimed.error().message();
    return claimed ? std::move(claimed->deliveries) : std::vector<Delivery>();
  }
  static std::size_t of(const std::vector<Delivery>& deliveries, const std::string& body) {
    return static_cast<std::size_t>(std::count_if(
        deliveries.begin(), deliveries.end(), [&](const Delivery& delivery) { return delivery.message.body == body; }));
  }

  FakeClock clock_;
  SeededRandom random_{1};
  SimQueues queues_{clock_, random_};
  Desk desk_{queues_};
  std::unique_ptr<JoinedSource> joined_;
};

TEST_F(JoinedSourceTest, TellsWhatEachSourceFoundOfItsOwnIds) {
  send("urgent", 1);
  send("bulk", 1);
  auto effects = std::make_shared<queue::Effects>();
  effects->key = queue::KeyRecord{.job = "pay", .key = {}, .ttl = 60s, .own_id = true};
  const auto first = claim(1);
  ASSERT_THAT(first, SizeIs(1));
  const std::string& queue = first[0].message.body;
  const Completion done{.receipt = first[0].receipt, .effects = effects};
  ASSERT_EQ(joined_->settle({&done, 1}, Deadline::never())[0].status, queue::SettleStatus::applied);
  // The same id in both queues: in one of them it is done.
  for (const char* to : {"urgent", "bulk"}) {
    const queue::NewMessage again{.id = first[0].message.id, .body = to};
    desk_.send(to, {&again, 1}, Deadline::never());
  }
  const auto claimed = joined_->claim({.max = 10, .visibility = 1s, .own_ids_of = "pay"}, Deadline::never());
  ASSERT_TRUE(claimed);
  ASSERT_THAT(claimed->deliveries, SizeIs(3));
  for (const Delivery& delivery : claimed->deliveries) {
    EXPECT_TRUE(delivery.own_id.asked);
    EXPECT_EQ(delivery.own_id.done != nullptr,
              delivery.message.id == first[0].message.id && delivery.message.body == queue);
  }
}

TEST_F(JoinedSourceTest, GivesTurnsByWeightInBatchesAndOneByOne) {
  send("urgent", 100);
  send("bulk", 100);
  const auto batch = claim(9);
  EXPECT_EQ(of(batch, "urgent"), 6U);
  EXPECT_EQ(of(batch, "bulk"), 3U);
  std::size_t bulk = 0;
  for (int i = 0; i < 9; ++i) {
    bulk += of(claim(1), "bulk");
  }
  EXPECT_EQ(bulk, 3U) << "none starves, however little is claimed at once";
}

TEST_F(JoinedSourceTest, GivesWhatOneLeavesToTheOthers) {
  send("bulk", 20);
  EXPECT_THAT(claim(9), SizeIs(9));
  send("urgent", 2);
  const auto both = claim(9);
  EXPECT_EQ(of(both, "urgent"), 2U);
  EXPECT_EQ(of(both, "bulk"), 7U);
  EXPECT_THAT(claim(9), SizeIs(4));
}

TEST_F(JoinedSourceTest, SettlesAndExtendsWhereAMessageIsFrom) {
  send("urgent", 2);
  send("bulk", 2);
  const auto held = claim(4);
  ASSERT_THAT(held, SizeIs(4));
  std::vector<queue::Receipt> receipts;
  for (const Delivery& delivery : held) {
    EXPECT_EQ(delivery.receipt.part, delivery.message.body == "urgent" ? 0 : 1);
    EXPECT_EQ(delivery.leased_until - clock_.steady_now(), delivery.message.body == "urgent" ? 30s : 60s)
        << "each queue has a visibility timeout of its own";
    receipts.push_back(delivery.receipt);
  }
  clock_.advance(5s);
  std::vector<Completion> done;
  const auto extended = joined_->extend(receipts, 1s, Deadline::never());
  for (std::size_t i = 0; i < extended.size(); ++i) {
    ASSERT_EQ(extended[i].status, queue::SettleStatus::applied);
    EXPECT_EQ(extended[i].receipt.part, receipts[i].part);
    EXPECT_EQ(extended[i].leased_until - clock_.steady_now(), receipts[i].part == 0 ? 30s : 60s);
    done.push_back({.receipt = extended[i].receipt});
  }
  for (const auto& result : joined_->settle(done, Deadline::never())) {
    EXPECT_EQ(result.status, queue::SettleStatus::applied);
  }
  EXPECT_THAT(claim(9), SizeIs(0));
}

TEST_F(JoinedSourceTest, ASuspectIsAlone) {
  send("urgent", 1);
  ASSERT_THAT(claim(1), SizeIs(1));
  clock_.advance(120s);
  send("bulk", 3);
  std::size_t seen = 0;
  for (int i = 0; i < 6; ++i) {
    const auto some = claim(9);
    seen += some.size();
    for (const Delivery& delivery : some) {
      EXPECT_TRUE(!delivery.suspect || some.size() == 1);
    }
  }
  EXPECT_EQ(seen, 4U);
}

TEST_F(JoinedSourceTest, FailsOnlyWhenItBringsNothing) {
  send("bulk", 1);
  queues_.fail_next(StoreCall::claim, 1, Error(ErrorCode::throttled, "slow down"));
  EXPECT_THAT(claim(1), SizeIs(1)) << "the other one is asked as well";
  queues_.fail_next(StoreCall::claim, 1, Error(ErrorCode::throttled, "slow down"));
  const auto nothing = joined_->claim({.max = 1}, Deadline::never());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), ErrorCode::throttled);
}

TEST_F(JoinedSourceTest, AFullQueueHidesNoFailureOfAnotherOne) {
  queues_.fail_next(StoreCall::claim, 1, Error(ErrorCode::unavailable, "no way to the table"));
  queues_.fail_next(StoreCall::claim, 1, queue::in_flight_limit("bulk", 5));
  const auto nothing = joined_->claim({.max = 1}, Deadline::never());
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), ErrorCode::unavailable);
}

TEST_F(JoinedSourceTest, WakesForEachQueueAndCanWhatAllCan) {
  int woken = 0;
  joined_->start({.on_ready = [&woken] { ++woken; }, .lost = {}});
  send("urgent", 1);
  send("bulk", 1);
  EXPECT_EQ(woken, 2);
  joined_->stop();
  send("bulk", 1);
  EXPECT_EQ(woken, 2);
  EXPECT_TRUE(joined_->traits().groups);
  EXPECT_TRUE(joined_->traits().transactions);
}

TEST_F(JoinedSourceTest, ACheckpointGoesToThePartThatTheMessageIsOf) {
  send("bulk", 1);
  auto claimed = joined_->claim({.max = 1, .visibility = 30s}, Deadline::never());
  ASSERT_EQ(claimed->deliveries.size(), 1U);
  queue::Receipt receipt = claimed->deliveries[0].receipt;
  const queue::SettleResult stored = joined_->checkpoint(receipt, "half", nullptr, Deadline::never());
  ASSERT_EQ(stored.status, queue::SettleStatus::applied) << stored.error.message();
  receipt.version = stored.version;
  const Completion done{.receipt = receipt};
  EXPECT_EQ(joined_->settle(std::span(&done, 1), Deadline::never())[0].status, queue::SettleStatus::applied);
}

TEST_F(JoinedSourceTest, WhatASourceGivesNoResultForIsNotLost) {
  std::vector<JoinedSource::Part> parts;
  parts.push_back({std::make_unique<MuteSource>(*queues_.open_source({"urgent"})), 1, 30s, 0});
  JoinedSource joined(std::move(parts));
  const queue::Receipt receipt{.id = "a", .version = 1};
  const Completion done{.receipt = receipt};
  EXPECT_EQ(joined.settle(std::span(&done, 1), Deadline::never()).at(0).status, queue::SettleStatus::failed);
  EXPECT_EQ(joined.extend(std::span(&receipt, 1), 30s, Deadline::never()).at(0).status, queue::SettleStatus::failed);
}

/// As an outbox: its records have no room for progress.
class RoomlessSource final : public queue::Source {
 public:
  const queue::SourceTraits& traits() const override {
    static constexpr queue::SourceTraits kTraits{};
    return kTraits;
  }
  void start(queue::SourceEvents) override {}
  void stop() override {}
  Result<queue::Claimed> claim(const queue::ClaimRequest&, Deadline) override { return queue::Claimed{}; }
  std::vector<queue::SettleResult> settle(std::span<const Completion> completions, Deadline) override {
    ADD_FAILURE() << "it is not asked";
    return {completions.size(), queue::SettleResult{}};
  }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt>, Duration, Deadline) override { return {}; }
};

TEST(SourceCheckpoint, IsRefusedWhereThereIsNoRoomForOne) {
  std::vector<JoinedSource::Part> parts;
  parts.push_back({std::make_unique<RoomlessSource>()});
  JoinedSource joined(std::move(parts));
  const queue::SettleResult refused = joined.checkpoint({}, "half", nullptr, Deadline::never());
  EXPECT_EQ(refused.status, queue::SettleStatus::refused);
  EXPECT_NE(refused.error.message().find("keep progress in a table of your own"), std::string::npos);
}

}  // namespace
}  // namespace sluice::test
