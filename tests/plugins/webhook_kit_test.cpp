// The built plugin in the SDK's test kit, as its author would test it.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/plugins/http_server.hpp"
#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class WebhookKit : public ::testing::Test {
 protected:
  WebhookKit() { ::setenv("no_proxy", "*", 1); }

  static Result answered(const std::string& bytes, OptionMap options = {}) {
    HttpServer server([&](const HttpRequest&) { return bytes; });
    options.emplace("url", server.url());
    HandlerTest webhook(handler_of("webhook"), options);
    return webhook.handle({.body = "x"});
  }
};

TEST_F(WebhookKit, TurnsAnAnswerIntoAnOutcome) {
  EXPECT_EQ(answered(answer("204 No Content")).status, SLUICE_DONE);
  const Result refused = answered(answer("404 Not Found", "no such hook"));
  EXPECT_EQ(refused.status, SLUICE_REJECT);
  EXPECT_EQ(refused.reason, "HTTP 404: no such hook");
  const Result busy = answered(answer("503 Service Unavailable", "", "Retry-After: 7\r\n"));
  EXPECT_EQ(busy.status, SLUICE_RETRY);
  EXPECT_EQ(busy.delay, 7s);
  EXPECT_EQ(answered(answer("503 Service Unavailable", "", "Retry-After: 70\r\n"), {{"retry_after_max", "5s"}}).delay,
            5s);
}

TEST_F(WebhookKit, TriesAgainWhatHasNoAnswer) {
  EXPECT_EQ(answered(kHangUp).status, SLUICE_RETRY);
  EXPECT_EQ(answered("HTTP/1.1 200 OK\r\nConnection: close\r\nX: ").status, SLUICE_RETRY);
  HandlerTest nobody(handler_of("webhook"), {{"url", "http://127.0.0.1:1/"}});
  EXPECT_EQ(nobody.handle({.body = "x"}).status, SLUICE_RETRY);
}

TEST_F(WebhookKit, BeginsNothingOnceAStopIsRequested) {
  HttpServer server([](const HttpRequest&) { return answer("204 No Content"); });
  HandlerTest webhook(handler_of("webhook"), {{"url", server.url()}});
  webhook.stop_after(0s);
  EXPECT_EQ(webhook.handle({.body = "x"}).status, SLUICE_RELEASE);
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WebhookKit, ReturnsWhatIsUnderWayWhenItsTimeIsUp) {
  HttpServer server([](const HttpRequest&) { return kHang; });
  HandlerTest webhook(handler_of("webhook"), {{"url", server.url()}});
  webhook.set_timeout(10s);
  const sluice_token token = webhook.begin({.body = "x"});
  ASSERT_TRUE(server.wait_for_requests(1));
  EXPECT_FALSE(webhook.result(token));
  webhook.advance(10s);
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!webhook.result(token)) {
    ASSERT_TRUE(std::chrono::steady_clock::now() < deadline) << "it is not returned";
    std::this_thread::yield();
  }
  EXPECT_EQ(webhook.result(token)->reason, "no answer within the job's timeout");
}

TEST_F(WebhookKit, SaysWhichOptionIsWrong) {
  const std::vector<std::pair<OptionMap, std::string>> wrong{
      {{}, "url"},
      {{{"url", "ftp://example.com"}}, "must be an address such as"},
      {{{"url", "http://a/"}, {"method", "GET"}},
       "must be one of \"POST\", \"PUT\", \"PATCH\", \"DELETE\"; it is \"GET\""},
      {{{"url", "http://a/"}, {"timeout", "0s"}}, "must be from 1ms to 1d"},
      {{{"url", "http://a/"}, {"redirects", 11}}, "must be from 0 to 10; it is 11"},
      {{{"url", "http://a/"}, {"bearer_token_env", "NOT_SET_ANYWHERE"}}, "\"NOT_SET_ANYWHERE\", which is not set"}};
  for (const auto& [options, why] : wrong) {
    HandlerTest webhook(handler_of("webhook"), options);
    ASSERT_FALSE(webhook.created()) << why;
    EXPECT_THAT(webhook.errors().front(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace sluice::shipped
