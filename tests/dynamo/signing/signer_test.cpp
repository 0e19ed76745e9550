#include "dynamo/signing/signer.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/timestamp.hpp"

namespace sluice::dynamo {
namespace {

using std::string_literals::operator""s;

const WallTime kTime = parse_timestamp("2015-08-30T12:36:00Z").value();
const Credentials kCredentials{.access_key_id = "AKIDEXAMPLE",
                               .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

HttpRequest request_to(const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.headers = {{"Content-Type", "application/x-amz-json-1.0"}, {"X-Amz-Target", "DynamoDB_20120810.Query"}};
  request.body = "{}";
  return request;
}

std::string header(const HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) {
      return value;
    }
  }
  return "absent";
}

/// Why a request with these headers is not signed.
std::optional<Error> refusal(Headers headers, const Credentials& credentials = kCredentials) {
  return Signer({.region = "us-east-1"}).sign(SignableRequest{.headers = headers}, credentials, kTime);
}

TEST(Signer, RefusesHeadersThatWouldForgeOthers) {
  for (const std::string& value : {"a\rb"s, "a\nX-Evil: 1"s, "a\r\n"s, "\0"s, "a\0b"s}) {
    const auto refused = refusal({{"Host", "h"}, {"X-Secret", value}});
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->kind, ErrorKind::validation);
    EXPECT_NE(refused->message.find("X-Secret"), std::string::npos);
    EXPECT_EQ(refused->message.find("Evil"), std::string::npos) << "a value may be a secret";
  }
  for (const std::string& name : {""s, "a b"s, "a:b"s, "a\n"s, "\xc3\xa9"s}) {
    EXPECT_TRUE(refusal({{"Host", "h"}, {name, "v"}})) << name;
  }
}

TEST(Signer, RefusesASessionTokenWithALineBreak) {
  Credentials credentials = kCredentials;
  credentials.session_token = "token\n";
  const auto refused = refusal({{"Host", "h"}}, credentials);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->message.find("token\n"), std::string::npos);
}

TEST(Signer, RefusesToSignWithoutHost) { EXPECT_TRUE(refusal({{"X", "1"}})); }

TEST(Signer, SignsARequestForTheWire) {
  const Signer signer({.region = "us-east-1"});
  HttpRequest request = request_to("https://dynamodb.us-east-1.amazonaws.com");
  Credentials credentials = kCredentials;
  credentials.session_token = "session";
  ASSERT_FALSE(signer.sign(request, credentials, kTime));
  EXPECT_EQ(header(request, "Host"), "dynamodb.us-east-1.amazonaws.com");
  EXPECT_EQ(header(request, "X-Amz-Date"), "20150830T123600Z");
  EXPECT_EQ(header(request, "X-Amz-Security-Token"), "session");
  // The signature was computed by botocore's SigV4Auth for the same request.
  EXPECT_EQ(header(request, "Authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, "
            "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, "
            "Signature=02a9b6824bda7fa432d7d9ec2835014820971a9297b38f2c2ecacc31d861dd60");
}

TEST(Signer, HostIsAsTheUrlHasIt) {
  const Signer signer({.region = "us-east-1"});
  const std::pair<std::string, std::string> cases[] = {{"http://127.0.0.1:8000", "127.0.0.1:8000"},
                                                       {"http://localhost:80/", "localhost"},
                                                       {"https://h:443/p", "h"},
                                                       {"https://h:80", "h:80"},
                                                       {"http://[::1]:8000/", "[::1]:8000"}};
  for (const auto& [url, host] : cases) {
    HttpRequest request = request_to(url);
    ASSERT_FALSE(signer.sign(request, kCredentials, kTime)) << url;
    EXPECT_EQ(header(request, "Host"), host);
  }
  for (const std::string url :
       {"", "dynamodb", "ftp://h", "https://", "https://user@h", "https://h/#f", "https://h h", "https://h\n"}) {
    HttpRequest request = request_to(url);
    EXPECT_TRUE(signer.sign(request, kCredentials, kTime)) << url;
  }
}

/// What it signs a small request with.
std::string signature_of(const Signer& signer, const std::string& secret, WallTime time) {
  Credentials credentials = kCredentials;
  credentials.secret_access_key = secret;
  Headers headers{{"Host", "h"}};
  EXPECT_FALSE(signer.sign(SignableRequest{.headers = headers}, credentials, time));
  return headers.back().second;
}

TEST(Signer, KeyIsRenewedWithSecretAndDay) {
  const Signer signer({.region = "us-east-1"});
  const auto sign = [&](const std::string& secret, WallTime time) {
    std::string cached = signature_of(signer, secret, time);
    EXPECT_EQ(cached, signature_of(Signer({.region = "us-east-1"}), secret, time));
    return cached;
  };
  const std::string first = sign("one", kTime);
  EXPECT_NE(sign("two", kTime), first);
  EXPECT_EQ(sign("one", kTime), first);
  EXPECT_NE(sign("one", kTime + std::chrono::hours(24)), first);
  EXPECT_EQ(sign("one", kTime), first);
}

TEST(Signer, ManyThreadsMayShareIt) {
  const Signer signer({.region = "us-east-1"});
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i) {
    expected.push_back(signature_of(signer, std::to_string(i), kTime));
  }
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(signature_of(signer, std::to_string(i), kTime), expected[i]);
      }
    });
  }
}

TEST(Signer, LeavesOutWhatProxiesChange) {
  Headers headers{{"host", "h"}, {"User-Agent", "x"}, {"Connection", "close"}, {"Expect", "100-continue"}};
  const auto canonical = canonical_request({.headers = headers});
  ASSERT_TRUE(canonical);
  EXPECT_EQ(canonical->signed_headers, "host");
}

TEST(Signer, PathsAreEncodedOnceMore) {
  Headers headers{{"host", "h"}};
  EXPECT_NE(canonical_request({.path = "/a%20b", .headers = headers})->text.find("\n/a%2520b\n"), std::string::npos);
}

TEST(SigningTimestamp, IsUtcToTheSecond) {
  EXPECT_EQ(signing_timestamp(parse_timestamp("2024-02-29T23:59:59.999999999Z").value()), "20240229T235959Z");
  EXPECT_EQ(signing_timestamp(parse_timestamp("2024-03-01T00:59:59+01:00").value()), "20240229T235959Z");
  EXPECT_EQ(signing_timestamp(WallTime{}), "19700101T000000Z");
  EXPECT_EQ(signing_timestamp(WallTime{} - std::chrono::nanoseconds(1)), "19691231T235959Z");
}

}  // namespace
}  // namespace sluice::dynamo
