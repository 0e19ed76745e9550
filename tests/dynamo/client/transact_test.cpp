// Transactions: when they are repeated, and what is told of one that was cancelled.

#include <gmock/gmock.h>

#include <thread>

#include "dynamo/client.hpp"
#include "dynamo/codec/requests.hpp"
#include "dynamo/credentials/chain.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::dynamo {
namespace {

using testing::HasSubstr;

constexpr const char* kDone = R"({"ConsumedCapacity":[{"TableName":"t","CapacityUnits":2.0},{"CapacityUnits":4.0}]})";
constexpr const char* kTransactServerError = R"({"__type":"x#InternalServerError","message":"no"})";

std::string cancelled(const std::string& reasons) {
  return R"({"__type":"x#TransactionCanceledException","Message":"Transaction cancelled","CancellationReasons":[)" +
         reasons + "]}";
}

struct TransactTest : testing::Test {
  Result<ItemOutput> transact(const std::string& token = "token") {
    TransactWriteRequest request;
    request.actions.push_back({.kind = TransactAction::Kind::remove, .table = "t", .item = {{"id", "a"}}});
    request.actions.push_back({.kind = TransactAction::Kind::put, .table = "u", .item = {{"id", "b"}}});
    request.token = token;
    return client.transact(request, Deadline::never());
  }

  ClientOptions options{{.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"}};
  test::FakeTransport transport;
  test::model::FixedCredentials credentials;
  test::FakeClock clock;
  test::FakeRandom random;
  Client client{options, transport, credentials, clock, random};
};

TEST_F(TransactTest, CountsWhatAllTablesTook) {
  transport.answer(200, kDone);
  const auto output = transact();
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(output->capacity.write, 6.0);
  EXPECT_THAT(transport.requests().at(0).body, HasSubstr(R"("ClientRequestToken":"token")"));
}

TEST_F(TransactTest, IsRepeatedWithItsTokenThoughItsOutcomeIsUnknown) {
  transport.answer(500, kTransactServerError);
  transport.answer(200, "half of an ans");
  transport.answer(200, kDone);
  EXPECT_TRUE(transact());
  ASSERT_EQ(transport.requests().size(), 3U);
  EXPECT_EQ(transport.requests().at(0).body, transport.requests().at(2).body);
}

TEST_F(TransactTest, IsNotRepeatedWithoutAToken) {
  transport.answer(500, kTransactServerError);
  const auto output = transact("");
  ASSERT_FALSE(output);
  EXPECT_TRUE(output.error().outcome_unknown);
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST_F(TransactTest, StaysUnknownWhenNoTryLearntMore) {
  transport.answer(500, kTransactServerError);
  for (int i = 0; i < 3; ++i) {
    transport.answer(400, R"({"__type":"x#ThrottlingException","message":"slow down"})");
  }
  const auto output = transact();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::throttled);
  EXPECT_TRUE(output.error().outcome_unknown) << "the first try may have taken effect";
}

TEST(Transact, StaysUnknownWhenTheClientStopsBeforeTheNextTry) {
  test::FakeTransport transport;
  transport.answer(500, kTransactServerError);
  transport.answer(400, R"({"__type":"x#ThrottlingException","message":"slow down"})");
  test::model::FixedCredentials credentials;
  const SystemClock clock;  // the wait after the throttle is a real one, of two seconds
  test::FakeRandom random(0.999);
  Client client({{.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"}}, transport, credentials, clock, random);
  std::optional<Error> error;
  std::jthread caller([&] {
    TransactWriteRequest request;
    request.actions.push_back({.kind = TransactAction::Kind::remove, .table = "t", .item = {{"id", "a"}}});
    request.token = "token";
    error = client.transact(request, Deadline::after(clock, std::chrono::hours(1))).error();
  });
  transport.wait_for_requests(2);
  client.stop();
  caller.join();
  EXPECT_EQ(error->kind, ErrorKind::cancelled);
  EXPECT_TRUE(error->outcome_unknown) << "the first try may have taken effect";
}

TEST_F(TransactTest, ThatIsStillAtWorkIsAskedForAgain) {
  for (int i = 0; i < 4; ++i) {
    transport.answer(400, R"({"__type":"x#TransactionInProgressException","message":"in progress"})");
  }
  const auto output = transact();
  ASSERT_FALSE(output);
  EXPECT_EQ(transport.requests().size(), 4U);
  EXPECT_TRUE(output.error().outcome_unknown);
}

TEST_F(TransactTest, ConflictsPassByThemselves) {
  transport.answer(400, cancelled(R"({"Code":"None"},{"Code":"TransactionConflict","Message":"ongoing"})"));
  transport.answer(200, kDone);
  EXPECT_TRUE(transact());
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(TransactTest, ARefusalTellsWhichActionStoodInTheWay) {
  transport.answer(500, kTransactServerError);
  transport.answer(400,
                   cancelled(R"({"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"The conditional\n x"})"));
  const auto output = transact();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::conditional_check_failed);
  EXPECT_FALSE(output.error().outcome_unknown) << "with this token, the try before has not taken effect";
  const auto& reasons = output.error().cancellation_reasons;
  ASSERT_EQ(reasons.size(), 2U);
  EXPECT_FALSE(reasons[0].stood_in_the_way());
  EXPECT_TRUE(reasons[1].stood_in_the_way());
  EXPECT_EQ(reasons[1].code, "ConditionalCheckFailed");
  EXPECT_EQ(reasons[1].message, "The conditional x");
}

TEST_F(TransactTest, OtherActionsUnderAUsedTokenAreADefectAndNotRepeated) {
  transport.answer(400, R"({"__type":"x#IdempotentParameterMismatchException","message":"other parameters"})");
  const auto output = transact();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::validation);
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST_F(TransactTest, SpellsEachKindOfAction) {
  TransactWriteRequest request;
  request.actions.push_back({.kind = TransactAction::Kind::update,
                             .table = "t",
                             .item = {{"id", "a"}},
                             .update = "ADD #n :n",
                             .condition = "attribute_exists(id)",
                             .names = {{"#n", "number"}},
                             .values = {{":n", AttributeValue::number(1)}}});
  request.actions.push_back(
      {.kind = TransactAction::Kind::check, .table = "t", .item = {{"id", "b"}}, .condition = "#n = :n"});
  EXPECT_EQ(encode(request),
            R"--({"TransactItems":[{"Update":{"TableName":"t","Key":{"id":{"S":"a"}},"UpdateExpression":"ADD #n :n",)--"
            R"--("ConditionExpression":"attribute_exists(id)","ExpressionAttributeNames":{"#n":"number"},)--"
            R"--("ExpressionAttributeValues":{":n":{"N":"1"}}}},)--"
            R"--({"ConditionCheck":{"TableName":"t","Key":{"id":{"S":"b"}},"ConditionExpression":"#n = :n"}}],)--"
            R"--("ReturnConsumedCapacity":"TOTAL"})--");
}

}  // namespace
}  // namespace sluice::dynamo
