#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

std::string errors(const std::string& text) {
  return errors_text(parse_host_config(text, "host.toml", environment_of({})));
}

TEST(LogSection, WithoutItStandardErrorIsTextAndNothingIsSent) {
  const HostConfig config = host_of("");
  EXPECT_EQ(config.log_format, LogFormat::text);
  EXPECT_TRUE(config.log_senders.empty());
  EXPECT_FALSE(config.tracing);
}

TEST(LogSection, AHandlerIsOneOrAList) {
  EXPECT_EQ(host_of("[log]\nhandler = \"json\"").log_format, LogFormat::json);
  EXPECT_EQ(host_of("[log]\nformat = \"json\"").log_format, LogFormat::json);
  EXPECT_EQ(host_of("[log]\nhandler = [\"text\"]").log_format, LogFormat::text);
  const HostConfig config = host_of(R"(
[log]
level = "debug"
handler = ["json", "rollbar", "sentry", "datadog"]
[log.rollbar]
token = "${TOKEN}"
environment = "staging"
tags = { team = "orders" }
[log.sentry]
dsn = "https://key@o1.ingest.sentry.io/42"
level = "error"
sample_rate = "${SHARE}"
send_default_pii = true
ignore = ["noise"]
[log.datadog]
api_key = "k3y"
site = "datadoghq.eu"
service = "mailer"
)",
                                    {{"TOKEN", "abc"}, {"SHARE", "0.25"}});
  EXPECT_EQ(config.log_format, LogFormat::json);
  ASSERT_EQ(config.log_senders.size(), 3U);
  const LogSender& rollbar = config.log_senders[0];
  EXPECT_EQ(rollbar.kind, SenderKind::rollbar);
  EXPECT_EQ(rollbar.level, LogLevel::warn);
  EXPECT_EQ(rollbar.secret, "abc");
  EXPECT_EQ(rollbar.endpoint, "https://api.rollbar.com");
  EXPECT_EQ(rollbar.environment, "staging");
  EXPECT_EQ(rollbar.tags.at("team"), "orders");
  const LogSender& sentry = config.log_senders[1];
  EXPECT_EQ(sentry.level, LogLevel::error);
  EXPECT_EQ(sentry.sample_rate, 0.25);
  EXPECT_TRUE(sentry.send_default_pii);
  EXPECT_EQ(sentry.ignore, std::vector<std::string>{"noise"});
  const LogSender& datadog = config.log_senders[2];
  EXPECT_EQ(datadog.level, LogLevel::debug) << "as [log] level";
  EXPECT_EQ(datadog.endpoint, "https://http-intake.logs.datadoghq.eu");
  EXPECT_EQ(datadog.service, "mailer");
}

TEST(LogSection, DatadogWithoutAKeyIsAFormat) {
  const HostConfig config = host_of("[log]\nhandler = \"datadog\"\n[log.datadog]\nenvironment = \"prod\"");
  EXPECT_EQ(config.log_format, LogFormat::datadog);
  EXPECT_TRUE(config.log_senders.empty());
  EXPECT_EQ(config.datadog.service, "sluice");
  EXPECT_EQ(config.datadog.environment, "prod");
  EXPECT_EQ(host_of("[log]\nhandler = \"datadog\"").log_format, LogFormat::datadog);
}

TEST(LogSection, ASectionThatNobodyUsesIsAMistake) {
  EXPECT_THAT(errors("[log]\nhandler = \"text\"\n[log.sentry]\ndsn = \"https://k@sentry.io/1\""),
              testing::HasSubstr("host.toml:3:6: [log.sentry] is used by nobody: put \"sentry\" into 'handler'"));
  EXPECT_THAT(errors("[log]\nhandler = \"sentry\""),
              testing::HasSubstr("[log.sentry] has no 'dsn'; give the project's"));
}

TEST(LogSection, NoErrorShowsASecret) {
  for (const char* dsn : {"s3cret", "https://s3cret@", "https://s3cret@host", "https://s3cret@host/", "https://@host/1",
                          "https://s3c ret@host/1", "https://s3cret@host/1/", "https://s3cret@a@host/1"}) {
    const std::string said =
        errors(std::string("[log]\nhandler = \"sentry\"\n[log.sentry]\ndsn = \"") + dsn + "\"\nlevel = \"info\"");
    EXPECT_THAT(said, testing::HasSubstr("'dsn' in [log.sentry] must be a DSN")) << dsn;
    EXPECT_THAT(said, testing::Not(testing::HasSubstr("s3c"))) << dsn;
  }
}

TEST(TracingSection, AnEndpointIsCompletedByItsProtocol) {
  const auto endpoint = [](const std::string& keys) { return host_of("[tracing]\n" + keys).tracing->endpoint; };
  EXPECT_EQ(endpoint("endpoint = \"otel-collector:4317\""), "http://otel-collector:4317");
  EXPECT_EQ(endpoint("endpoint = \"https://collector\""), "https://collector:4317");
  EXPECT_EQ(endpoint("endpoint = \"http://[::1]\""), "http://[::1]:4317");
  EXPECT_EQ(endpoint("endpoint = \"http://c\"\nprotocol = \"http\""), "http://c:4318/v1/traces");
  EXPECT_EQ(endpoint("endpoint = \"http://c:9/otlp\"\nprotocol = \"http\""), "http://c:9/otlp");
}

TEST(TracingSection, HasItsDefaultsAndAllItsKeys) {
  const TracingConfig plain = *host_of("[tracing]\nendpoint = \"c:4317\"").tracing;
  EXPECT_EQ(plain.protocol, TraceProtocol::grpc);
  EXPECT_EQ(plain.sampler, TraceSampler::parent);
  EXPECT_EQ(plain.ratio, 1);
  EXPECT_EQ(plain.service, "sluice");
  const TracingConfig full = *host_of(R"(
[tracing]
endpoint = "c:4317"
sampler = "ratio"
ratio = 0.125
service = "mailer"
environment = "prod"
attributes = { team = "orders" }
headers = { authorization = "Bearer ${KEY}" }
ca = "ca.pem"
)",
                                      {{"KEY", "abc"}})
                                  .tracing;
  EXPECT_EQ(full.sampler, TraceSampler::ratio);
  EXPECT_EQ(full.ratio, 0.125);
  EXPECT_EQ(full.attributes.at("team"), "orders");
  EXPECT_EQ(full.headers.at("authorization"), "Bearer abc");
  EXPECT_EQ(full.ca, "/etc/sluice/ca.pem");
  EXPECT_THAT(errors("[tracing]\nendpoint = \"http://c:4317/v1/traces\""),
              testing::HasSubstr("'endpoint' in [tracing] has a path, which gRPC has none of"));
}

TEST(HostChanges, NameSendersAndTracing) {
  const std::string sentry = "[log]\nhandler = \"sentry\"\n[log.sentry]\ndsn = \"https://k@sentry.io/1\"\n";
  const HostConfig before = host_of(sentry);
  EXPECT_EQ(changed_keys(before, before), std::vector<std::string>());
  EXPECT_EQ(changed_keys(before, host_of(sentry + "sample_rate = 0.5\n[tracing]\nendpoint = \"c:1\"")),
            (std::vector<std::string>{"log.sentry.sample_rate", "tracing.endpoint"}));
  EXPECT_EQ(changed_keys(before, host_of("")), (std::vector<std::string>{"log.handler", "log.sentry"}));
}

}  // namespace
}  // namespace sluice::config
