#include "dynamo/client.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "dynamo/codec/responses.hpp"
#include "dynamo/credentials/chain.hpp"
#include "dynamo/server_time.hpp"
#include "dynamo/signing/signer.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::dynamo {
namespace {

using test::FakeClock;
using test::FakeRandom;
using test::FakeTransport;
using test::header_of;
using testing::HasSubstr;

constexpr const char* kItem = R"({"Item":{"id":{"S":"a"}},"ConsumedCapacity":{"CapacityUnits":1.0}})";
constexpr const char* kServerError = R"({"__type":"x#InternalServerError","message":"no"})";
constexpr const char* kThrottle = R"({"__type":"x#ThrottlingException","message":"slow down"})";

/// Counts what it is asked; a second set of keys after a refusal.
class CountingCredentials final : public CredentialsProvider {
 public:
  Result<Credentials> get(Deadline) override {
    ++asked;
    Credentials out;
    out.access_key_id = "AKID" + std::to_string(refusals.load());
    out.secret_access_key = "secret";
    out.account_id = account_id;
    return out;
  }
  void refused(const Credentials& credentials) override {
    EXPECT_EQ(credentials.access_key_id, "AKID" + std::to_string(refusals.load()));
    ++refusals;
  }
  std::atomic<int> asked = 0;
  std::atomic<int> refusals = 0;
  std::string account_id;
};

struct ClientTest : testing::Test {
  Client& client() {
    if (!client_) {
      options.observer = [this](const CallRecord& record) {
        const MutexLock lock(mutex);
        records.push_back(record);
      };
      client_ = std::make_unique<Client>(options, transport, credentials, clock, random);
    }
    return *client_;
  }
  Result<ItemOutput> get() { return client().get_item({.table = "t", .key = {{"id", "a"}}}, Deadline::never()); }
  Result<ItemOutput> put() {
    ItemWrite request;
    request.table = "t";
    request.item = {{"id", "a"}};
    return client().write(request, Deadline::never());
  }

  ClientOptions options{{.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"}};
  FakeTransport transport;
  CountingCredentials credentials;
  FakeClock clock;
  FakeRandom random;
  Mutex mutex;
  std::vector<CallRecord> records;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, SendsASignedRequestOfTheProtocol) {
  transport.answer(200, kItem);
  const auto output = get();
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*find<std::string>(output->item, "id"), "a");
  EXPECT_EQ(output->capacity.read, 1.0);
  const auto request = transport.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_THAT(request.url, HasSubstr("http://127.0.0.1:8000"));
  EXPECT_EQ(header_of(request, "x-amz-target"), "DynamoDB_20120810.GetItem");
  EXPECT_EQ(header_of(request, "content-type"), "application/x-amz-json-1.0");
  EXPECT_EQ(header_of(request, "amz-sdk-request"), "attempt=1; max=4");
  EXPECT_EQ(header_of(request, "amz-sdk-invocation-id").size(), 36U);
  EXPECT_THAT(header_of(request, "user-agent"), testing::StartsWith("sluice/"));
  EXPECT_THAT(header_of(request, "authorization"), HasSubstr("Credential=AKID0/20260102/eu-west-1/dynamodb/"));
  EXPECT_THAT(header_of(request, "authorization"), HasSubstr("x-amz-target"));
  EXPECT_EQ(header_of(request, "accept-encoding"), "");
}

TEST_F(ClientTest, TellsTheObserverEveryAttempt) {
  transport.answer(500, kServerError);
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].operation, "GetItem");
  EXPECT_EQ(records[0].table, "t");
  EXPECT_EQ(records[0].error, ErrorKind::server);
  EXPECT_EQ(records[1].error, std::nullopt);
  EXPECT_EQ(records[1].capacity.read, 1.0);
}

TEST_F(ClientTest, RepeatsAReadUpToFourTimesUnderOneInvocationId) {
  for (int i = 0; i < 5; ++i) {
    transport.answer(500, kServerError);
  }
  const auto output = get();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::server);
  EXPECT_FALSE(output.error().outcome_unknown);
  const auto requests = transport.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(header_of(requests[3], "amz-sdk-request"), "attempt=4; max=4");
  EXPECT_EQ(header_of(requests[3], "amz-sdk-invocation-id"), header_of(requests[0], "amz-sdk-invocation-id"));
}

TEST_F(ClientTest, DoesNotRepeatAWriteThatMayHaveTakenEffect) {
  Error reset(ErrorKind::transport, "reset");
  reset.outcome_unknown = true;
  const HttpResult failures[] = {FakeTransport::response(500, kServerError), reset,
                                 FakeTransport::response(200, "{}", {{"x-amz-crc32", "1"}}),
                                 FakeTransport::response(200, "{\"Attributes\":")};
  std::size_t sent = 0;
  for (const auto& failure : failures) {
    transport.answer(failure);
    const auto output = put();
    ASSERT_FALSE(output);
    EXPECT_TRUE(output.error().outcome_unknown) << output.error().message;
    EXPECT_EQ(transport.requests().size(), ++sent);
  }
}

TEST_F(ClientTest, RepeatsAReadWhoseAnswerIsDamaged) {
  transport.answer(200, kItem, {{"x-amz-crc32", "1"}});
  transport.answer(200, "{\"Item\":");
  transport.answer(200, kItem, {{"x-amz-crc32", std::to_string(crc32(kItem))}});
  ASSERT_TRUE(get());
  EXPECT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].error, ErrorKind::malformed_response);
}

TEST_F(ClientTest, RepeatsAWriteThatWasNotSentOrWasThrottled) {
  transport.answer(Error(ErrorKind::transport, "connection refused"));
  transport.answer(400, kThrottle);
  transport.answer(200, "{}");
  EXPECT_TRUE(put());
  EXPECT_EQ(transport.requests().size(), 3U);
}

TEST_F(ClientTest, DoesNotRepeatWhatTheCallerDidWrong) {
  transport.answer(400, R"({"__type":"x#ConditionalCheckFailedException","message":"no"})");
  EXPECT_EQ(put().error().kind, ErrorKind::conditional_check_failed);
  transport.answer(400, R"({"__type":"x#ResourceNotFoundException","message":"no"})");
  EXPECT_EQ(get().error().kind, ErrorKind::resource_not_found);
  EXPECT_EQ(transport.requests().size(), 2U);
}

TEST_F(ClientTest, StopsRepeatingWhenTheQuotaIsUsedUp) {
  for (int i = 0; i < 200; ++i) {
    transport.answer(500, kServerError);
  }
  int calls = 0;
  while (transport.requests().size() < 100) {
    EXPECT_FALSE(get());
    ++calls;
  }
  // 500 tokens pay for 35 retries in all; after them every call is one request.
  EXPECT_EQ(transport.requests().size(), static_cast<std::size_t>(calls) + 35);
}

TEST_F(ClientTest, ReplacesExpiredCredentialsOnce) {
  transport.answer(400, R"({"__type":"x#ExpiredTokenException","message":"The security token is expired"})");
  transport.answer(200, "{}");
  ASSERT_TRUE(put());
  const auto requests = transport.requests();
  EXPECT_THAT(header_of(requests.at(1), "authorization"), HasSubstr("Credential=AKID1/"));

  transport.answer(400, R"({"__type":"x#ExpiredTokenException","message":"The security token is expired"})");
  transport.answer(400, R"({"__type":"x#ExpiredTokenException","message":"The security token is expired"})");
  const auto output = put();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::access_denied);
  EXPECT_EQ(credentials.refusals, 2);
}

TEST_F(ClientTest, CorrectsItsClockFromTheServersOnce) {
  const std::string refusal = R"({"__type":"x#InvalidSignatureException","message":"Signature expired"})";
  transport.answer(400, refusal, {{"date", "Fri, 02 Jan 2026 05:04:05 GMT"}});  // two hours ahead of the fake clock
  transport.answer(200, "{}");
  ASSERT_TRUE(put());
  EXPECT_EQ(header_of(transport.requests().at(0), "x-amz-date"), "20260102T030405Z");
  EXPECT_EQ(header_of(transport.requests().at(1), "x-amz-date"), "20260102T050405Z");

  transport.answer(200, "{}");
  ASSERT_TRUE(put());
  EXPECT_EQ(header_of(transport.requests().at(2), "x-amz-date"), "20260102T050405Z");  // it is remembered

  transport.answer(400, refusal, {{"date", "Fri, 02 Jan 2026 05:04:05 GMT"}});
  EXPECT_EQ(put().error().kind, ErrorKind::access_denied);  // the time was right: the key is wrong
  EXPECT_EQ(transport.requests().size(), 4U);
}

TEST_F(ClientTest, DoesNotSendPastTheDeadline) {
  const auto output = client().get_item({.table = "t", .key = {{"id", "a"}}}, Deadline::at(clock.steady_now()));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::timeout);
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ClientTest, BoundsAnAttemptByItsOwnTimeAndTheCallersDeadline) {
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  EXPECT_EQ(transport.deadlines().at(0).time(), clock.steady_now() + std::chrono::seconds(10));
  transport.answer(200, kItem);
  const auto soon = Deadline::after(clock, std::chrono::seconds(3));
  ASSERT_TRUE(client().get_item({.table = "t", .key = {{"id", "a"}}}, soon));
  EXPECT_EQ(transport.deadlines().at(1).time(), soon.time());
}

TEST_F(ClientTest, NeedsARegion) {
  options.region = "";
  const auto output = get();
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, ErrorKind::validation);
  EXPECT_THAT(output.error().message, HasSubstr("AWS_REGION"));
}

TEST_F(ClientTest, UsesTheAccountsEndpoint) {
  options.endpoint = "";
  credentials.account_id = "111111111111";
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  EXPECT_THAT(transport.requests().at(0).url, HasSubstr("https://111111111111.ddb.eu-west-1.amazonaws.com"));
  EXPECT_THAT(*client().endpoint(Deadline::never()), HasSubstr("111111111111.ddb"));
  credentials.account_id = "";
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  EXPECT_THAT(transport.requests().at(1).url, HasSubstr("https://dynamodb.eu-west-1.amazonaws.com"));
}

TEST_F(ClientTest, SignsForTheRegionThatTheEndpointRulesName) {
  options.endpoint = "";
  options.region = "local";
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  EXPECT_THAT(transport.requests().at(0).url, HasSubstr("http://localhost:8000"));
  EXPECT_THAT(header_of(transport.requests().at(0), "Authorization"), HasSubstr("/us-east-1/dynamodb/aws4_request"));
}

TEST_F(ClientTest, SignsForTheConfiguredRegionElsewhere) {
  transport.answer(200, kItem);
  ASSERT_TRUE(get());
  EXPECT_THAT(header_of(transport.requests().at(0), "Authorization"), HasSubstr("/eu-west-1/dynamodb/aws4_request"));
}

TEST_F(ClientTest, RunsBatchesSideBySideInTheirOrder) {
  const std::vector<std::vector<Statement>> batches(3, {{R"(UPDATE "q"."i" SET a=?)", {AttributeValue("x")}}});
  transport.hold();
  std::vector<Result<BatchStatementOutput>> results;
  std::jthread caller([&] { results = client().batch_execute(batches, Deadline::never()); });
  transport.wait_for_requests(3);  // all before the first answer
  for (const char* name : {"one", "two", "three"}) {
    transport.release(
        FakeTransport::response(200, std::string(R"({"Responses":[{"Item":{"n":{"S":")") + name +
                                         R"("}}}],"ConsumedCapacity":[{"TableName":"q","CapacityUnits":2.0}]})"));
  }
  caller.join();
  ASSERT_EQ(results.size(), 3U);
  ASSERT_TRUE(results[2]) << results[2].error().message;
  EXPECT_EQ(*find<std::string>(results[0]->results.at(0).item, "n"), "one");
  EXPECT_EQ(*find<std::string>(results[2]->results.at(0).item, "n"), "three");
  EXPECT_EQ(results[1]->capacity.write, 2.0);
  EXPECT_EQ(records.at(0).table, "q");
}

TEST_F(ClientTest, RepeatsOnlyTheBatchThatFailedAsAWhole) {
  const std::vector<std::vector<Statement>> batches = {{{R"(DELETE FROM "q" WHERE id=?)", {AttributeValue("1")}}},
                                                       {{R"(DELETE FROM "q" WHERE id=?)", {AttributeValue("2")}}}};
  transport.answer(400, kThrottle);
  transport.answer(500, kServerError);
  transport.answer(200, R"({"Responses":[{}]})");
  const auto results = client().batch_execute(batches, Deadline::never());
  EXPECT_TRUE(results.at(0));
  ASSERT_FALSE(results.at(1));
  EXPECT_TRUE(results.at(1).error().outcome_unknown);
  ASSERT_EQ(transport.requests().size(), 3U);
  EXPECT_EQ(transport.requests().at(2).body, transport.requests().at(0).body);
}

TEST_F(ClientTest, AsksAgainForKeysThatWereLeftUnread) {
  const std::vector<Item> keys = {{{"id", "a"}}, {{"id", "b"}}};
  transport.answer(200,
                   R"({"Responses":{"t":[{"id":{"S":"a"}}]},"UnprocessedKeys":{"t":{"Keys":[{"id":{"S":"b"}}]}}})");
  transport.answer(200, R"({"Responses":{"t":[{"id":{"S":"b"}}]},"UnprocessedKeys":{}})");
  const auto items = client().batch_get("t", keys, Deadline::never());
  ASSERT_TRUE(items) << items.error().message;
  EXPECT_EQ(items->size(), 2U);
  EXPECT_THAT(transport.requests().at(1).body, testing::Not(HasSubstr("\"a\"")));
}

TEST_F(ClientTest, GivesUpOnKeysThatStayUnread) {
  const std::vector<Item> keys = {{{"id", "a"}}};
  for (int i = 0; i < 10; ++i) {
    transport.answer(200, R"({"Responses":{},"UnprocessedKeys":{"t":{"Keys":[{"id":{"S":"a"}}]}}})");
  }
  const auto items = client().batch_get("t", keys, Deadline::never());
  ASSERT_FALSE(items);
  EXPECT_EQ(items.error().kind, ErrorKind::throttled);
  EXPECT_EQ(transport.requests().size(), 4U);
}

TEST_F(ClientTest, StopEndsACallThatWaitsForAnAnswer) {
  transport.hold();
  std::optional<Error> error;
  std::jthread caller([&] { error = put().error(); });
  transport.wait_for_requests(1);
  client_->stop();
  client_->stop();
  caller.join();
  EXPECT_EQ(error->kind, ErrorKind::cancelled);
  EXPECT_TRUE(error->outcome_unknown);
  EXPECT_TRUE(transport.release(FakeTransport::response(200, "{}")));  // too late, and harmless
  EXPECT_EQ(get().error().kind, ErrorKind::cancelled);
  EXPECT_EQ(transport.requests().size(), 1U);
}

TEST(Client, StopEndsAWaitBetweenAttempts) {
  FakeTransport transport([](const HttpRequest&) { return FakeTransport::response(400, kThrottle); });
  CountingCredentials credentials;
  const SystemClock clock;  // the wait is a real one: up to a second, then two, then four
  FakeRandom random(0.999);
  Client client({{.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"}, 100}, transport, credentials, clock,
                random);
  std::optional<Error> error;
  const auto begun = clock.steady_now();
  std::jthread caller([&] {
    error =
        client.get_item({.table = "t", .key = {{"id", "a"}}}, Deadline::after(clock, std::chrono::hours(1))).error();
  });
  transport.wait_for_requests(1);
  client.stop();
  caller.join();
  EXPECT_EQ(error->kind, ErrorKind::cancelled);
  EXPECT_LT(clock.steady_now() - begun, std::chrono::milliseconds(900));
}

TEST(ClockSkew, ReadsTheDateOfAnAnswer) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), WallTime(std::chrono::seconds(784'111'777)));
  for (const char* text :
       {"", "Sun, 06 Xyz 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 PST", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT;", "Mon, 01 Jan 9999 00:00:00 GMT",
        "Sat, 01 Jan 0000 00:00:00 GMT", "Mon, 31 Feb 2025 16:00:00 GMT", "Mon, 24 Nov 2025 16:00:60 GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

TEST(ClockSkew, NoTimeZoneCountsLeapSecondsIn) {
  ::setenv("TZ", "right/UTC", 1);
  ::tzset();
  const WallTime time(std::chrono::seconds(1'764'000'000));
  EXPECT_EQ(parse_http_date("Mon, 24 Nov 2025 16:00:00 GMT"), time);
  EXPECT_EQ(signing_timestamp(time), "20251124T160000Z");
  ::unsetenv("TZ");
  ::tzset();
}

}  // namespace
}  // namespace sluice::dynamo
