// The built plugin against an SNS of our own, which checks every signature and fails when it is told to.

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/plugins/http_server.hpp"
#include "tests/plugins/live_host.hpp"
#include "tests/support/sns_model.hpp"

namespace sluice::publishers {
namespace {

using shipped::creation_error;
using shipped::HttpServer;
using shipped::LiveHost;
using shipped::OptionMap;
using shipped::Result;
using shipped::Stop;
using shipped::TestMessage;
using test::SnsModel;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Names = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

class SnsTest : public ::testing::Test {
 protected:
  SnsTest()
      : server_([this](const shipped::HttpRequest& request) { return model_.answer(request.head, request.body); }) {
    ::setenv("no_proxy", "*", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    for (const char* name : {"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"}) {
      ::unsetenv(name);
    }
  }

  OptionMap options(OptionMap others = {}) const {
    others.emplace("endpoint", "http://127.0.0.1:" + std::to_string(server_.port()));
    others.emplace("region", "eu-west-1");
    others.emplace("access_key_id", SnsModel::kKey);
    others.emplace("secret_access_key", SnsModel::kSecret);
    others.emplace("linger", "0s");
    return others;
  }
  Result published(const TestMessage& message, OptionMap others = {}) const {
    return LiveHost("sns", options(std::move(others))).handle(message);
  }
  static TestMessage row(const std::string& id, const std::string& topic, const std::string& aggregate = "1:1",
                         const std::string& body = "{}") {
    return {.body = body,
            .id = id,
            .queue = "outbox:orders",
            .content_type = "application/json",
            .attributes = {{"event", "order.created"},
                           {"aggregate_type", topic},
                           {"aggregate_id", aggregate},
                           {"producer", "shop"}},
            .group = aggregate};
  }
  /// Publishes rows 0 to count - 1 from so many threads; what each came to.
  static std::vector<Result> publish_all(LiveHost& host, int count, int threads, const std::string& topic,
                                         const std::function<std::string(int)>& body) {
    std::vector<Result> results(static_cast<std::size_t>(count));
    std::atomic<int> next{0};
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        for (int number = next++; number < count; number = next++) {
          results[static_cast<std::size_t>(number)] =
              host.handle(row(std::to_string(number), topic, std::to_string(number), body(number)));
        }
      });
    }
    workers.clear();
    return results;
  }

  SnsModel model_;
  HttpServer server_;
};

TEST_F(SnsTest, PublishesARowToTheTopicOfItsArn) {
  const std::string arn = model_.add_topic("orders");
  TestMessage message = row("42", arn, "1:1", R"({"total": 5, "name": "é & ü+ %41"})");
  message.attributes["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const Result result = published(message);
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  const auto stored = model_.messages();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].topic, arn);
  EXPECT_EQ(stored[0].body, message.body);
  EXPECT_EQ(stored[0].group + stored[0].deduplication, "") << "a standard topic has neither";
  EXPECT_THAT(stored[0].attributes, ElementsAre(Pair("Event", "order.created"), Pair("Producer", "shop"),
                                                Pair("traceparent", message.attributes["traceparent"])));
  EXPECT_EQ(model_.requests("ListTopics"), 0) << "an ARN needs no discovery";
}

TEST_F(SnsTest, PublishesATombstoneAsNullWithAnAttribute) {
  const std::string arn = model_.add_topic("orders");
  TestMessage message = row("42", arn, "1:1", "");
  message.attributes["tombstone"] = "true";
  const Result result = published(message);
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  const auto stored = model_.messages();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].body, "null") << "SNS takes no empty message";
  EXPECT_THAT(stored[0].attributes, Contains(Pair("Tombstone", "true")));
}

TEST_F(SnsTest, GivesFifoTopicsAGroupAndAnIdThatStays) {
  const std::string arn = model_.add_topic("orders.fifo");
  LiveHost host("sns", options());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(host.handle(row("42", arn)).status, SLUICE_DONE);
  }
  EXPECT_EQ(host.handle(row("43", arn)).status, SLUICE_DONE);
  const auto stored = model_.messages();
  ASSERT_EQ(stored.size(), 2U) << "the row that was published twice is stored once";
  EXPECT_EQ(stored[0].group, "1:1");
  EXPECT_EQ(stored[0].deduplication, "shop/outbox:orders/42");
  const Result odd = host.handle(row("44", arn, ""));
  EXPECT_EQ(odd.status, SLUICE_REJECT);
  EXPECT_THAT(odd.reason, HasSubstr("the topic is FIFO"));
}

// A thousand messages from forty workers: batches are full, so a hundred requests carry them.
TEST_F(SnsTest, PutsMessagesThatAreOutTogetherIntoOneRequest) {
  const std::string arn = model_.add_topic("orders");
  LiveHost host("sns", options({{"linger", "1h"}}));
  const auto results = publish_all(host, 1000, 40, arn, [](int number) { return std::to_string(number); });
  for (const Result& result : results) {
    EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  }
  EXPECT_EQ(model_.messages().size(), 1000U);
  EXPECT_LE(model_.requests("PublishBatch"), 110) << "at most 0.11 requests a message";
  EXPECT_THAT(model_.batch_sizes(), Each(10U));
}

TEST_F(SnsTest, RepeatsWhatFailsForAMomentAndOnlyThat) {
  const std::string arn = model_.add_topic("orders");
  for (const char* code : {"Throttled", "InternalError", "KMSThrottling"}) {
    model_.fail_entries(std::string("bad-") + code, 1, code);
  }
  LiveHost host("sns", options({{"linger", "1h"}}));
  const auto results = publish_all(host, 10, 10, arn, [](int number) {
    return number < 3 ? std::string("bad-") + std::array{"Throttled", "InternalError", "KMSThrottling"}[number]
                      : std::to_string(number);
  });
  for (const Result& result : results) {
    EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  }
  EXPECT_EQ(model_.messages().size(), 10U) << "what had succeeded was not sent again";
  EXPECT_EQ(model_.batch_sizes().front(), 10U);
}

TEST_F(SnsTest, LeavesLastingThrottlesToTheJob) {
  const std::string arn = model_.add_topic("orders");
  model_.fail_requests(100, 429, "Throttled");
  const Result result = published(row("1", arn), {{"attempts", 2}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("SNS, topic " + arn + ": Throttled: as the test wants it"));
  EXPECT_EQ(model_.requests("PublishBatch"), 2);
}

TEST_F(SnsTest, GoesThroughFailuresOfWholeRequests) {
  const std::string arn = model_.add_topic("orders");
  LiveHost host("sns", options());
  for (const auto& [status, code] : std::vector<std::pair<int, std::string>>{
           {500, "InternalError"}, {503, "ServiceUnavailable"}, {502, ""}, {429, "Throttled"}}) {
    model_.fail_requests(1, status, code);
    const Result result = host.handle(row("1", arn));
    EXPECT_EQ(result.status, SLUICE_DONE) << status << result.reason;
  }
  EXPECT_EQ(model_.requests("PublishBatch"), 8);
}

TEST_F(SnsTest, NamesLastingErrorsAndPutsThemAsideByRule) {
  const std::string arn = model_.add_topic("orders");
  const std::string gone = "arn:aws:sns:eu-west-1:123456789012:gone";
  TestMessage message = row("1", gone);
  message.queue = "orders";
  EXPECT_EQ(published(message).status, SLUICE_RETRY);
  EXPECT_THAT(published(message).reason, HasSubstr(gone + ": NotFound: Topic does not exist"));
  EXPECT_EQ(published(message, {{"retry_errors", Names{}}}).status, SLUICE_REJECT);
  model_.fail_requests(1, 403, "AuthorizationError");
  EXPECT_EQ(published(row("1", arn)).status, SLUICE_RETRY);
  model_.fail_entries("odd", 100, "InvalidParameter");
  const Result odd = published(row("1", arn, "1", "odd"));
  EXPECT_EQ(odd.status, SLUICE_REJECT);
  EXPECT_THAT(odd.reason, HasSubstr("InvalidParameter: as the test <wants> it"));
  EXPECT_EQ(published(row("1", arn, "1", "odd"), {{"retry_errors", Names{"Invalid*"}}}).status, SLUICE_RETRY);
  EXPECT_EQ(model_.messages().size(), 0U);
}

TEST_F(SnsTest, ARowWaitsForATopicThatIsNotThere) {
  const std::string gone = "arn:aws:sns:eu-west-1:123456789012:gone";
  LiveHost host("sns", options());
  EXPECT_EQ(host.handle(row("1", gone)).status, SLUICE_SNOOZE) << "no try is counted";
  EXPECT_TRUE(host.logged(gone + ": NotFound: Topic does not exist; it waits for that, and no attempt is counted"));
  EXPECT_EQ(published(row("1", gone), {{"unroutable", "retry"}}).status, SLUICE_RETRY);
}

TEST_F(SnsTest, OneEntryThatABatchIsRefusedForHoldsUpNoOther) {
  const std::string arn = model_.add_topic("orders");
  model_.refuse_batches_with("poison", "InvalidParameter");
  LiveHost host("sns", options({{"linger", "1h"}}));
  const auto results =
      publish_all(host, 10, 10, arn, [](int number) { return number == 4 ? "poison" : std::to_string(number); });
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].status, i == 4 ? SLUICE_REJECT : SLUICE_DONE) << i << results[i].reason;
  }
  EXPECT_EQ(model_.messages().size(), 9U);
}

TEST_F(SnsTest, SendsEachArnToItsOwnRegion) {
  const std::string here = model_.add_topic("orders");
  const std::string there = model_.add_topic("orders", "us-east-1", "210987654321");
  LiveHost host("sns", options());
  EXPECT_EQ(host.handle(row("1", here)).status, SLUICE_DONE);
  EXPECT_EQ(host.handle(row("2", there)).status, SLUICE_DONE);
  EXPECT_EQ(model_.messages().at(0).topic, here);
  EXPECT_EQ(model_.messages().at(1).topic, there);
}

TEST_F(SnsTest, FindsTopicsByNameInAllPages) {
  for (int i = 0; i < 7; ++i) {
    model_.add_topic("topic-" + std::to_string(i));
  }
  model_.set_page_size(3);
  LiveHost host("sns", options({{"routes", Map{{"order", "topic-6"}, {"bill", "topic-0"}}}}));
  for (const char* type : {"order", "bill", "order", "rn::sns:::topic-3"}) {
    const Result result = host.handle(row("1", type));
    EXPECT_EQ(result.status, SLUICE_DONE) << type << result.reason;
  }
  EXPECT_EQ(model_.requests("ListTopics"), 3) << "once, in three pages";
  EXPECT_EQ(model_.requests("GetTopicAttributes"), 3);
  EXPECT_THAT(model_.messages().at(0).topic, HasSubstr(":topic-6"));
  const Result none = host.handle(row("1", "rn::sns:::nowhere"));
  EXPECT_EQ(none.status, SLUICE_SNOOZE) << "it may come";
  EXPECT_TRUE(host.logged("no topic \"nowhere\" among the 7 that may be published to in eu-west-1"));
}

TEST_F(SnsTest, LooksForTopicsAnewWhenTheListIsOld) {
  model_.add_topic("orders");
  LiveHost host("sns", options({{"topic", "orders"}, {"refetch_interval", "1ms"}}));
  TestMessage plain{.body = "x", .id = "1"};
  EXPECT_EQ(host.handle(plain).status, SLUICE_DONE);
  while (model_.requests("ListTopics") < 2) {
    EXPECT_EQ(host.handle(plain).status, SLUICE_DONE);
  }
}

TEST_F(SnsTest, TakesNoTopicForAnotherOfItsName) {
  model_.add_topic("orders");
  model_.add_topic("orders", "eu-west-1", "210987654321");
  const Result result = published({.body = "x"}, {{"topic", "orders"}});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_THAT(result.reason, HasSubstr("2 topics named \"orders\""));
  EXPECT_EQ(model_.messages().size(), 0U);
}

TEST_F(SnsTest, KeepsToTheListsOfTopics) {
  const std::string orders = model_.add_topic("orders");
  const std::string bills = model_.add_topic("bills");
  const OptionMap allow{{"allow_topics", Names{"ord*"}}, {"unroutable", "reject"}};
  EXPECT_EQ(published(row("1", orders), allow).status, SLUICE_DONE);
  EXPECT_THAT(published(row("1", bills), allow).reason, HasSubstr("may not be published to"));
  EXPECT_THAT(published(row("1", "rn::sns:::bills"), allow).reason, HasSubstr("no topic \"bills\" among the 1"));
  const OptionMap deny{{"deny_topics", Names{bills}}, {"unroutable", "reject"}};
  EXPECT_EQ(published(row("1", orders), deny).status, SLUICE_DONE);
  EXPECT_EQ(published(row("1", bills), deny).status, SLUICE_REJECT);
  EXPECT_EQ(published(row("1", orders), {{"skip_events", Names{"order.*"}}}).status, SLUICE_DISCARD);
}

TEST_F(SnsTest, SkipsATopicWhoseAttributesCannotBeReadUnlessItIsNamed) {
  model_.hide_attributes(model_.add_topic("orders"));
  LiveHost host("sns", options({{"unroutable", "reject"}}));
  const Result result = host.handle(row("1", "rn::sns:::orders"));
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_THAT(result.reason, HasSubstr("ignore_unreadable_topics"));
  EXPECT_TRUE(host.logged("AuthorizationError"));
  EXPECT_EQ(published(row("1", "rn::sns:::orders"), {{"ignore_unreadable_topics", Names{"orders"}}}).status,
            SLUICE_DONE);
}

TEST_F(SnsTest, SaysWhenTopicsCannotBeListed) {
  model_.fail_requests(100, 403, "AuthorizationError");
  const Result result = published({.body = "x"}, {{"topic", "orders"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("AuthorizationError"));
}

TEST_F(SnsTest, RefusesWhatDoesNotFitBeforeItIsSent) {
  const std::string arn = model_.add_topic("orders");
  for (const std::string& body : {std::string(), std::string(262145, 'x'), std::string("\xff")}) {
    EXPECT_EQ(published(row("1", arn, "1", body)).status, SLUICE_REJECT);
  }
  EXPECT_EQ(model_.requests("PublishBatch"), 0);
  EXPECT_EQ(published(row("1", arn, "1", std::string(262144 - 50, 'x'))).status, SLUICE_DONE);
}

// Keys come out of a file that is exchanged under the running host, as a rotation does.
TEST_F(SnsTest, LoadsNewCredentialsWhenTheOldOnesHaveExpired) {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-sns-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/credentials";
  const auto write_key = [&](const std::string& key) {
    std::ofstream(file) << "[default]\naws_access_key_id = " << key << "\naws_secret_access_key = " << SnsModel::kSecret
                        << "\n";
  };
  write_key(SnsModel::kKey);
  ::setenv("AWS_SHARED_CREDENTIALS_FILE", file.c_str(), 1);
  ::setenv("AWS_CONFIG_FILE", (folder + "/none").c_str(), 1);
  ::unsetenv("AWS_ACCESS_KEY_ID");
  ::unsetenv("AWS_SECRET_ACCESS_KEY");
  const std::string arn = model_.add_topic("orders");
  OptionMap chain = options();
  chain.erase("access_key_id");
  chain.erase("secret_access_key");
  LiveHost host("sns", chain);
  EXPECT_EQ(host.handle(row("1", arn)).status, SLUICE_DONE);
  write_key("AKIDNEW");
  model_.exchange_key("AKIDNEW");
  const Result result = host.handle(row("2", arn));
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  EXPECT_EQ(model_.requests("PublishBatch"), 3) << "the refused one was made again";
  std::filesystem::remove_all(folder);
}

TEST_F(SnsTest, SignsWithTheTimeOfAws) {
  const std::string arn = model_.add_topic("orders");
  model_.set_clock(3600);
  const Result result = published(row("1", arn));
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
}

TEST_F(SnsTest, RetriesWithKeysThatAreWrong) {
  const std::string arn = model_.add_topic("orders");
  const Result result = published(row("1", arn), {{"secret_access_key", "wrong"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(SnsTest, TellsAnOutageFromARefusal) {
  const std::string arn = model_.add_topic("orders");
  const OptionMap nobody{{"endpoint", "http://127.0.0.1:1"}, {"attempts", 1}};
  const Result snoozed = published(row("1", arn), nobody);
  EXPECT_EQ(snoozed.status, SLUICE_SNOOZE);
  EXPECT_EQ(snoozed.delay, std::chrono::seconds(1));
  OptionMap counting = nobody;
  counting.insert({"outage", "retry"});
  const Result result = published(row("1", arn), counting);
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("Unreachable: "));
  // Whoever answers there, it is not SNS.
  model_.fail_requests(1, 403, "");
  EXPECT_EQ(published(row("1", arn), {{"snooze_time", "3s"}}).delay, std::chrono::seconds(3));
}

TEST_F(SnsTest, GivesUpASlowAnswer) {
  const HttpServer silent([](const shipped::HttpRequest&) { return shipped::kHang; });
  const Result result = published(row("1", "arn:aws:sns:eu-west-1:123456789012:orders"),
                                  {{"endpoint", "http://127.0.0.1:" + std::to_string(silent.port())},
                                   {"timeout", "100ms"},
                                   {"attempts", 1},
                                   {"outage", "retry"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("Timeout: "));
  // And one that the job's own time is up for.
  Stop stop;
  stop.timed_out = false;
  stop.after_questions = 1;
  stop.drain = 0;
  const Result over =
      LiveHost("sns", options({{"endpoint", "http://127.0.0.1:" + std::to_string(silent.port())}, {"timeout", "1h"}}))
          .handle(row("1", "arn:aws:sns:eu-west-1:123456789012:orders"), stop);
  EXPECT_EQ(over.status, SLUICE_RETRY);
  EXPECT_THAT(over.reason, HasSubstr("no answer within"));
}

TEST_F(SnsTest, StartsNothingInAHostThatStops) {
  const std::string arn = model_.add_topic("orders");
  Stop stop;
  stop.requested = true;
  EXPECT_EQ(LiveHost("sns", options()).handle(row("1", arn), stop).status, SLUICE_RELEASE);
  EXPECT_EQ(model_.requests("PublishBatch"), 0);
}

TEST_F(SnsTest, ChecksItsOptionsBeforeTheJobStarts) {
  const std::vector<std::pair<OptionMap, std::string>> wrong = {
      {{{"endpoint", "nowhere"}}, "\"endpoint\" must be an address"},
      {{{"region", "eu west"}}, "must be a region"},
      {{{"access_key_id", "a"}}, "belong together"},
      {{{"attempts", 0}}, "must be from 1 to 10"},
      {{{"group_id", "cut"}}, "must be one of \"hash\", \"reject\""},
      {{{"attributes", Names{"Event"}}}, "cannot be the name of an attribute"},
      {{{"attributes", Names{"a b"}}}, "cannot be the name of an attribute"},
      {{{"attributes", Names{"a", "b", "c", "d", "e", "f", "g", "h", "i"}}}, "7 are the most"},
      {{{"topic", "rn::nats:::orders"}}, "is of the service \"nats\"; this handler publishes to sns"},
      {{{"event_routes", Map{{"a", "arn:aws:sqs:eu-west-1:1:b"}}}}, "is of the service \"sqs\""},
  };
  for (const auto& [others, why] : wrong) {
    EXPECT_THAT(creation_error("sns", others), HasSubstr(why));
  }
  EXPECT_THAT(published({.body = "x"}, {{"topic", "not a name"}}).reason, HasSubstr("cannot be the name of a topic"));
}

TEST_F(SnsTest, NeedsARegionForNamesAlone) {
  ::setenv("AWS_CONFIG_FILE", "/nonexistent", 1);
  const std::string arn = model_.add_topic("orders");
  OptionMap anywhere = options({{"unroutable", "reject"}});
  anywhere.erase("region");
  LiveHost host("sns", anywhere);
  EXPECT_EQ(host.handle(row("1", arn)).status, SLUICE_DONE);
  EXPECT_THAT(host.handle(row("1", "rn::sns:::orders")).reason, HasSubstr("no region is named"));
}

// What refuses one message or topic is an answer; what meets everybody is not.
TEST_F(SnsTest, SaysHowSnsFares) {
  const std::string arn = model_.add_topic("orders");
  LiveHost host("sns", options());
  const std::string where = "SNS at http://127.0.0.1:" + std::to_string(server_.port());
  EXPECT_EQ(host.wait_for_broker(true), where + ", not asked yet");
  model_.fail_requests(1000, 503, "ServiceUnavailable");
  EXPECT_EQ(host.handle(row("1", arn)).status, SLUICE_RETRY);
  EXPECT_THAT(host.wait_for_broker(false), HasSubstr(where + ": ServiceUnavailable"));
  model_.fail_requests(0, 0, "");
  EXPECT_EQ(host.handle(row("1", arn)).status, SLUICE_DONE);
  EXPECT_EQ(host.wait_for_broker(true), where + " answers");
  model_.remove_topic(arn);
  EXPECT_EQ(host.handle(row("2", arn)).status, SLUICE_SNOOZE);
  EXPECT_EQ(host.wait_for_broker(true), where + " answers");
  model_.exchange_key("ANOTHER");
  EXPECT_EQ(host.handle(row("3", arn)).status, SLUICE_RETRY);
  EXPECT_THAT(host.wait_for_broker(false), HasSubstr("ExpiredToken"));
}

}  // namespace
}  // namespace sluice::publishers
