// The model behind HTTP, as real processes reach it.

#include "tests/support/dynamodb_model/server.hpp"

#include <gtest/gtest.h>

#include <future>

#include "dynamo/transport/curl_transport.hpp"
#include "tests/dynamodb_model/model_rig.hpp"

namespace sluice::test::model {
namespace {

class ModelServerTest : public testing::Test {
 protected:
  ModelServerTest() { transport.start(); }
  dynamo::HttpResult ask(const std::string& operation, const std::string& body) {
    dynamo::HttpRequest request = request_of(operation, body);
    request.url = server.endpoint();
    std::promise<dynamo::HttpResult> answer;
    transport.send(std::move(request), Deadline::after(clock, std::chrono::seconds(10)),
                   [&](dynamo::HttpResult result) { answer.set_value(std::move(result)); });
    return answer.get_future().get();
  }

  SystemClock clock;
  Model model{clock, 1};
  ModelServer server{model, clock};
  dynamo::CurlTransport transport{clock};
};

TEST_F(ModelServerTest, AnswersWithTheHeadersOfDynamoDB) {
  const auto answer = ask("DescribeTable", R"({"TableName":"none"})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_NE(answer->body.find("ResourceNotFoundException"), std::string::npos);
  EXPECT_NE(answer->header("date"), nullptr);
  EXPECT_NE(answer->header("x-amz-crc32"), nullptr);
}

TEST_F(ModelServerTest, ALostAnswerIsABrokenConnection) {
  model.inject(Fault::commit_then_lose);
  const auto answer = ask("DescribeTable", R"({"TableName":"none"})");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().outcome_unknown);
  EXPECT_TRUE(ask("DescribeTable", R"({"TableName":"none"})")) << "the next one gets a new connection";
}

TEST_F(ModelServerTest, StopsWhileRequestsWait) {
  ModelSettings settings;
  settings.faults.shortest = settings.faults.longest = std::chrono::hours(1);
  model.configure(settings);
  dynamo::HttpRequest request = request_of("DescribeTable", R"({"TableName":"none"})");
  std::promise<dynamo::HttpResult> answer;
  {
    ModelServer other(model, clock);
    request.url = other.endpoint();
    transport.send(request, Deadline::after(clock, std::chrono::seconds(10)),
                   [&](dynamo::HttpResult result) { answer.set_value(std::move(result)); });
    while (model.counters().requests["DescribeTable"] == 0) {
      std::this_thread::yield();
    }
  }
  EXPECT_FALSE(answer.get_future().get());
}

}  // namespace
}  // namespace sluice::test::model
