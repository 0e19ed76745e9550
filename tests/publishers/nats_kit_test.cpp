// The built plugin in the SDK's test kit: what it decides without a server.
#include <gmock/gmock.h>

#include "tests/plugins/live_host.hpp"

namespace sluice::publishers {
namespace {

using shipped::handler_of;
using testing::HandlerTest;
using ::testing::HasSubstr;
using testing::OptionMap;
using testing::Result;
using testing::TestMessage;
using Names = std::vector<std::string>;
using namespace std::chrono_literals;

/// Where nobody listens.
OptionMap nobody(OptionMap others = {}) {
  others.insert({{"servers", Names{"nats://127.0.0.1:1"}}, {"timeout", "50ms"}, {"reconnect_wait", "10ms"}});
  return others;
}
TestMessage to(const std::string& type, const std::string& aggregate = "1") {
  return {.body = "{}", .attributes = {{"aggregate_type", type}, {"aggregate_id", aggregate}}};
}
Result published(const TestMessage& message, const OptionMap& options = {}) {
  HandlerTest nats(handler_of("nats"), nobody(options));
  return nats.handle(message);
}

TEST(NatsKit, PutsAsideWhatGoesNowhereBeforeItConnects) {
  const Result lost = published({.body = "{}"});
  EXPECT_EQ(lost.status, SLUICE_REJECT);
  EXPECT_THAT(lost.reason, HasSubstr("has no attribute aggregate_type, so it goes nowhere"));
  EXPECT_EQ(published({.body = "{}"}, {{"unroutable", "retry"}}).status, SLUICE_RETRY);
  EXPECT_THAT(published(to("rn::nats:::orders", "a b")).reason, HasSubstr("\"orders.a b\" has a space in it"));
  EXPECT_THAT(published(to("rn::nats:::$JS.API")).reason, HasSubstr("belongs to the server"));
}

TEST(NatsKit, TellsAnOutageByItsPolicy) {
  EXPECT_EQ(published(to("rn::nats:::orders")).status, SLUICE_SNOOZE);
  EXPECT_EQ(published(to("rn::nats:::orders"), {{"outage", "retry"}}).status, SLUICE_RETRY);
}

TEST(NatsKit, BeginsNothingOnceAStopIsRequested) {
  HandlerTest nats(handler_of("nats"), nobody());
  nats.stop_after(0s);
  EXPECT_EQ(nats.handle(to("rn::nats:::orders")).status, SLUICE_RELEASE);
}

TEST(NatsKit, SaysWhichOptionIsWrong) {
  const std::vector<std::pair<OptionMap, std::string>> wrong{
      {{{"servers", Names{}}}, "\"servers\" is empty"},
      {{{"servers", Names{"http://a"}}}, "must hold addresses such as"},
      {{{"attributes", Names{"Nats-Msg-Id"}}}, "cannot be the name of a header"},
      {{{"token", "t"}, {"username", "u"}}, "exclude each other"},
      {{{"tls_verify", false}}, "has no meaning without TLS"},
      {{{"outage", "wait"}}, "must be one of \"retry\", \"snooze\"; it is \"wait\""}};
  for (const auto& [options, why] : wrong) {
    HandlerTest nats(handler_of("nats"), options);
    ASSERT_FALSE(nats.created()) << why;
    EXPECT_THAT(nats.errors().front(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace sluice::publishers
