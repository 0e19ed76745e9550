// The built SNS plugin against an emulator that others wrote: what it publishes arrives in a queue.

#include "tests/support/fauxqs.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/text/percent.hpp"
#include "dynamo/credentials/sources.hpp"
#include "dynamo/transport/curl_transport.hpp"
#include "tests/plugins/live_host.hpp"

namespace sluice::publishers {
namespace {

using shipped::LiveHost;
using shipped::OptionMap;
using shipped::Result;
using shipped::TestMessage;
using ::testing::HasSubstr;

class FauxqsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("no_proxy", "*", 1);
    emulator_ = test::Fauxqs::start();
    if (!emulator_) {
      GTEST_SKIP() << test::Fauxqs::absence();
    }
    transport_.start();
  }

  std::string ask(const std::string& type, const std::string& target, const std::string& body) {
    dynamo::HttpRequest request;
    request.url = emulator_->endpoint();
    request.headers = {{"Content-Type", type}};
    if (!target.empty()) {
      request.headers.emplace_back("X-Amz-Target", target);
    }
    request.body = body;
    const auto answer = dynamo::fetch(transport_, clock_, std::move(request), Deadline::never());
    return answer ? answer->body : answer.error().message;
  }
  std::string sns(const std::string& form) {
    return ask("application/x-www-form-urlencoded", "", "Version=2010-03-31&" + form);
  }
  nlohmann::json sqs(const std::string& operation, const nlohmann::json& body) {
    return nlohmann::json::parse(ask("application/x-amz-json-1.0", "AmazonSQS." + operation, body.dump()));
  }
  /// A topic whose messages go to a queue; the queue's address.
  std::string make_topic(const std::string& name) {
    const bool fifo = name.ends_with(".fifo");
    const std::string in_topic = fifo ? "&Attributes.entry.1.key=FifoTopic&Attributes.entry.1.value=true" : "";
    EXPECT_THAT(sns("Action=CreateTopic&Name=" + name + in_topic), HasSubstr(name));
    nlohmann::json queue{{"QueueName", name}};
    if (fifo) {
      queue["Attributes"] = {{"FifoQueue", "true"}};
    }
    std::string url = sqs("CreateQueue", queue).at("QueueUrl");
    EXPECT_THAT(sns("Action=Subscribe&Protocol=sqs&TopicArn=" + arn(name) +
                    "&Endpoint=" + percent_encoded("arn:aws:sqs:us-east-1:000000000000:" + name)),
                HasSubstr("SubscriptionArn"));
    return url;
  }
  static std::string arn(const std::string& name) { return "arn:aws:sns:us-east-1:000000000000:" + name; }

  std::vector<nlohmann::json> received(const std::string& url, std::size_t count) {
    std::vector<nlohmann::json> all;
    while (all.size() < count) {
      const auto answer = sqs("ReceiveMessage", {{"QueueUrl", url},
                                                 {"MaxNumberOfMessages", 10},
                                                 {"WaitTimeSeconds", 5},
                                                 {"MessageSystemAttributeNames", {"All"}}});
      if (!answer.contains("Messages") || answer["Messages"].empty()) {
        break;
      }
      for (const auto& message : answer["Messages"]) {
        all.push_back(message);
        sqs("DeleteMessage", {{"QueueUrl", url}, {"ReceiptHandle", message.at("ReceiptHandle")}});
      }
    }
    return all;
  }
  OptionMap options(OptionMap others = {}) const {
    others.emplace("endpoint", emulator_->endpoint());
    others.emplace("region", "us-east-1");
    others.emplace("access_key_id", "test");
    others.emplace("secret_access_key", "test");
    return others;
  }
  static TestMessage row(int id, const std::string& type) {
    return {.body = R"({"n": )" + std::to_string(id) + "}",
            .id = std::to_string(id),
            .queue = "outbox:orders",
            .attributes = {{"event", "order.created"},
                           {"aggregate_type", type},
                           {"aggregate_id", std::to_string(id % 5)},
                           {"producer", "shop"}}};
  }

  SystemClock clock_;
  dynamo::CurlTransport transport_{clock_};
  std::unique_ptr<test::Fauxqs> emulator_;
};

TEST_F(FauxqsTest, WhatIsPublishedArrivesInAQueue) {
  const std::string url = make_topic("orders");
  LiveHost host("sns", options());
  {
    std::vector<std::jthread> threads;
    threads.reserve(10);
    for (int thread = 0; thread < 10; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < 5; ++i) {
          const Result result = host.handle(row(thread * 5 + i, arn("orders")));
          EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
        }
      });
    }
  }
  std::set<std::string> bodies;
  for (const auto& message : received(url, 50)) {
    const auto notification = nlohmann::json::parse(message.at("Body").get<std::string>());
    bodies.insert(notification.at("Message"));
    EXPECT_EQ(notification.at("MessageAttributes").at("Event").at("Value"), "order.created");
    EXPECT_EQ(notification.at("MessageAttributes").at("Producer").at("Value"), "shop");
  }
  EXPECT_EQ(bodies.size(), 50U);
}

TEST_F(FauxqsTest, FifoTopicsKeepTheOrderAndStoreARowOnce) {
  const std::string url = make_topic("orders.fifo");
  LiveHost host("sns", options({{"linger", "0s"}}));
  for (int id = 0; id < 10; ++id) {
    for (int tries = 0; tries < 2; ++tries) {
      const Result result = host.handle(row(id, arn("orders.fifo")));
      EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
    }
  }
  const auto messages = received(url, 10);
  EXPECT_EQ(messages.size(), 10U);
  std::map<std::string, int> last;
  for (const auto& message : messages) {
    const auto notification = nlohmann::json::parse(message.at("Body").get<std::string>());
    const int number = nlohmann::json::parse(notification.at("Message").get<std::string>()).at("n");
    const std::string group = message.at("Attributes").at("MessageGroupId");
    EXPECT_EQ(group, std::to_string(number % 5));
    EXPECT_TRUE(last.count(group) == 0 || last[group] < number);
    last[group] = number;
  }
}

TEST_F(FauxqsTest, TopicsAreFoundByName) {
  const std::string url = make_topic("orders");
  EXPECT_EQ(LiveHost("sns", options()).handle(row(1, "rn::sns:::orders")).status, SLUICE_DONE);
  EXPECT_EQ(received(url, 1).size(), 1U);
  const Result missing = LiveHost("sns", options()).handle(row(1, arn("nowhere")));
  EXPECT_EQ(missing.status, SLUICE_SNOOZE) << missing.reason;
}

}  // namespace
}  // namespace sluice::publishers
