#include "host/observe/log_senders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "host/observe/trace_context.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::observe {
namespace {

namespace json = boost::json;
using config::LogSender;
using config::SenderKind;

const LogIdentity kIdentity{"machine-1", "1.2.3"};
constexpr WallTime kNow{std::chrono::seconds(1'767'323'045)};  // 2026-01-02T03:04:05Z
constexpr const char* kTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

class LogSendersTest : public testing::Test {
 protected:
  static std::string encode(const LogService& to, LogLevel level = LogLevel::warn) {
    const std::initializer_list<LogField> fields{{"job", "orders"}, {"id", "A-101"}, {"attempt", 2}};
    return to.encode({level, "failed: \"x\"\n", fields}, kNow);
  }
  static dynamo::HttpRequest request_of(const LogService& to, const std::vector<std::string>& items) {
    return to.request(items, kNow);
  }

  test::FakeRandom random{0.5};
};

TEST_F(LogSendersTest, RollbarGetsAnItemAsItsApiHasThem) {
  const auto to = make_log_service({.kind = SenderKind::rollbar,
                                    .secret = "s3cret",
                                    .endpoint = "https://api.rollbar.com",
                                    .environment = "production",
                                    .tags = {{"team", "orders"}}},
                                   kIdentity, random);
  const std::string item = encode(*to);
  const auto request = request_of(*to, {item});
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "https://api.rollbar.com/api/1/item/");
  EXPECT_EQ(test::header_of(request, "X-Rollbar-Access-Token"), "s3cret");
  EXPECT_EQ(test::header_of(request, "Content-Type"), "application/json");
  const json::value read = json::parse(request.body);
  const json::object& data = read.at("data").as_object();
  EXPECT_EQ(data.at("environment"), "production");
  EXPECT_EQ(data.at("level"), "warning");
  EXPECT_EQ(data.at("timestamp"), 1'767'323'045);
  EXPECT_EQ(data.at("platform"), "linux");
  EXPECT_EQ(data.at("code_version"), "1.2.3");
  EXPECT_EQ(data.at("uuid").as_string().size(), 36U);
  EXPECT_EQ(data.at("custom").at("team"), "orders");
  EXPECT_EQ(data.at("notifier").at("name"), "sluice");
  const json::object& message = data.at("body").at("message").as_object();
  EXPECT_EQ(message.at("body"), "failed: \"x\"\n");
  EXPECT_EQ(message.at("job"), "orders");
  EXPECT_EQ(message.at("attempt"), 2);
  EXPECT_FALSE(message.contains("id")) << "only with send_default_pii";
  EXPECT_FALSE(data.contains("server"));
  EXPECT_EQ(to->limits().batch_items, 1U);
}

TEST_F(LogSendersTest, SentryGetsAnEnvelopeOfOneEvent) {
  const auto to = make_log_service({.kind = SenderKind::sentry,
                                    .secret = "https://pub1ic:s3cret@o1.ingest.sentry.io/base/42",
                                    .environment = "prod",
                                    .tags = {{"team", "orders"}}},
                                   kIdentity, random);
  const TraceScope scope(*parse_traceparent(kTrace));
  const auto request = request_of(*to, {encode(*to, LogLevel::error)});
  EXPECT_EQ(request.url, "https://o1.ingest.sentry.io/base/api/42/envelope/");
  EXPECT_EQ(test::header_of(request, "Content-Type"), "application/x-sentry-envelope");
  EXPECT_EQ(test::header_of(request, "X-Sentry-Auth"),
            "Sentry sentry_version=7, sentry_client=sluice/1.2.3, sentry_key=pub1ic, sentry_secret=s3cret");

  const std::size_t first = request.body.find('\n');
  const std::size_t second = request.body.find('\n', first + 1);
  const json::value envelope = json::parse(request.body.substr(0, first));
  const json::value header = json::parse(request.body.substr(first + 1, second - first - 1));
  const std::string payload = request.body.substr(second + 1);
  EXPECT_EQ(header.at("type"), "event");
  EXPECT_EQ(static_cast<std::size_t>(header.at("length").as_int64()) + 1, payload.size());
  EXPECT_EQ(payload.back(), '\n');
  const json::value event = json::parse(payload);
  EXPECT_EQ(event.at("event_id"), envelope.at("event_id"));
  EXPECT_THAT(std::string(event.at("event_id").as_string()), testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(envelope.at("sent_at"), "2026-01-02T03:04:05.000000000Z");
  EXPECT_EQ(event.at("timestamp"), "2026-01-02T03:04:05.000000000Z");
  EXPECT_EQ(event.at("platform"), "other");
  EXPECT_EQ(event.at("level"), "error");
  EXPECT_EQ(event.at("logentry").at("formatted"), "failed: \"x\"\n");
  EXPECT_EQ(event.at("release"), "sluice@1.2.3");
  EXPECT_EQ(event.at("environment"), "prod");
  EXPECT_EQ(event.at("tags").at("team"), "orders");
  EXPECT_EQ(event.at("tags").at("job"), "orders");
  EXPECT_EQ(event.at("extra").at("attempt"), 2);
  EXPECT_EQ(event.at("contexts").at("trace").at("trace_id"), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(event.at("contexts").at("trace").at("span_id"), "b7ad6b7169203331");
  EXPECT_FALSE(event.at("extra").as_object().contains("id"));
  EXPECT_FALSE(event.as_object().contains("server_name"));
}

TEST_F(LogSendersTest, WhatMayTellWhoSomebodyIsGoesOutOnlyWhenAskedFor) {
  const auto sentry = make_log_service(
      {.kind = SenderKind::sentry, .secret = "https://key@sentry.io/42", .send_default_pii = true}, kIdentity, random);
  const std::string body = request_of(*sentry, {encode(*sentry)}).body;
  EXPECT_THAT(body, testing::HasSubstr(R"("server_name":"machine-1")"));
  EXPECT_THAT(body, testing::HasSubstr(R"("id":"A-101")"));
  const auto rollbar =
      make_log_service({.kind = SenderKind::rollbar, .secret = "t", .send_default_pii = true}, kIdentity, random);
  EXPECT_THAT(encode(*rollbar), testing::HasSubstr(R"("server":{"host":"machine-1"})"));
}

TEST_F(LogSendersTest, DatadogGetsAnArrayWithItsReservedAttributes) {
  const auto to = make_log_service({.kind = SenderKind::datadog,
                                    .secret = "k3y",
                                    .endpoint = "https://http-intake.logs.datadoghq.eu",
                                    .environment = "prod",
                                    .service = "mailer",
                                    .tags = {{"team", "a,b"}}},
                                   kIdentity, random);
  const TraceScope scope(*parse_traceparent(kTrace));
  const auto request = request_of(*to, {encode(*to), encode(*to, LogLevel::trace)});
  EXPECT_EQ(request.url, "https://http-intake.logs.datadoghq.eu/api/v2/logs");
  EXPECT_EQ(test::header_of(request, "DD-API-KEY"), "k3y");
  const json::value read = json::parse(request.body);
  ASSERT_EQ(read.as_array().size(), 2U);
  const json::value& line = read.at(0);
  EXPECT_EQ(line.at("message"), "failed: \"x\"\n");
  EXPECT_EQ(line.at("status"), "warn");
  EXPECT_EQ(line.at("timestamp"), "2026-01-02T03:04:05.000000000Z");
  EXPECT_EQ(line.at("service"), "mailer");
  EXPECT_EQ(line.at("hostname"), "machine-1");
  EXPECT_EQ(line.at("ddsource"), "sluice");
  EXPECT_EQ(line.at("ddtags"), "env:prod,version:1.2.3,team:a_b");
  EXPECT_EQ(line.at("dd.env"), "prod");
  EXPECT_EQ(line.at("dd.trace_id"), "9532127138774266268") << "the low half in decimal";
  EXPECT_EQ(line.at("dd.span_id"), "13235353014750950193");
  EXPECT_EQ(line.at("job"), "orders");
  EXPECT_EQ(read.at(1).at("status"), "debug");
  EXPECT_LE(to->limits().batch_items, 1000U);
  EXPECT_LE(to->limits().batch_bytes, 5'000'000U);
}

TEST_F(LogSendersTest, AnswersAreJudgedAndSecretsNotRepeated) {
  const auto to = make_log_service({.kind = SenderKind::datadog, .secret = "k3y"}, kIdentity, random);
  const auto judge = [&](int status) {
    return to->judge(test::FakeTransport::response(status, "bad key k3y", {{"retry-after", "7"}}));
  };
  EXPECT_EQ(judge(202).kind, Judgement::Kind::taken);
  EXPECT_EQ(judge(429).kind, Judgement::Kind::again);
  EXPECT_EQ(judge(429).wait, Duration(std::chrono::seconds(7)));
  EXPECT_EQ(judge(503).kind, Judgement::Kind::again);
  EXPECT_EQ(judge(413).kind, Judgement::Kind::refused);
  EXPECT_EQ(judge(403).why, "it answered 403; is the api_key in [log.datadog] right?");
  EXPECT_EQ(to->judge(dynamo::Error(dynamo::ErrorKind::timeout, "no answer")).kind, Judgement::Kind::again);
}

TEST(LogTaps, EachServiceHasItsLevelItsShareAndWhatItIgnores) {
  SystemClock clock;
  SeededRandom random(7);
  Shipper shipper(clock, random, [](const std::string&) {});
  test::FakeTransport transport([](const dynamo::HttpRequest&) { return test::FakeTransport::response(200, ""); });
  const auto member = [&](LogSender sender) {
    sender.kind = SenderKind::rollbar;
    auto service = make_log_service(sender, kIdentity, random);
    const LogService* encoder = service.get();
    return LogSenders::Member{encoder, &shipper.add(std::move(service), transport)};
  };
  std::vector<LogSenders::Member> members;
  members.push_back(member({.level = config::LogLevel::error, .environment = "errors"}));
  members.push_back(member({.level = config::LogLevel::info, .environment = "deaf", .ignore = {"noise"}}));
  members.push_back(member({.level = config::LogLevel::info, .environment = "never", .sample_rate = 0}));
  LogSenders senders(shipper, clock, random, std::move(members));
  ASSERT_TRUE(shipper.start());
  Log log(LogLevel::off, LogFormat::text);
  EXPECT_FALSE(log.enabled(LogLevel::info));
  log.tap(&senders);
  EXPECT_TRUE(log.enabled(LogLevel::info)) << "somebody wants it";
  EXPECT_FALSE(log.enabled(LogLevel::debug));
  log.error("an error");
  log.info("a word");
  log.info("some noise");
  log.info("said", {{"why", "noise again"}});
  log.debug("nobody wants this");
  log.write_here(LogLevel::error, "about the senders themselves");
  log.tap(nullptr);
  log.error("after the end");
  EXPECT_TRUE(shipper.flush(clock.steady_now() + std::chrono::seconds(20)));
  std::map<std::string, std::vector<std::string>> got;
  for (const auto& request : transport.requests()) {
    const json::value data = json::parse(request.body).at("data");
    got[std::string(data.at("environment").as_string())].emplace_back(
        data.at("body").at("message").at("body").as_string());
  }
  EXPECT_EQ(got, (std::map<std::string, std::vector<std::string>>{{"errors", {"an error"}},
                                                                  {"deaf", {"an error", "a word"}}}));
}

/// Remembers what it was shown.
class Listener final : public LogTap {
 public:
  LogLevel level() const override { return LogLevel::warn; }
  void take(const LogLine& line) override { heard.emplace_back(line.message); }
  std::vector<std::string> heard;
};

TEST(LogTaps, AreShownRepeatsAsTheReaderOfStandardErrorIs) {
  testing::internal::CaptureStderr();
  Listener listener;
  {
    Log log(LogLevel::info, LogFormat::text);
    log.tap(&listener);
    log.warn("again");
    log.warn("again");
    log.warn("again");
    log.warn("other");
    log.tap(nullptr);
  }
  testing::internal::GetCapturedStderr();
  // On a machine that stalls for a second between two lines the run is cut in two, and more is said, never less.
  EXPECT_EQ(listener.heard.front(), "again");
  EXPECT_EQ(listener.heard.back(), "other");
  EXPECT_GE(listener.heard.size(), 3U);
}

TEST(DatadogFormat, StandsOnStandardErrorWithItsMembers) {
  testing::internal::CaptureStderr();
  {
    Log log(LogLevel::info, LogFormat::datadog);
    log.decorate(datadog_members({.service = "mailer", .environment = "prod"}, kIdentity));
    log.warn("hello", {{"job", "orders"}});
    log.print("drain certificate: all\n", std::vector<LogField>{{"claimed", 3}});
  }
  std::istringstream text(testing::internal::GetCapturedStderr());
  std::vector<json::value> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(json::parse(line));
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("status"), "warn");
  EXPECT_EQ(lines[0].at("service"), "mailer");
  EXPECT_EQ(lines[0].at("dd.version"), "1.2.3");
  EXPECT_EQ(lines[0].at("job"), "orders");
  EXPECT_TRUE(lines[0].as_object().contains("timestamp"));
  EXPECT_FALSE(lines[0].as_object().contains("dd.trace_id")) << "nothing is traced here";
  EXPECT_EQ(lines[1].at("claimed"), 3);
}

}  // namespace
}  // namespace sluice::observe
