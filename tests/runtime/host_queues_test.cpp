// What a host file says of the messages that handlers send in the transaction of a completion.

#include "host/runtime/host_queues.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "host/queue/effects.hpp"
#include "host/runtime/health_report.hpp"
#include "tests/isolation/ledger_rig.hpp"
#include "tests/runtime/job_set_rig.hpp"
#include "tests/support/dynamodb_model/server.hpp"

namespace sluice::runtime {
namespace {

using queue::SettleStatus;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HostQueuesTest : public ::testing::Test {
 protected:
  HostQueuesTest() {
    config_.store.path = folder_.path() + "/default.db";
    config_.stores["archive"].path = folder_.path() + "/archive.db";
    config_.queues["orders"] = {};
    config_.jobs = {folder_.path() + "/*.toml"};
    config_.queues["receipts"].store = "archive";
    config_.queues["notes"].dedup_by_content = true;
  }

  /// Claims a message of queue orders and ends it with a message to that queue.
  queue::SettleResult end_with(const std::string& to, const std::string& body = "x", bool made_id = false) {
    const queue::NewMessage work{.body = "work"};
    (*queues().open_sender("orders"))->send({&work, 1}, Deadline::never());
    const auto source = *queues().open_source({"orders"});
    const auto claimed = source->claim({.max = 1, .visibility = std::chrono::seconds(30)}, Deadline::never());
    EXPECT_TRUE(claimed && claimed->deliveries.size() == 1);
    auto effects = std::make_shared<queue::Effects>();
    effects->messages.push_back({to, {.id = "B-" + std::to_string(++sent_), .body = body}, made_id});
    const queue::Completion done{.receipt = claimed->deliveries.at(0).receipt, .effects = effects};
    return source->settle({&done, 1}, Deadline::never()).front();
  }
  std::uint64_t lying_in(const std::string& queue) {
    return (*queues().open_operator(queue))->stats({}, Deadline::never())->total();
  }
  HostQueues& queues() {
    if (!queues_) {
      queues_.emplace(config_, clock_, random_, nullptr);
    }
    return *queues_;
  }

  isolation::StateFolder folder_;
  config::HostConfig config_;
  SystemClock clock_;
  SeededRandom random_{1};
  std::optional<HostQueues> queues_;
  int sent_ = 0;
};

TEST_F(HostQueuesTest, AMessageToAnotherStoreIsRefusedAndNothingIsCommitted) {
  const auto refused = end_with("receipts");
  EXPECT_EQ(refused.status, SettleStatus::refused);
  EXPECT_FALSE(refused.reject);
  EXPECT_THAT(refused.error.message(),
              AllOf(HasSubstr("message B-1 to queue receipts was refused"), HasSubstr("store \"archive\""),
                    HasSubstr("orders in the default store"), HasSubstr("give [queues.receipts] the store")));
  EXPECT_EQ(lying_in("orders"), 1U) << "it is as it was";
  EXPECT_EQ(lying_in("receipts"), 0U);
  EXPECT_THAT(*queues().made_by_messages_in("", Deadline::never()), ElementsAre("orders"))
      << "a queue of that name was made in the handler's own store";
}

// It made that queue, in which nobody looked for it.
TEST_F(HostQueuesTest, AMessageToAQueueThatNobodyKnowsIsRefusedForGood) {
  const auto refused = end_with("nodes");
  EXPECT_EQ(refused.status, SettleStatus::refused);
  EXPECT_TRUE(refused.reject);
  EXPECT_EQ(
      refused.error.message(),
      "message B-1 to queue nodes was refused: no job, host file or earlier message knows a queue \"nodes\"; did "
      "you mean \"notes\"? a new queue is named by a job or by [queues.nodes] in the host file, or handlers make it "
      "with [queues] create = true");
  EXPECT_EQ(lying_in("orders"), 1U) << "it is as it was";
  EXPECT_THAT(*queues().made_by_messages(Deadline::never()), ElementsAre("orders"));
  EXPECT_THAT(end_with("nodes", "x", true).error.message(), StartsWith("the message to queue nodes was refused: "))
      << "an id that the host made up says nothing";
}

TEST_F(HostQueuesTest, AQueueThatAWrongJobFileMayNameIsNotRefused) {
  std::filesystem::create_directories(folder_.path());
  std::ofstream(folder_.path() + "/mails.toml") << "[job]\nqueue = \"mails\"\nhandler =\n";
  EXPECT_EQ(end_with("mails").status, SettleStatus::applied) << "somebody is editing the file";
}

TEST_F(HostQueuesTest, AMessageGoesWhereAJobOrAnEarlierMessageKnowsTheQueue) {
  std::filesystem::create_directories(folder_.path());
  std::ofstream(folder_.path() + "/mails.toml") << "[job]\nqueue = \"mails\"\nhandler = \"h\"\n";
  EXPECT_EQ(end_with("mails").status, SettleStatus::applied);
  const queue::NewMessage first{.body = "x"};
  (*queues().open_sender("extra"))->send({&first, 1}, Deadline::never());
  EXPECT_EQ(end_with("extra").status, SettleStatus::applied);
  EXPECT_THAT(*queues().made_by_messages(Deadline::never()), ElementsAre("extra", "mails", "orders"));
}

TEST_F(HostQueuesTest, HandlersMakeQueuesWhereTheHostFileSaysSo) {
  config_.create_queues = true;
  EXPECT_EQ(end_with("nodes").status, SettleStatus::applied);
  EXPECT_EQ(lying_in("nodes"), 1U);
}

TEST_F(HostQueuesTest, WhatOneStoreKnowsUnderAnotherStoresNameIsNotOpenedByIt) {
  const queue::NewMessage first{.body = "x"};
  (*queues().open_sender("receipts"))->send({&first, 1}, Deadline::never());
  EXPECT_THAT(*queues().made_by_messages(Deadline::never()), ElementsAre("receipts"));
  config_.queues["receipts"].store.clear();
  EXPECT_TRUE(queues().made_by_messages(Deadline::never())->empty()) << "it lies in the file of another store";
}

// `sluice queues` listed it, and every other command said that nobody knows it.
TEST_F(HostQueuesTest, AQueueThatAnotherStoreKnowsIsNamedWithItsStore) {
  const queue::NewMessage first{.body = "x"};
  (*queues().open_sender("receipts"))->send({&first, 1}, Deadline::never());
  config_.queues.erase("receipts");
  EXPECT_EQ(
      queues().check_known("receipts", "mend", Deadline::never()).error().message(),
      "the host file does not say where queue \"receipts\" lies, and messages have made one in store archive; give "
      "[queues.receipts] store = \"archive\"");
}

// Queues without a job were never shown in /metrics.
TEST_F(HostQueuesTest, EveryQueueOfAFileIsCountedForTheMetrics) {
  const queue::NewMessage first{.body = "x"};
  (*queues().open_sender("extra"))->send({&first, 1}, Deadline::never());
  DepthSampler sampler([] { return std::vector<queue::QueueAddress>(); }, queues(), clock_, std::chrono::hours(1));
  ASSERT_TRUE(sampler.start());
  sampler.asked();
  while (!sampler.depth("extra")) {
    std::this_thread::yield();
  }
  sampler.stop();
  EXPECT_EQ(sampler.depth("extra")->standard.ready, 1U);
}

// A host whose queues all lie in tables of DynamoMQ counted a failed read of another table each time that its metrics
// were read.
TEST(HostQueuesOnDynamoDb, ATableThatIsNotThereIsLookedForOnceAnHour) {
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  LeapingClock clock;
  SeededRandom random{1};
  test::model::Model model(clock, 1);
  const test::model::ModelServer server(model, clock);
  config::HostConfig config;
  config.store = {.kind = config::StoreKind::dynamodb, .region = "us-east-1", .endpoint = server.endpoint()};
  observe::Metrics metrics;
  HostQueues queues(config, clock, random, &metrics);
  const auto looks = [&] { return model.counters().requests["Query"]; };
  for (int scrape = 0; scrape < 3; ++scrape) {
    EXPECT_TRUE(queues.made_by_messages(Deadline::after(clock, std::chrono::minutes(1)))->empty());
  }
  EXPECT_EQ(looks(), 1U);
  EXPECT_TRUE(queues.made_by_messages_in("", Deadline::after(clock, std::chrono::minutes(1)))->empty());
  EXPECT_EQ(looks(), 2U) << "who asks for this store by name is answered by the store";
  clock.leap(std::chrono::hours(1));
  EXPECT_TRUE(queues.made_by_messages(Deadline::after(clock, std::chrono::minutes(1)))->empty());
  EXPECT_EQ(looks(), 3U);
}

// Such a host needs no right to that table, and was refused each time that its metrics were read.
TEST(HostQueuesOnDynamoDb, ATableThatOneMayNotReadAndHasNoQueueInIsLookedForOnceAnHour) {
  ::setenv("AWS_ACCESS_KEY_ID", "key", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  LeapingClock clock;
  SeededRandom random{1};
  test::model::Model model(clock, 1);
  model.deny("dynamodb:Query");
  const test::model::ModelServer server(model, clock);
  config::HostConfig config;
  config.store = {.kind = config::StoreKind::dynamodb, .region = "us-east-1", .endpoint = server.endpoint()};
  config.queues["orders"] = {.table = "orders", .layout = config::Layout::dynamomq};
  observe::Metrics metrics;
  HostQueues queues(config, clock, random, &metrics);
  const auto refused = [&](int times) {
    return HasSubstr("error=\"access_denied\",operation=\"Query\",queue=\"sluice-queues\",table=\"sluice-queues\"} " +
                     std::to_string(times) + "\n");
  };
  for (int scrape = 0; scrape < 3; ++scrape) {
    EXPECT_TRUE(queues.made_by_messages(Deadline::after(clock, std::chrono::minutes(1)))->empty());
  }
  EXPECT_THAT(metrics.text(), refused(1));
  clock.leap(std::chrono::hours(1));
  EXPECT_TRUE(queues.made_by_messages(Deadline::after(clock, std::chrono::minutes(1)))->empty());
  EXPECT_THAT(metrics.text(), refused(2));
}

TEST_F(HostQueuesTest, AMessageToAnotherQueueOfTheSameStoreIsCommitted) {
  config_.queues["invoices"] = {};
  EXPECT_EQ(end_with("invoices").status, SettleStatus::applied);
  EXPECT_EQ(lying_in("invoices"), 1U);
  EXPECT_EQ(lying_in("orders"), 0U);
}

TEST_F(HostQueuesTest, TheDeduplicationOfAQueueHoldsForWhatHandlersSendToo) {
  EXPECT_EQ(end_with("notes", "same").status, SettleStatus::applied);
  EXPECT_EQ(end_with("notes", "same").status, SettleStatus::applied) << "accepted, and not stored";
  EXPECT_EQ(end_with("notes", "other").status, SettleStatus::applied);
  EXPECT_EQ(lying_in("notes"), 2U);
  EXPECT_EQ(lying_in("orders"), 0U);
}

TEST_F(HostQueuesTest, AJobOfTheOtherStoreReachesItsOwnQueuesAlone) {
  EXPECT_FALSE(beyond_store(config_, "receipts", "receipts"));
  const auto back = beyond_store(config_, "receipts", "orders");
  ASSERT_TRUE(back);
  EXPECT_THAT(back->message(),
              AllOf(HasSubstr("queue orders lies in the default store"), HasSubstr("receipts in store \"archive\"")));
  EXPECT_FALSE(beyond_store(config_, "orders", "unknown")) << "what nobody maps lies in the default store";
}

}  // namespace
}  // namespace sluice::runtime
