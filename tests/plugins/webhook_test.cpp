#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <thread>

#include "tests/plugins/http_server.hpp"
#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

using Map = std::map<std::string, std::string>;
using namespace std::chrono_literals;

class WebhookTest : public ::testing::Test {
 protected:
  WebhookTest() { ::setenv("no_proxy", "*", 1); }

  /// What becomes of a message whose server answers so.
  static Result answered(const std::string& bytes, OptionMap options = {}) {
    HttpServer server([&](const HttpRequest&) { return bytes; });
    options.emplace("url", server.url());
    return LiveHost("webhook", options).handle({.body = "x"});
  }
  /// The request that a server sees.
  static HttpRequest request_for(const TestMessage& message, OptionMap options = {}) {
    HttpServer server([](const HttpRequest&) { return answer("204 No Content"); });
    options.emplace("url", server.url());
    const Result result = LiveHost("webhook", options).handle(message);
    EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
    EXPECT_EQ(server.requests().size(), 1U);
    return server.requests().at(0);
  }
};

TEST_F(WebhookTest, PostsTheBodyAndSaysWhatItIs) {
  const std::string body("a\0b\r\n\xff", 6);
  const HttpRequest request = request_for({.body = body,
                                           .id = "A-1",
                                           .queue = "orders",
                                           .content_type = "application/json",
                                           .attributes = {{"tenant", "acme"}, {"empty", ""}},
                                           .attempt = 3});
  EXPECT_EQ(request.head.rfind("POST /hook HTTP/1.1\r\n", 0), 0U) << request.head;
  EXPECT_EQ(request.body, body);
  for (const char* line : {"Content-Type: application/json", "Content-Length: 6", "X-Sluice-Message-Id: A-1",
                           "X-Sluice-Queue: orders", "X-Sluice-Attempt: 3", "Idempotency-Key: A-1",
                           "X-Sluice-Attr-tenant: acme", "X-Sluice-Attr-empty:", "User-Agent: sluice-webhook/1.0.0"}) {
    EXPECT_TRUE(request.has(line)) << line << "\n" << request.head;
  }
  EXPECT_EQ(request.head.find("Expect:"), std::string::npos);
  EXPECT_EQ(request.head.find("Authorization"), std::string::npos);
  EXPECT_EQ(request.head.find("X-Sluice-Signature"), std::string::npos);
}

TEST_F(WebhookTest, SendsEmptyAndLargeBodies) {
  EXPECT_TRUE(request_for({.body = ""}).has("Content-Length: 0"));
  EXPECT_EQ(request_for({.body = std::string(2'000'000, 'x')}).body.size(), 2'000'000U);
}

TEST_F(WebhookTest, LetsNoAttributeBreakOutOfItsHeader) {
  const HttpRequest request = request_for(
      {.body = "",
       .id = "id\r\nInjected: 1",
       .content_type = "a/b\r\nInjected: 2",
       .attributes = {{"a\r\nInjected: 3\r\n", "b\r\nInjected: 4"}, {"sp ace:", std::string("v\0w", 3)}, {"é", "é"}}});
  EXPECT_EQ(request.head.find("\r\nInjected"), std::string::npos) << request.head;
  EXPECT_TRUE(request.has("X-Sluice-Message-Id: id  Injected: 1")) << request.head;
  EXPECT_TRUE(request.has("X-Sluice-Attr-sp-ace-: v w")) << request.head;
  EXPECT_TRUE(request.has("X-Sluice-Attr---: é")) << request.head;
}

TEST_F(WebhookTest, TakesTheJobsHeadersFirst) {
  const HttpRequest request = request_for(
      {.body = "x", .attributes = {{"a", "1"}}},
      {{"headers", Map{{"content-type", "text/csv"}, {"X-Team", "pay"}, {"idempotency-key", "mine"}, {"X-Blank", ""}}},
       {"attribute_prefix", ""},
       {"method", "PUT"}});
  EXPECT_EQ(request.head.rfind("PUT /hook ", 0), 0U) << request.head;
  EXPECT_TRUE(request.has("content-type: text/csv"));
  EXPECT_TRUE(request.has("X-Team: pay"));
  EXPECT_TRUE(request.has("idempotency-key: mine"));
  EXPECT_TRUE(request.has("X-Blank:"));
  EXPECT_EQ(request.head.find("Content-Type"), std::string::npos);
  EXPECT_EQ(request.head.find("Idempotency-Key"), std::string::npos);
  EXPECT_EQ(request.head.find("X-Sluice-Attr"), std::string::npos);
}

TEST_F(WebhookTest, SignsTheBody) {
  const TestMessage message{.body = "The quick brown fox jumps over the lazy dog"};
  const std::string signature = "sha256=f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8";
  EXPECT_TRUE(request_for(message, {{"hmac_secret", "key"}}).has("X-Sluice-Signature: " + signature));
  ::setenv("SLUICE_TEST_SECRET", "key", 1);
  EXPECT_TRUE(request_for(message, {{"hmac_secret_env", "SLUICE_TEST_SECRET"}, {"hmac_header", "X-Hub"}})
                  .has("X-Hub: " + signature));
  ::unsetenv("SLUICE_TEST_SECRET");
}

TEST_F(WebhookTest, ShowsTheTokenFromTheEnvironment) {
  ::setenv("SLUICE_TEST_TOKEN", "t0ken", 1);
  EXPECT_TRUE(
      request_for({.body = ""}, {{"bearer_token_env", "SLUICE_TEST_TOKEN"}}).has("Authorization: Bearer t0ken"));
  ::setenv("SLUICE_TEST_TOKEN", "t0ken\n", 1);
  const std::string error = creation_error("webhook", {{"url", "http://a"}, {"bearer_token_env", "SLUICE_TEST_TOKEN"}});
  EXPECT_NE(error.find("control character"), std::string::npos) << error;
  EXPECT_EQ(error.find("t0ken"), std::string::npos) << "a secret must not be in an error";
  ::unsetenv("SLUICE_TEST_TOKEN");
  EXPECT_NE(
      creation_error("webhook", {{"url", "http://a"}, {"bearer_token_env", "SLUICE_TEST_TOKEN"}}).find("is not set"),
      std::string::npos);
}

TEST_F(WebhookTest, TakesTheStatusForTheOutcome) {
  for (const char* status : {"200 OK", "201 Created", "202 Accepted", "204 No Content", "299 X"}) {
    EXPECT_EQ(answered(answer(status)).status, SLUICE_DONE) << status;
  }
  for (const char* status : {"408 X", "425 X", "429 X", "500 X", "501 X", "502 X", "503 X", "504 X", "599 X"}) {
    const Result result = answered(answer(status));
    EXPECT_EQ(result.status, SLUICE_RETRY) << status;
    EXPECT_LT(result.delay, 0ns) << status;
    EXPECT_EQ(result.reason, "HTTP " + std::string(status).substr(0, 3));
  }
  for (const char* status :
       {"301 X", "302 X", "304 X", "400 X", "401 X", "403 X", "404 X", "410 X", "413 X", "418 X", "451 X"}) {
    EXPECT_EQ(answered(answer(status)).status, SLUICE_REJECT) << status;
  }
}

TEST_F(WebhookTest, ShowsTheBeginningOfAnErrorAnswer) {
  EXPECT_EQ(answered(answer("400 Bad Request", "\r\n  no such\norder\x1b")).reason, "HTTP 400: no such order ");
  const Result result = answered(answer("422 X", std::string(5000, 'e')));
  EXPECT_EQ(result.reason, "HTTP 422: " + std::string(200, 'e') + "...");
}

TEST_F(WebhookTest, HonoursRetryAfter) {
  const auto delay = [](const std::string& value, const std::string& status = "503 X") {
    return answered(answer(status, "", "Retry-After: " + value + "\r\n")).delay;
  };
  EXPECT_EQ(delay("7"), 7s);
  EXPECT_EQ(delay("120", "429 X"), 2min);
  EXPECT_EQ(delay("99999999"), 1h);
  for (const char* value : {"", "soon", "-5", "Thu, 01 Jan 1970 00:00:00 GMT"}) {
    EXPECT_LE(delay(value), 0ns) << value;
  }
  const std::time_t soon = std::time(nullptr) + 90;
  char date[64];
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", std::gmtime(&soon));
  EXPECT_GT(delay(date), 80s);
  EXPECT_LE(delay(date), 90s);
  EXPECT_EQ(answered(answer("400 X", "", "Retry-After: 7\r\n")).status, SLUICE_REJECT);
}

TEST_F(WebhookTest, CapsRetryAfter) {
  EXPECT_EQ(answered(answer("503 X", "", "Retry-After: 60\r\n"), {{"retry_after_max", "1500ms"}}).delay, 1500ms);
  EXPECT_EQ(answered(answer("503 X", "", "Retry-After: 1\r\n"), {{"retry_after_max", "1500ms"}}).delay, 1s);
}

TEST_F(WebhookTest, KeepsTheConnection) {
  HttpServer server([](const HttpRequest&) { return answer("200 OK", "fine"); });
  LiveHost host("webhook", {{"url", server.url()}});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_DONE);
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(WebhookTest, GoesOnAfterTheServerClosedTheConnection) {
  HttpServer server([](const HttpRequest&) { return answer("200 OK", "", "Connection: close\r\n"); });
  LiveHost host("webhook", {{"url", server.url()}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_DONE);
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST_F(WebhookTest, RetriesWithoutAnAnswer) {
  int closed_port = 0;
  {
    HttpServer server([](const HttpRequest&) { return kHangUp; });
    closed_port = server.port();
    const Result result = LiveHost("webhook", {{"url", server.url()}}).handle({.body = "x"});
    EXPECT_EQ(result.status, SLUICE_RETRY);
    EXPECT_NE(result.reason, "");
  }
  const Result refused =
      LiveHost("webhook", {{"url", "http://127.0.0.1:" + std::to_string(closed_port)}}).handle({.body = "x"});
  EXPECT_EQ(refused.status, SLUICE_RETRY);
  EXPECT_NE(refused.reason.find("127.0.0.1"), std::string::npos) << refused.reason;
  EXPECT_EQ(answered("SSH-2.0-not http\r\n\r\n").status, SLUICE_RETRY);
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nConnection: close\r\nX: ").status, SLUICE_RETRY);
}

TEST_F(WebhookTest, RetriesAfterItsTimeout) {
  const Result result = answered(kHang, {{"timeout", "100ms"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("timed out"), std::string::npos) << result.reason;
}

TEST_F(WebhookTest, TakesAnAcceptanceWhoseBodyDoesNotCome) {
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n").status, SLUICE_DONE);
  EXPECT_EQ(answered("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").status,
            SLUICE_DONE);
}

TEST_F(WebhookTest, ReadsNoMoreThanItsLimit) {
  std::string endless = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
  endless.append(20'000'000, 'x');
  EXPECT_EQ(answered(endless, {{"response_limit", 1000}}).status, SLUICE_DONE);
  EXPECT_EQ(answered(answer("404 X", "1234567890"), {{"response_limit", 4}}).reason, "HTTP 404: 1234");
  EXPECT_EQ(answered(answer("404 X", "1234567890"), {{"response_limit", 0}}).reason, "HTTP 404");
}

TEST_F(WebhookTest, FollowsRedirectsOnlyWhenAsked) {
  HttpServer server([](const HttpRequest& request) {
    return request.head.rfind("POST /hook", 0) == 0   ? answer("302 Found", "", "Location: /other\r\n")
           : request.head.rfind("POST /loop", 0) == 0 ? answer("307 X", "", "Location: /loop\r\n")
                                                      : answer("200 OK");
  });
  const Result refused = LiveHost("webhook", {{"url", server.url()}}).handle({.body = "x"});
  EXPECT_EQ(refused.status, SLUICE_REJECT);
  EXPECT_NE(refused.reason.find("HTTP 302 (a redirect that is not followed"), std::string::npos) << refused.reason;
  EXPECT_EQ(LiveHost("webhook", {{"url", server.url()}, {"redirects", 1}}).handle({.body = "x"}).status, SLUICE_DONE);
  EXPECT_EQ(server.requests().back().head.rfind("POST /other", 0), 0U);
  EXPECT_EQ(server.requests().back().body, "x");
  const std::string loop = "http://127.0.0.1:" + std::to_string(server.port()) + "/loop";
  EXPECT_EQ(LiveHost("webhook", {{"url", loop}, {"redirects", 3}}).handle({.body = "x"}).status, SLUICE_REJECT);
}

/// A redirect must not make a gift of the headers, which hold secrets, to whatever host it names.
TEST_F(WebhookTest, FollowsNoRedirectToAnotherOrigin) {
  HttpServer elsewhere([](const HttpRequest&) { return answer("200 OK"); });
  std::string location;
  HttpServer server([&](const HttpRequest&) { return answer("307 X", "", "Location: " + location + "\r\n"); });
  const std::string port = std::to_string(server.port());
  for (const std::string& other :
       {elsewhere.url(), "http://localhost:" + port + "/hook", "https://127.0.0.1:" + port}) {
    location = other;
    LiveHost host(
        "webhook",
        {{"url", server.url()}, {"redirects", 5}, {"headers", Map{{"X-Api-Key", "s3cret"}}}, {"hmac_secret", "key"}});
    const Result result = host.handle({.body = "x"});
    EXPECT_EQ(result.status, SLUICE_REJECT) << other;
    EXPECT_EQ(result.reason.rfind("HTTP 307 (a redirect to http", 0), 0U) << result.reason;
    EXPECT_NE(result.reason.find("another origin"), std::string::npos) << result.reason;
  }
  EXPECT_EQ(elsewhere.connections(), 0);
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(WebhookTest, ItsTimeoutCoversRedirectsToo) {
  HttpServer server([](const HttpRequest& request) {
    return request.head.rfind("POST /hook", 0) == 0 ? answer("302 X", "", "Location: /slow\r\n") : kHang;
  });
  const Result result =
      LiveHost("webhook", {{"url", server.url()}, {"redirects", 1}, {"timeout", "150ms"}}).handle({.body = "x"});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("timed out"), std::string::npos) << result.reason;
}

TEST_F(WebhookTest, BreaksOffWhenAskedToStop) {
  HttpServer server([](const HttpRequest&) { return kHang; });
  LiveHost host("webhook", {{"url", server.url()}});
  const auto stopped = [&](std::size_t request, auto how) {
    Stop stop;
    Result result;
    std::jthread worker([&] { result = host.handle({.body = "x"}, stop); });
    EXPECT_TRUE(server.wait_for_requests(request));
    how(stop);
    worker.join();
    return result;
  };
  EXPECT_EQ(stopped(1, [](Stop& stop) { stop.requested = true; }).status, SLUICE_RELEASE);
  const Result late = stopped(2, [](Stop& stop) { stop.timed_out = true; });
  EXPECT_EQ(late.status, SLUICE_RETRY);
  EXPECT_EQ(late.reason, "no answer within the job's timeout");
}

/// What a redirect that is to be followed says besides is of no interest, and the message not to blame for it.
TEST_F(WebhookTest, FollowsARedirectWhateverItsBody) {
  HttpServer server([](const HttpRequest& request) {
    return request.head.starts_with("POST /hook") ? answer("302 Found", "moved", "Location: /other\r\n")
                                                  : answer("200 OK");
  });
  const OptionMap options{{"url", server.url()}, {"redirects", 1}, {"response_limit", 0}};
  EXPECT_EQ(LiveHost("webhook", options).handle({.body = "x"}).status, SLUICE_DONE);
}

TEST_F(WebhookTest, TriesAgainWhereARedirectDoesNotComeToItsEnd) {
  HttpServer server([](const HttpRequest& request) {
    const bool redirected = request.body == "redirected" && request.head.starts_with("POST /hook");
    return redirected ? "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 10\r\n\r\n" : answer("200 OK");
  });
  LiveHost host("webhook", {{"url", server.url()}, {"redirects", 1}});
  Stop stop;
  Result result;
  std::jthread worker([&] { result = host.handle({.body = "redirected"}, stop); });
  EXPECT_TRUE(server.wait_for_requests(1));
  for (int i = 0; i < 20; ++i) {
    // By the end of these the head of the redirect has come.
    EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_DONE);
  }
  stop.requested = true;
  worker.join();
  EXPECT_EQ(result.status, SLUICE_RELEASE) << result.reason;
  const OptionMap quick{{"url", server.url()}, {"redirects", 1}, {"timeout", "200ms"}};
  const Result late = LiveHost("webhook", quick).handle({.body = "redirected"});
  EXPECT_EQ(late.status, SLUICE_RETRY) << late.reason;
}

TEST_F(WebhookTest, SendsNothingOnceAskedToStop) {
  HttpServer server([](const HttpRequest&) { return answer("200 OK"); });
  Stop stop;
  stop.requested = true;
  EXPECT_EQ(LiveHost("webhook", {{"url", server.url()}}).handle({.body = "x"}, stop).status, SLUICE_RELEASE);
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(WebhookTest, WorksAfterEveryKindOfFailure) {
  std::atomic<int> turn{0};
  HttpServer server([&](const HttpRequest&) {
    switch (turn++) {
      case 0:
        return kHangUp;
      case 1:
        return std::string("garbage\r\n\r\n");
      case 2:
        return kHang;
      default:
        return answer("200 OK");
    }
  });
  LiveHost host("webhook", {{"url", server.url()}, {"timeout", "200ms"}});
  EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_RETRY);
  EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_RETRY);
  EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_RETRY);
  EXPECT_EQ(host.handle({.body = "x"}).status, SLUICE_DONE);
}

TEST_F(WebhookTest, WorksForManyWorkersAtOnce) {
  HttpServer server([](const HttpRequest& request) { return answer("200 OK", request.body); });
  std::atomic<int> done{0};
  std::vector<std::jthread> workers;
  workers.reserve(16);
  for (int i = 0; i < 16; ++i) {
    workers.emplace_back([&] {
      LiveHost host("webhook", {{"url", server.url()}});
      for (int j = 0; j < 10; ++j) {
        done += host.handle({.body = "x"}).status == SLUICE_DONE ? 1 : 0;
      }
    });
  }
  workers.clear();
  EXPECT_EQ(done, 160);
  EXPECT_EQ(server.connections(), 16);
}

TEST_F(WebhookTest, SurvivesAConnectionThatBreaksWhileItSends) {
  ::signal(SIGPIPE, SIG_DFL);
  HttpServer server(nullptr);
  LiveHost host("webhook", {{"url", server.url()}});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(host.handle({.body = std::string(3'000'000, 'x')}).status, SLUICE_RETRY);
  }
}

TEST_F(WebhookTest, RefusesOptionsThatCannotWork) {
  const auto says = [](const std::string& option, const testing::OptionValue& value, const std::string& phrase) {
    OptionMap options{{"url", "http://127.0.0.1:1/"}};
    options.insert_or_assign(option, value);
    const std::string error = creation_error("webhook", options);
    EXPECT_NE(error.find(phrase), std::string::npos) << option << ": " << error;
  };
  EXPECT_NE(creation_error("webhook", {}).find("url"), std::string::npos);
  for (const char* url :
       {"", "example.com", "ftp://example.com", "file:///etc/passwd", "http://", "https://a b/", "mailto:a@b"}) {
    says("url", url, "must be an address");
  }
  for (const char* method : {"", "GET", "HEAD", "post", "POST /"}) {
    says("method", method, "must be one of \"POST\", \"PUT\", \"PATCH\", \"DELETE\"");
  }
  says("headers", Map{{"a b", "c"}}, "cannot be the name of a header");
  says("headers", Map{{"a", "b\r\nc: d"}}, "control character");
  says("attribute_prefix", "X:", "may hold letters");
  says("hmac_header", "", "may hold letters");
  says("hmac_secret", "", "is empty");
  says("hmac_secret_env", "SLUICE_TEST_UNSET", "is not set");
  says("timeout", "0s", "from 1ms");
  says("connect_timeout", "2d", "from 1ms");
  says("response_limit", -1, "from 0 to");
  says("redirects", 11, "from 0 to 10");
  says("ca_file", "/no/such.pem", "cannot be read");
  says("ca_file", "/no/such\n.pem", "control character");
  says("content_type", "a\nb", "control character");
  EXPECT_NE(creation_error("webhook", {{"url", "http://a"}, {"hmac_secret", "a"}, {"hmac_secret_env", "HOME"}})
                .find("both set"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::shipped
