// In which order a producer's messages of a group come to lie there.

#include <map>
#include <set>

#include "tests/stores/leased/leased_rig.hpp"

namespace sluice::queue::leased {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using ::testing::Each;
using ::testing::HasSubstr;

class SenderOrder : public LeasedRig {
 public:
  SenderOrder() {
    model_.observe(
        [this](const std::string&, const std::string&, const dynamo::Item* before, const dynamo::Item* after) {
          if (before == nullptr && after != nullptr && parse_partition(Place::of(*after).partition)) {
            put_[state_of(*after).group].push_back(id_of(*after));
          }
        });
  }
  ~SenderOrder() override { model_.observe({}); }

  std::vector<SendResult> send_all(std::vector<NewMessage> messages) { return sender_->send(messages, soon()); }

  std::map<std::string, std::vector<std::string>> put_;  ///< ids by group, as they came to lie there
};

TEST_F(SenderOrder, WhateverIsRefusedOnTheWayTheMessagesOfAGroupArePutOneAfterTheOther) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    put_.clear();
    std::vector<NewMessage> messages;
    for (int i = 0; i < 90; ++i) {
      NewMessage message{.body = "x", .group = i % 9 == 8 ? "" : "g" + std::to_string(i % 4)};
      message.id = i % 10 == 7 ? "own " + std::to_string(seed) + " " + std::to_string(i) : std::string();
      message.dedup_id = i % 10 == 3 ? "once " + std::to_string(seed) + " " + std::to_string(i) : std::string();
      messages.push_back(std::move(message));
    }
    test::model::ModelSettings settings;
    settings.faults.part_throttle = 0.1;
    settings.faults.part_error = 0.05;
    settings.faults.throttle = 0.05;
    model_.configure(settings);
    const auto results = send_all(messages);
    model_.configure({});
    std::map<std::string, std::vector<std::string>> expected;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (results[i].status == SendStatus::sent) {
        expected[messages[i].group].push_back(results[i].id);
      }
    }
    for (const char* group : {"g0", "g1", "g2", "g3"}) {
      EXPECT_EQ(put_[group], expected[group]) << group << ", seed " << seed;
    }
    clock_.advance(1s);
  }
}

TEST_F(SenderOrder, BehindAMessageThatCouldNotBeStoredNoneOfItsGroupIsStored) {
  model_.inject(
      test::model::Fault::throttle,
      [](const std::string& operation, const std::string&) { return operation == "BatchExecuteStatement"; }, 1'000);
  const auto results =
      send_all({{.body = "1", .group = "g"}, {.body = "2", .group = "g"}, {.body = "3", .group = "g"}});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_THAT(results, Each(::testing::Field(&SendResult::status, SendStatus::failed)));
  EXPECT_EQ(results[1].error.code(), ErrorCode::unavailable);
  EXPECT_THAT(results[2].error.message(), HasSubstr("the message before it in its group"));
  EXPECT_TRUE(put_.empty());
}

TEST_F(SenderOrder, AThrottledShardHoldsUpNobodyElse) {
  test::model::ModelSettings settings;
  settings.limits.partition_write = 100;
  model_.configure(settings);
  // All that the group's shard takes in a second.
  const auto group = send_all(std::vector<NewMessage>(100, {.body = "x", .group = "g"}));
  EXPECT_THAT(group, Each(::testing::Field(&SendResult::status, SendStatus::sent)));
  const SteadyTime begun = clock_.steady_now();
  const auto results = send_all(std::vector<NewMessage>(70, {.body = "x"}));
  EXPECT_THAT(results, Each(::testing::Field(&SendResult::status, SendStatus::sent)));
  EXPECT_LT(clock_.steady_now() - begun, 50ms) << "nobody has waited";
  std::set<std::string> ids;
  for (const SendResult& result : results) {
    ids.insert(result.id);
  }
  EXPECT_EQ(ids, std::set<std::string>(put_[""].begin(), put_[""].end())) << "each is known by where it lies";
}

TEST_F(SenderOrder, WhoIsThrottledWithAKeyIsToldSo) {
  model_.inject(
      test::model::Fault::throttle,
      [](const std::string& operation, const std::string&) { return operation == "TransactWriteItems"; }, 1'000);
  const SendResult result = send_all({{.body = "x", .dedup_id = "once"}}).front();
  EXPECT_EQ(result.status, SendStatus::failed);
  EXPECT_EQ(result.error.code(), ErrorCode::throttled);
  EXPECT_THAT(result.error.message(), HasSubstr("is throttled")) << "and not that others write the same key";
}

TEST_F(SenderOrder, AMessageWhoseIdSaysWhereItLiesGoesToNoOtherShard) {
  test::model::ModelSettings settings;
  settings.limits.partition_write = 100;
  model_.configure(settings);
  // All that the group's shard takes in a second.
  send_all(std::vector<NewMessage>(100, {.body = "x", .group = "g"}));
  const auto moment = sender_->moment(soon());
  ASSERT_TRUE(moment);
  std::vector<NewMessage> messages(70, {.body = "x"});
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].id = sender_->id_at(*moment, "sending", i, messages[i]).value();
  }
  const auto results = sender_->send_fresh(messages, soon());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(results[i].id, messages[i].id);
  }
  // Whoever sends all of it again finds what is there.
  clock_.advance(5s);
  const auto again = send_all(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(again[i].status, results[i].status == SendStatus::sent ? SendStatus::duplicate_id : SendStatus::sent);
  }
  EXPECT_EQ(put_[""].size(), messages.size());
}

TEST_F(SenderOrder, AMessageThatCanNeverBeStoredHoldsUpNobody) {
  const auto results = send_all({{.body = std::string(500'000, 'x'), .group = "g"}, {.body = "2", .group = "g"}});
  EXPECT_EQ(results[0].status, SendStatus::failed);
  EXPECT_EQ(results[1].status, SendStatus::sent);
}

TEST_F(SenderOrder, StampsNeverGoBackWhereTheClockDoes) {
  std::string last = send({.body = "x", .group = "g"});
  for (const Duration back : {Duration(1ms), Duration(400ms), Duration(900ms)}) {
    clock_.set_wall(clock_.wall_now() - back);
    for (int i = 0; i < 3; ++i) {
      const std::string next = send({.body = "x", .group = "g"});
      EXPECT_LT(last, next) << back / 1ms << " ms back";
      last = next;
    }
    const auto moment = sender_->moment(soon());
    ASSERT_TRUE(moment);
    const auto id = sender_->id_at(*moment, "sending", 1, {.body = "x", .group = "g"});
    ASSERT_TRUE(id);
    EXPECT_LT(last, *id);
    last = send({.body = "x", .group = "g"});
    EXPECT_LT(*id, last);
  }
}

TEST_F(SenderOrder, WithinAMillisecondTheyFollowEachOther) {
  const auto results = send_all(std::vector<NewMessage>(200, {.body = "x", .group = "g"}));
  for (std::size_t i = 1; i < results.size(); ++i) {
    ASSERT_LT(results[i - 1].id, results[i].id);
  }
}

}  // namespace
}  // namespace sluice::queue::leased
