// The built plugin in the SDK's test kit: what it has committed with a message.

#include <gmock/gmock.h>

#include <sluice/testing.hpp>

#include "tests/plugins/live_host.hpp"

namespace sluice::publishers {
namespace {

using shipped::creation_error;
using shipped::handler_of;
using testing::HandlerTest;
using ::testing::HasSubstr;
using testing::OptionMap;
using testing::Result;
using testing::TestMessage;
using Names = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

TestMessage row(const std::string& type) {
  return {.body = R"({"total": 5})",
          .id = "42",
          .queue = "outbox:orders",
          .content_type = "application/json",
          .attributes = {{"event", "order.created"},
                         {"aggregate_type", type},
                         {"aggregate_id", "1:1"},
                         {"producer", "shop"},
                         {"traceparent", "00-1-2-01"}},
          .group = "1:1"};
}

class QueueTest : public ::testing::TestWithParam<Store> {
 protected:
  Result sent(const TestMessage& message, const OptionMap& options) {
    HandlerTest queue(handler_of("queue"), options, "test", GetParam());
    return queue.handle(message);
  }
};

TEST_P(QueueTest, SendsTheMessageOnWithTheEndOfTheRow) {
  const Result result = sent(row("order"), {{"queue", "mail"}, {"delay", "5s"}});
  ASSERT_EQ(result.status, SLUICE_DONE) << result.reason;
  EXPECT_TRUE(result.committed);
  const auto& message = result.effects.message_to("mail");
  EXPECT_EQ(message.body, R"({"total": 5})");
  EXPECT_EQ(message.content_type, "application/json");
  EXPECT_EQ(message.group, "1:1");
  EXPECT_EQ(message.delay, std::chrono::seconds(5));
  EXPECT_EQ(message.attributes, row("order").attributes);
  EXPECT_EQ(message.dedup_id, "") << "the transaction sends it once";
}

TEST_P(QueueTest, TakesTheQueueOfARuleOrOfTheType) {
  const OptionMap options{{"routes", Map{{"order*", "orders"}, {"order.big", "big"}}},
                          {"event_routes", Map{{"*.failed", "failures"}}}};
  EXPECT_TRUE(sent(row("order.small"), options).effects.message_to("orders").delay == std::chrono::seconds(0));
  EXPECT_EQ(sent(row("order.big"), options).effects.message_to("big").group, "1:1");
  TestMessage failed = row("order.big");
  failed.attributes["event"] = "order.failed";
  EXPECT_EQ(sent(failed, options).effects.message_to("failures").group, "1:1");
  EXPECT_EQ(sent(row("rn::queue:::bills"), options).effects.message_to("bills").group, "1:1");
  EXPECT_EQ(sent(row("arn:aws:sqs:eu-west-1:123456789012:bills"), options).effects.message_to("bills").group, "1:1");
}

TEST_P(QueueTest, PutsAsideWhatGoesNowhere) {
  const Result result = sent(row("order"), {{"unroutable", "reject"}});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_THAT(result.reason, HasSubstr("\"order\" is no ARN or RN, and no rule fits it"));
  EXPECT_FALSE(result.committed);
  EXPECT_EQ(sent(row("order"), {{"unroutable", "retry"}}).status, SLUICE_RETRY);
  EXPECT_EQ(sent(row("order"), {{"queue", "a"}, {"skip_events", Names{"order.*"}}}).status, SLUICE_DISCARD);
  EXPECT_THAT(sent({.body = "x"}, {}).reason, HasSubstr("has no attribute aggregate_type"));
}

TEST_P(QueueTest, LetsARowOfAnOutboxWaitForItsDestination) {
  const Result result = sent(row("order"), {});
  EXPECT_EQ(result.status, SLUICE_SNOOZE);
  EXPECT_EQ(result.delay, std::chrono::seconds(5));
  EXPECT_EQ(sent(row("order"), {{"unroutable_wait", "90s"}}).delay, std::chrono::seconds(90));
  EXPECT_EQ(sent({.body = "x", .queue = "events"}, {}).status, SLUICE_REJECT) << "a message of a queue";
  EXPECT_EQ(sent({.body = "x", .queue = "events"}, {{"unroutable", "snooze"}}).status, SLUICE_SNOOZE);
}

TEST_P(QueueTest, LeavesOutWhatTheJobDoesNotWant) {
  const Result result = sent(row("order"), {{"queue", "a"}, {"attributes", Names{"trace*"}}, {"group", false}});
  const auto& message = result.effects.message_to("a");
  EXPECT_EQ(message.group, "");
  EXPECT_EQ(message.attributes, (Map{{"traceparent", "00-1-2-01"}}));
}

TEST_P(QueueTest, GivesMessagesOfOtherJobsTheirEvent) {
  const Result result = sent({.body = "x", .group = "g"}, {{"queue", "a"}, {"event", "made"}});
  EXPECT_EQ(result.effects.message_to("a").attributes, (Map{{"event", "made"}}));
  EXPECT_EQ(result.effects.message_to("a").group, "g");
}

INSTANTIATE_TEST_SUITE_P(Stores, QueueTest, ::testing::Values(Store::sqlite, Store::dynamodb),
                         [](const auto& of) { return of.param == Store::sqlite ? "Sqlite" : "DynamoDb"; });

TEST(QueueOptions, AreCheckedBeforeTheJobStarts) {
  EXPECT_THAT(creation_error("queue", {{"queue", ""}}), HasSubstr("names nothing"));
  EXPECT_THAT(creation_error("queue", {{"delay", "-1s"}}), HasSubstr("\"delay\""));
}

TEST(QueueOfAnOutbox, NamesTheMessageByItsRow) {
  HandlerTest queue(handler_of("queue"), {{"queue", "mail"}}, "test", Store::none);
  const Result unknown = queue.handle(row("order"));
  EXPECT_EQ(unknown.effects.message_to("mail").dedup_id, "shop/outbox:orders/42");
  TestMessage named = row("order");
  named.attributes["source_id"] = "postgres-1-2-3";
  const Result result = queue.handle(named);
  ASSERT_TRUE(result.committed) << result.reason;
  EXPECT_EQ(result.effects.message_to("mail").dedup_id, "postgres-1-2-3/42");
  EXPECT_EQ(result.effects.message_to("mail").group, "1:1");
}

}  // namespace
}  // namespace sluice::publishers
