
#include <gtest/gtest.h>

#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

Error decode(int status, const std::string& name, const std::string& more = "") {
  return decode_error(status, {},
                      R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + name + R"(","message":"m")" + more + "}");
}

TEST(ErrorResponse, NamesToKinds) {
  const std::pair<ErrorKind, std::vector<std::string>> cases[] = {
      {ErrorKind::conditional_check_failed,
       {"ConditionalCheckFailedException", "ConditionalCheckFailed", "DuplicateItem", "DuplicateItemException"}},
      {ErrorKind::throttled,
       {"ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingException",
        "ThrottlingError", "Throttling", "ThrottledException", "RequestThrottled", "RequestThrottledException",
        "TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded", "LimitExceededException",
        "SlowDown", "TransactionInProgressException", "EC2ThrottledException"}},
      {ErrorKind::server,
       {"InternalServerError", "InternalFailure", "ServiceUnavailable", "ServiceUnavailableException",
        "ReplicatedWriteConflictException", "TransactionConflictException", "TransactionConflict",
        "PriorRequestNotComplete"}},
      {ErrorKind::resource_not_found, {"ResourceNotFoundException", "ResourceNotFound", "TableNotFoundException"}},
      {ErrorKind::access_denied,
       {"AccessDeniedException", "AccessDenied", "UnrecognizedClientException", "ExpiredTokenException", "ExpiredToken",
        "InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignatureException",
        "MissingAuthenticationTokenException", "MissingAuthenticationToken", "InvalidClientTokenId", "RequestExpired",
        "NotAuthorized", "OptInRequired"}},
      {ErrorKind::transport, {"RequestTimeout", "RequestTimeoutException"}},
      {ErrorKind::validation,
       {"ValidationException", "ValidationError", "SerializationException", "ItemCollectionSizeLimitExceededException",
        "ResourceInUseException", "UnknownOperationException", "IdempotentParameterMismatchException", "SomethingNew"}},
  };
  for (const auto& [kind, names] : cases) {
    for (const std::string& name : names) {
      const Error error = decode(400, name);
      EXPECT_EQ(to_string(error.kind), to_string(kind)) << name;
      EXPECT_EQ(error.exception_name, name);
      EXPECT_EQ(error.message, name + ": m");
    }
  }
}

TEST(ErrorResponse, OutcomeIsOpenAfterServerErrorsOnly) {
  EXPECT_TRUE(decode(500, "InternalServerError").outcome_unknown);
  EXPECT_TRUE(decode(503, "ServiceUnavailable").outcome_unknown);
  EXPECT_TRUE(decode(500, "SomethingNew").outcome_unknown);
  EXPECT_TRUE(decode_error(504, {}, "").outcome_unknown);
  EXPECT_FALSE(decode(503, "ThrottlingException").outcome_unknown) << "a throttle is a refusal, whatever its status";
  EXPECT_FALSE(decode(503, "SlowDown").outcome_unknown);
  EXPECT_FALSE(decode(400, "ProvisionedThroughputExceededException").outcome_unknown);
  EXPECT_FALSE(decode(400, "TransactionConflictException").outcome_unknown);
  EXPECT_FALSE(decode(400, "ReplicatedWriteConflictException").outcome_unknown);
  EXPECT_FALSE(decode(400, "ConditionalCheckFailedException").outcome_unknown);
  EXPECT_FALSE(decode(400, "SomethingNew").outcome_unknown);
  EXPECT_FALSE(decode_error(407, {}, "").outcome_unknown);
}

TEST(ErrorResponse, ThrottlingReasonsInBothSpellings) {
  const std::string reasons =
      R"([{"reason":"IndexWriteKeyRangeThroughputExceeded","resource":"arn:aws:dynamodb:us-east-1:1:table/t/index/i"},{"Reason":"TableReadAccountLimitExceeded"}])";
  for (const std::string member : {"ThrottlingReasons", "throttlingReasons"}) {
    const Error error = decode(400, "ThrottlingException", ",\"" + member + "\":" + reasons);
    EXPECT_EQ(error.throttling_reasons,
              (std::vector<std::string>{"IndexWriteKeyRangeThroughputExceeded", "TableReadAccountLimitExceeded"}));
    EXPECT_EQ(
        error.message,
        "ThrottlingException: m (throttled by IndexWriteKeyRangeThroughputExceeded, TableReadAccountLimitExceeded on "
        "arn:aws:dynamodb:us-east-1:1:table/t/index/i)");
  }
}

TEST(ErrorResponse, CancelledTransactionsTakeTheKindOfTheirReasons) {
  const auto cancelled = [](const std::string& codes) {
    return decode_error(
        400, {},
        R"({"__type":"x#TransactionCanceledException","Message":"Transaction cancelled","CancellationReasons":)" +
            codes + "}");
  };
  const Error failed = cancelled(
      R"([{"Code":"None"},{"Code":"ThrottlingError"},{"Code":"ConditionalCheckFailed","Message":"no","Item":{"id":{"S":"a"}}}])");
  EXPECT_EQ(failed.kind, ErrorKind::conditional_check_failed);
  EXPECT_EQ(
      failed.message,
      "TransactionCanceledException: Transaction cancelled (reasons: None, ThrottlingError, ConditionalCheckFailed)");
  EXPECT_EQ(cancelled(R"([{"Code":"TransactionConflict"},{"Code":"None"}])").kind, ErrorKind::server);
  EXPECT_EQ(cancelled(R"([{"Code":"TransactionConflict"},{"Code":"ProvisionedThroughputExceeded"}])").kind,
            ErrorKind::throttled);
  EXPECT_EQ(cancelled(R"([{"Code":"ValidationError"}])").kind, ErrorKind::validation);
  EXPECT_EQ(cancelled("[]").kind, ErrorKind::validation);
}

TEST(ErrorResponse, TellsWhenToAskAgain) {
  const Error error = decode_error(400, {{"x-amz-retry-after", "1500"}}, R"({"__type":"x#ThrottlingException"})");
  EXPECT_EQ(error.retry_after_ms, 1500);
  EXPECT_EQ(error.message, "ThrottlingException");
  EXPECT_EQ(decode_error(400, {}, "{}").retry_after_ms, -1);
  for (const std::string value : {"", "x", "-5", "1.5", "1s", "99999999999999999999999"}) {
    EXPECT_EQ(decode_error(400, {{"x-amz-retry-after", value}}, "{}").retry_after_ms, -1) << value;
  }
  EXPECT_EQ(decode_error(400, {{"x-amz-retry-after", "999999999999"}}, "{}").retry_after_ms, 86'400'000);
}

TEST(ErrorResponse, TypeIsStrippedOnBothSides) {
  EXPECT_EQ(decode_error(400, {}, R"({"__type":"ValidationException"})").exception_name, "ValidationException");
  EXPECT_EQ(decode_error(400, {}, R"({"__type":"a#b#ValidationException:http://x/"})").exception_name,
            "ValidationException");
  EXPECT_EQ(decode_error(400, {}, R"({"Message":"big M","__type":"x#Y"})").message, "Y: big M");
}

TEST(ErrorResponse, WhatIsNotDynamoDbsGetsAReadableLine) {
  const Error proxy =
      decode_error(502, {}, "<html><head>\n<title>502 Bad\tGateway</title></head>\r\n<body><hr>nginx</body></html>");
  EXPECT_EQ(proxy.kind, ErrorKind::server);
  EXPECT_TRUE(proxy.outcome_unknown);
  EXPECT_EQ(proxy.message,
            "HTTP 502 from something that is not DynamoDB (check the endpoint, or a proxy on the way): 502 Bad Gateway "
            "nginx");
  EXPECT_NE(decode_error(503, {}, "").message.find("an empty body"), std::string::npos);
  EXPECT_EQ(decode_error(403, {}, "Forbidden").kind, ErrorKind::access_denied);
  EXPECT_EQ(decode_error(407, {}, "").kind, ErrorKind::access_denied);
  EXPECT_EQ(decode_error(404, {}, "nope").kind, ErrorKind::malformed_response);
  EXPECT_EQ(decode_error(301, {}, "").kind, ErrorKind::malformed_response);
  EXPECT_EQ(decode_error(429, {}, "").kind, ErrorKind::throttled);
  EXPECT_EQ(decode_error(413, {}, R"({"message":"Request Too Long"})").kind, ErrorKind::validation);
}

TEST(ErrorResponse, HostileBodiesGiveOneBoundedLine) {
  const std::string long_text(100'000, 'x');
  for (const std::string& body :
       {""s, "{"s, "null"s, "[]"s, "{\"__type\":null}"s, "{\"__type\":1,\"message\":[]}"s, "\0\1\2"s, "\xff\xfe"s,
        "\n\n\n"s, "{\"__type\":\"x y\\n\"}"s, "{\"__type\":\"#\"}"s,
        "{\"__type\":\"A\",\"message\":\"" + long_text + "\"}", long_text, std::string(100'000, '<'),
        std::string(100'000, '['), "{\"__type\":\"A\",\"message\":\"a\\nb\\u0000c\xff\"}"s,
        "{\"__type\":\"A\",\"ThrottlingReasons\":7,\"CancellationReasons\":[1,[],{\"Code\":{}}]}"s,
        "{\"__type\":\"" + long_text + "\"}", "{\"__type\":\"A\",\"message\":\"" + [] {
          std::string text;
          for (int i = 0; i < 1000; ++i) {
            text += "\u20ac";
          }
          return text;
        }() + "\"}"}) {
    const Error error = decode_error(500, {}, body);
    EXPECT_FALSE(error.message.empty());
    EXPECT_LE(error.message.size(), kMaxErrorText);
    for (const char c : error.message) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20);
    }
  }
}

TEST(OneLine, CollapsesAndBounds) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("  a \n\t b\x7f\x01"
                     "c  "),
            "a b c");
  EXPECT_EQ(one_line("\xff"), "\xEF\xBF\xBD");
  const std::string line = one_line(std::string(2000, 'x'));
  EXPECT_LE(line.size(), kMaxErrorText);
  EXPECT_EQ(line.substr(line.size() - 3), "...");
}

TEST(ErrorKind, EveryKindHasItsName) {
  std::vector<std::string> names;
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::cancelled); ++kind) {
    names.emplace_back(to_string(static_cast<ErrorKind>(kind)));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"transport", "timeout", "throttled", "server", "conditional_check_failed",
                                             "resource_not_found", "access_denied", "no_credentials", "validation",
                                             "malformed_response", "cancelled"}));
}

}  // namespace
}  // namespace sluice::dynamo
