// The built plugin in the SDK's test kit: what it decides without SNS.
#include <gmock/gmock.h>

#include <cstdlib>

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

constexpr const char* kTopic = "arn:aws:sns:eu-west-1:123456789012:orders";

class SnsKit : public ::testing::Test {
 protected:
  SnsKit() {
    ::setenv("no_proxy", "*", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  }
  /// Where nobody listens.
  static OptionMap nobody(OptionMap others = {}) {
    others.insert({{"endpoint", "http://127.0.0.1:1"},
                   {"region", "eu-west-1"},
                   {"access_key_id", "a"},
                   {"secret_access_key", "b"},
                   {"linger", "0s"},
                   {"attempts", 1}});
    return others;
  }
  static TestMessage to(const std::string& type, const std::string& body = "{}") {
    return {.body = body, .attributes = {{"aggregate_type", type}}};
  }
  static Result published(const TestMessage& message, const OptionMap& options = {}) {
    HandlerTest sns(handler_of("sns"), nobody(options));
    return sns.handle(message);
  }
};

TEST_F(SnsKit, PutsAsideWhatCannotBePublishedBeforeItConnects) {
  const Result lost = published({.body = "{}"});
  EXPECT_EQ(lost.status, SLUICE_REJECT);
  EXPECT_THAT(lost.reason, HasSubstr("so it goes nowhere"));
  EXPECT_THAT(published(to(kTopic), {{"deny_topics", Names{"arn:aws:sns:eu-west-1:*"}}}).reason,
              HasSubstr("may not be published to"));
  EXPECT_EQ(published(to(kTopic, std::string(300 * 1024, 'x'))).status, SLUICE_REJECT);
  EXPECT_EQ(published({.body = "{}", .attributes = {{"event", "ping"}, {"aggregate_type", kTopic}}},
                      {{"skip_events", Names{"p*"}}})
                .status,
            SLUICE_DISCARD);
}

TEST_F(SnsKit, TellsAnOutageByItsPolicy) {
  EXPECT_EQ(published(to(kTopic), {{"outage", "retry"}}).status, SLUICE_RETRY);
  const Result snoozed = published(to(kTopic), {{"snooze_time", "3s"}});
  EXPECT_EQ(snoozed.status, SLUICE_SNOOZE);
  EXPECT_EQ(snoozed.delay, 3s);
}

TEST_F(SnsKit, BeginsNothingOnceAStopIsRequested) {
  HandlerTest sns(handler_of("sns"), nobody());
  sns.stop_after(0s);
  EXPECT_EQ(sns.handle(to(kTopic)).status, SLUICE_RELEASE);
}

TEST_F(SnsKit, SaysWhichOptionIsWrong) {
  const std::vector<std::pair<OptionMap, std::string>> wrong{
      {{{"endpoint", "nowhere"}}, "\"endpoint\" must be an address"},
      {{{"access_key_id", "a"}}, "belong together"},
      {{{"attempts", 0}}, "must be from 1 to 10; it is 0"},
      {{{"topic", "rn::nats:::orders"}}, "is of the service \"nats\""}};
  for (const auto& [options, why] : wrong) {
    HandlerTest sns(handler_of("sns"), options);
    ASSERT_FALSE(sns.created()) << why;
    EXPECT_THAT(sns.errors().front(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace sluice::publishers
