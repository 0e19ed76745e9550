#include "dynamo/transport/curl_transport.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "tests/dynamo/transport/transport_support.hpp"

namespace sluice::dynamo {
namespace {

using test::Fault;
using test::TcpGate;
using testing::HasSubstr;
using testing::Not;

TEST(CurlTransport, CarriesMethodHeadersAndBodyAsGiven) {
  const auto gate = echo_gate();
  RunningTransport running;
  HttpRequest request;
  request.url = gate->url() + "/a/b?c=d";
  request.headers = {{"X-Amz-Target", "DynamoDB_20120810.Query"}, {"X-Empty", ""}};
  request.body = std::string("a\0b\r\n", 5);
  const auto result = running.send(std::move(request)).get();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->body, std::string("a\0b\r\n", 5));
  const std::string seen = gate->last_request();
  EXPECT_THAT(seen, HasSubstr("POST /a/b?c=d HTTP/1.1\r\n"));
  EXPECT_THAT(seen, HasSubstr("X-Amz-Target: DynamoDB_20120810.Query\r\n"));
  EXPECT_THAT(seen, HasSubstr("X-Empty:\r\n"));
  EXPECT_THAT(seen, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(seen, Not(HasSubstr("Accept-Encoding")));
  EXPECT_THAT(seen, Not(HasSubstr("Expect")));
}

TEST(CurlTransport, DoesNotWaitFor100ContinueBeforeALargeBody) {
  const auto gate = echo_gate();
  RunningTransport running;
  const std::string body(3U << 20U, 'x');
  const auto result = running.post(gate->url(), body);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->body, body);
  EXPECT_THAT(gate->last_request().substr(0, 500), Not(HasSubstr("Expect")));
}

TEST(CurlTransport, ReusesOneHandleForOneMethodAfterAnother) {
  const auto gate = echo_gate();
  RunningTransport running;
  for (const char* method : {"PUT", "GET", "POST", "GET", "PUT", "POST"}) {
    HttpRequest request;
    request.method = method;
    request.url = gate->url() + "/x";
    request.body = std::string_view(method) == "GET" ? "" : method;
    const auto result = running.send(std::move(request)).get();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(gate->last_request().substr(0, 3), std::string_view(method).substr(0, 3));
    EXPECT_EQ(result->body, std::string_view(method) == "GET" ? "" : method);
  }
  EXPECT_EQ(gate->connections(), 1U);
}

TEST(CurlTransport, LowersTheNamesOfResponseHeadersAndTrimsTheirValues) {
  TcpGate gate(
      [](const std::string&) { return TcpGate::response(200, "{}", "X-Amz-CRC32:  12 \r\nVia: a\r\nVia: b\r\n"); });
  RunningTransport running;
  const auto result = running.post(gate.url());
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_NE(result->header("x-amz-crc32"), nullptr);
  EXPECT_EQ(*result->header("x-amz-crc32"), "12");
  EXPECT_THAT(result->headers, testing::Contains(testing::Pair("via", "b")));
}

TEST(CurlTransport, FollowsNoRedirect) {
  TcpGate gate([](const std::string&) { return TcpGate::response(302, "", "Location: http://127.0.0.1:1/\r\n"); });
  RunningTransport running;
  const auto result = running.post(gate.url());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 302);
  EXPECT_EQ(gate.requests(), 1U);
}

TEST(CurlTransport, KeepsOnlyTheHeadersOfTheFinalAnswer) {
  TcpGate gate([](const std::string&) {
    return "HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" + TcpGate::response(200, "{}", "X-Late: 1\r\n");
  });
  RunningTransport running;
  const auto result = running.post(gate.url());
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->status, 200);
  EXPECT_EQ(result->header("x-early"), nullptr);
  EXPECT_NE(result->header("x-late"), nullptr);
}

TEST(CurlTransport, RefusesAHeaderWithALineBreak) {
  const auto gate = echo_gate();
  RunningTransport running;
  HttpRequest request;
  request.url = gate->url();
  request.headers = {{"Authorization", "secret\r\nX-Injected: 1"}};
  const auto result = running.send(std::move(request)).get();
  ASSERT_FALSE(result);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_THAT(result.error().message, HasSubstr("line break"));
  EXPECT_THAT(result.error().message, Not(HasSubstr("secret")));
  EXPECT_EQ(gate->requests(), 0U);
  EXPECT_TRUE(running.post(gate->url()));  // the handle that refused is fit for the next
}

TEST(CurlTransport, RefusesOtherSchemesThanHttp) {
  RunningTransport running;
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "not a url", ""}) {
    const auto result = running.post(url);
    ASSERT_FALSE(result) << url;
    EXPECT_EQ(result.error().kind, ErrorKind::transport) << url;
    EXPECT_FALSE(result.error().outcome_unknown) << url;
  }
}

TEST(CurlTransport, LimitsTheSizeOfABody) {
  TcpGate gate([](const std::string&) { return TcpGate::response(200, std::string(2000, 'x')); });
  CurlTransportOptions options;
  options.max_body_bytes = 1000;
  RunningTransport running(options);
  const auto result = running.post(gate.url());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::malformed_response);
  EXPECT_TRUE(result.error().outcome_unknown);
}

TEST(CurlTransport, QueuesBeyondItsConnections) {
  const auto gate = echo_gate();
  CurlTransportOptions options;
  options.max_connections = 2;
  RunningTransport running(options);
  std::vector<std::future<HttpResult>> results;
  for (int i = 0; i < 50; ++i) {
    HttpRequest request;
    request.url = gate->url();
    request.body = std::to_string(i);
    results.push_back(running.send(std::move(request)));
  }
  for (int i = 0; i < 50; ++i) {
    const auto result = results[static_cast<std::size_t>(i)].get();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->body, std::to_string(i));
  }
  EXPECT_LE(gate->connections(), 2U);
}

TEST(CurlTransport, RefusesMoreThanMayWait) {
  const auto gate = echo_gate();
  gate->break_next(Fault::stall, 100);
  CurlTransportOptions options;
  options.max_connections = 1;
  options.max_waiting = 3;
  RunningTransport running(options);
  std::vector<std::future<HttpResult>> results;
  results.push_back(running.send({.url = gate->url(), .body = {}}));
  gate->wait_for_requests(1);
  for (int i = 0; i < 3; ++i) {
    results.push_back(running.send({.url = gate->url(), .body = {}}));
  }
  const auto refused = running.send({.url = gate->url(), .body = {}}).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::transport);
  EXPECT_FALSE(refused.error().outcome_unknown);
  EXPECT_THAT(refused.error().message, HasSubstr("more than 3 requests wait"));
}

TEST(CurlTransport, TimesOutWhatWaitsForAConnection) {
  const auto gate = echo_gate();
  gate->break_next(Fault::stall, 100);
  CurlTransportOptions options;
  options.max_connections = 1;
  RunningTransport running(options);
  auto first = running.send({.url = gate->url(), .body = {}});
  gate->wait_for_requests(1);
  const auto second = running.post(gate->url(), "{}", std::chrono::milliseconds(20));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::timeout);
  EXPECT_FALSE(second.error().outcome_unknown);
  running.transport.stop();
  EXPECT_TRUE(first.get().error().outcome_unknown);
}

TEST(CurlTransport, AnswersADeadlineThatHasPassedWithoutSending) {
  const auto gate = echo_gate();
  RunningTransport running;
  const auto result = running.post(gate->url(), "{}", Duration::zero());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::timeout);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_EQ(gate->requests(), 0U);
}

TEST(CurlTransport, RefusesBeforeStartAndAfterStop) {
  const auto gate = echo_gate();
  SystemClock clock;
  CurlTransport transport(clock);
  const auto kind_of_a_send = [&] {
    ErrorKind kind{};
    transport.send({.url = gate->url(), .body = {}}, Deadline::never(),
                   [&](const HttpResult& result) { kind = result.error().kind; });
    return kind;
  };
  EXPECT_EQ(kind_of_a_send(), ErrorKind::cancelled);
  transport.start();
  transport.start();
  transport.stop();
  transport.stop();
  transport.start();
  EXPECT_EQ(kind_of_a_send(), ErrorKind::cancelled);
  EXPECT_EQ(gate->requests(), 0U);
}

TEST(CurlTransport, StopsBeforeItWasStarted) {
  SystemClock clock;
  CurlTransport transport(clock);
  transport.stop();
}

TEST(CurlTransport, StopEndsWhatIsPending) {
  const auto gate = echo_gate();
  gate->break_next(Fault::stall, 100);
  CurlTransportOptions options;
  options.max_connections = 2;
  RunningTransport running(options);
  std::vector<std::future<HttpResult>> results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(running.send({.url = gate->url(), .body = "{}"}));
  }
  gate->wait_for_requests(2);
  running.transport.stop();
  int unknown = 0;
  for (auto& future : results) {
    const auto result = future.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::cancelled);
    unknown += result.error().outcome_unknown ? 1 : 0;
  }
  EXPECT_EQ(unknown, 2);  // only what the server has read
}

TEST(CurlTransport, SendsFromACallback) {
  const auto gate = echo_gate();
  RunningTransport running;
  std::promise<HttpResult> second;
  running.transport.send({.url = gate->url(), .body = "1"}, Deadline::never(), [&](const HttpResult& result) {
    ASSERT_TRUE(result);
    running.transport.send({.url = gate->url(), .body = "2"}, Deadline::never(),
                           [&](HttpResult inner) { second.set_value(std::move(inner)); });
  });
  const auto result = second.get_future().get();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->body, "2");
}

TEST(CurlTransport, CarriesTwoThousandRequestsOfEightThreadsOverEightConnections) {
  const auto gate = echo_gate();
  CurlTransportOptions options;
  options.max_connections = 8;
  RunningTransport running(options);
  std::atomic<int> good = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<std::future<HttpResult>> results;
      for (int i = 0; i < 250; ++i) {
        results.push_back(running.send({.url = gate->url(), .body = std::to_string(thread * 1000 + i)}));
      }
      for (int i = 0; i < 250; ++i) {
        const auto result = results[static_cast<std::size_t>(i)].get();
        good += result && result->body == std::to_string(thread * 1000 + i) ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(good, 2000);
  EXPECT_EQ(gate->requests(), 2000U);
  EXPECT_LE(gate->connections(), 8U);
}

TEST(CurlTransport, StopsWhileOthersSend) {
  const auto gate = echo_gate();
  RunningTransport running;
  std::atomic<int> answered = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          running.transport.send({.url = gate->url(), .body = "{}"}, Deadline::never(),
                                 [&](const HttpResult&) { ++answered; });
        }
      });
    }
    gate->wait_for_requests(10);
    running.transport.stop();
  }
  EXPECT_EQ(answered, 800);  // each exactly once, with an answer or as cancelled
}

}  // namespace
}  // namespace sluice::dynamo
