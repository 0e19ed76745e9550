#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "host/observe/metrics.hpp"
#include "host/observe/otlp.hpp"
#include "host/observe/trace_context.hpp"
#include "host/queue/effects.hpp"
#include "host/work/account.hpp"
#include "host/work/in_flight_table.hpp"
#include "host/work/job_threads.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::work {
namespace {

using std::chrono::milliseconds;

constexpr const char* kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr const char* kUnsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

struct SeenSpan {
  std::string trace;
  std::string id;
  std::string parent;
  std::string state;
  std::string name;
  std::string texts;  ///< of attributes: "key=value;"
  bool failed = false;
};

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4U];
    text += kDigits[static_cast<unsigned char>(byte) & 0xfU];
  }
  return text;
}

using Fields = std::vector<std::pair<std::uint32_t, std::string>>;

Fields fields(std::string_view message) {
  Fields all;
  EXPECT_TRUE(observe::protobuf::read(message, [&](std::uint32_t field, std::uint64_t number, std::string_view bytes) {
    all.emplace_back(field, bytes.empty() ? std::to_string(number) : std::string(bytes));
  }));
  return all;
}

std::string field(std::string_view message, std::uint32_t wanted) {
  for (const auto& [number, value] : fields(message)) {
    if (number == wanted) {
      return value;
    }
  }
  return {};
}

SeenSpan span_of(std::string_view bytes) {
  SeenSpan span{.trace = hex(field(bytes, 1)),
                .id = hex(field(bytes, 2)),
                .parent = hex(field(bytes, 4)),
                .state = field(bytes, 3),
                .name = field(bytes, 5),
                .texts = {},
                .failed = !field(bytes, 15).empty()};
  for (const auto& [number, value] : fields(bytes)) {
    if (number == 9) {
      span.texts += field(value, 1) + "=" + field(field(value, 2), 1) + ";";
    }
  }
  return span;
}

class JobTracingTest : public testing::Test {
 protected:
  JobTracingTest() {
    job.name = "mailer";
    job.handler = "mail";
  }

  JobTracing tracing(const std::string& queue = "orders", config::TraceSampler sampler = config::TraceSampler::parent) {
    config.sampler = sampler;
    tracer.emplace(config, shipper, lane, clock, random);
    return JobTracing(*tracer, job, {queue});
  }

  static queue::Delivery delivery(queue::Attributes attributes) {
    queue::Delivery made;
    made.message.id = "A-101";
    made.message.attributes = std::move(attributes);
    made.message.attempt = 1;
    return made;
  }

  static Task task_of(const queue::Delivery& from) {
    Task task;
    task.message = from.message;
    return task;
  }

  /// As a worker does it.
  static plugin::Outcome handle(JobTracing& traced, const Task& task, const std::function<plugin::Outcome()>& handler) {
    const SteadyTime began = traced.now();
    plugin::Outcome outcome;
    JobTracing::within(task, [&] { outcome = handler(); });
    traced.handled(task, began, outcome);
    return outcome;
  }

  /// Spans in the order in which they were recorded.
  std::vector<SeenSpan> spans() {
    EXPECT_TRUE(shipper.start());
    EXPECT_TRUE(shipper.flush(SteadyTime::max()));
    std::vector<SeenSpan> all;
    for (const auto& request : transport.requests()) {
      const std::string scope_spans = field(field(request.body, 1), 2);
      for (const auto& [number, value] : fields(scope_spans)) {
        if (number == 2) {
          all.push_back(span_of(value));
        }
      }
    }
    return all;
  }

  test::FakeClock clock;
  SeededRandom random{3};
  observe::Metrics metrics;
  config::JobConfig job;
  config::TracingConfig config{.endpoint = "http://c/v1/traces", .protocol = config::TraceProtocol::http};
  observe::Shipper shipper{clock, random, [](const std::string&) {}};
  test::FakeTransport transport{[](const dynamo::HttpRequest&) { return test::FakeTransport::response(200, ""); }};
  observe::Shipper::Destination& lane = shipper.add(observe::make_otlp(config, {"h", "1"}), transport);
  std::optional<observe::Tracer> tracer;
};

TEST_F(JobTracingTest, AMessageIsClaimedHandledAndSettledInItsSendersTrace) {
  JobTracing traced = tracing();
  std::vector<queue::Delivery> claimed{delivery({{"traceparent", kParent}, {"tracestate", "congo=t61"}})};
  traced.claimed(claimed, traced.now());
  Task task = task_of(claimed[0]);
  const std::string handed_on = task.message.attributes.at("traceparent");
  plugin::Outcome outcome = handle(traced, task, [&] {
    EXPECT_NE(observe::TraceScope::current(), nullptr);
    EXPECT_EQ(observe::format_traceparent(*observe::TraceScope::current()), handed_on);
    clock.advance(milliseconds(5));
    return plugin::Outcome{plugin::OutcomeStatus::done, {}, {}, {}};
  });
  EXPECT_EQ(outcome.status, plugin::OutcomeStatus::done);
  Task* const tasks[] = {&task};
  const queue::Completion completions[] = {{.action = queue::CompletionAction::remove}};
  const queue::SettleResult failed[] = {{queue::SettleStatus::failed, Error(ErrorCode::unavailable, "down")}};
  const queue::SettleResult applied[] = {{}};
  traced.settled(tasks, completions, failed, traced.now());
  ++task.tries;
  traced.settled(tasks, completions, applied, traced.now());

  const std::vector<SeenSpan> seen = spans();
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0].name, "claim");
  EXPECT_EQ(seen[0].parent, "b7ad6b7169203331");
  EXPECT_EQ(seen[1].name, "handle");
  EXPECT_EQ(seen[1].parent, seen[0].id);
  EXPECT_EQ("00-" + seen[1].trace + "-" + seen[1].id + "-01", handed_on) << "the handle span's own context";
  EXPECT_THAT(seen[1].texts, testing::HasSubstr("messaging.destination.name=orders;messaging.message.id=A-101;"
                                                "sluice.job=mailer;sluice.handler=mail;"));
  EXPECT_THAT(seen[1].texts, testing::HasSubstr("sluice.outcome=done;"));
  for (const SeenSpan& span : seen) {
    EXPECT_EQ(span.trace, "0af7651916cd43dd8448eb211c80319c");
    EXPECT_EQ(span.state, "congo=t61");
  }
  EXPECT_EQ(seen[2].name, "settle");
  EXPECT_EQ(seen[2].parent, seen[0].id);
  EXPECT_TRUE(seen[2].failed);
  EXPECT_FALSE(seen[3].failed);
  EXPECT_NE(seen[2].id, seen[3].id) << "each try is a span of its own";
}

TEST_F(JobTracingTest, AMessageWithoutATraceBeginsOne) {
  JobTracing traced = tracing();
  std::vector<queue::Delivery> claimed{delivery({{"traceparent", "nonsense"}, {"tracestate", "of=nothing"}}),
                                       delivery({})};
  traced.claimed(claimed, traced.now());
  EXPECT_FALSE(claimed[0].message.attributes.contains("tracestate")) << "it belonged to no trace";
  const std::vector<SeenSpan> seen = spans();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].parent, "");
  EXPECT_NE(seen[0].trace, seen[1].trace);
  EXPECT_THAT(claimed[1].message.attributes.at("traceparent"), testing::MatchesRegex("00-" + seen[1].trace + "-.*-01"));
}

TEST_F(JobTracingTest, WhatIsNotSampledIsHandedOnAsThat) {
  JobTracing traced = tracing();
  std::vector<queue::Delivery> claimed{delivery({{"traceparent", kUnsampled}})};
  traced.claimed(claimed, traced.now());
  const std::string handed_on = claimed[0].message.attributes.at("traceparent");
  EXPECT_THAT(handed_on, testing::MatchesRegex("00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-00"));
  const Task task = task_of(claimed[0]);
  handle(traced, task, [] { return plugin::Outcome{plugin::OutcomeStatus::done, {}, {}, {}}; });
  EXPECT_TRUE(spans().empty());
}

TEST_F(JobTracingTest, WhatAHandlerSendsCarriesTheTraceUnlessItSaysOtherwise) {
  JobTracing traced = tracing();
  std::vector<queue::Delivery> claimed{delivery({{"traceparent", kParent}, {"tracestate", "congo=t61"}})};
  traced.claimed(claimed, traced.now());
  const Task task = task_of(claimed[0]);
  auto effects = std::make_shared<queue::Effects>();
  effects->messages.resize(2);
  effects->messages[1].message.attributes = {{"traceparent", kUnsampled}};
  const plugin::Outcome outcome = handle(traced, task, [&] {
    return plugin::Outcome{plugin::OutcomeStatus::done, {}, {}, effects};
  });
  const auto& sent = outcome.effects->messages;
  EXPECT_EQ(sent[0].message.attributes, (queue::Attributes{{"traceparent", task.message.attributes.at("traceparent")},
                                                           {"tracestate", "congo=t61"}}));
  EXPECT_EQ(sent[1].message.attributes, (queue::Attributes{{"traceparent", kUnsampled}}));
}

TEST_F(JobTracingTest, AHandlerThatFailsIsAFailedSpan) {
  JobTracing traced = tracing("orders", config::TraceSampler::always);
  std::vector<queue::Delivery> claimed{delivery({})};
  traced.claimed(claimed, traced.now());
  const Task task = task_of(claimed[0]);
  handle(traced, task, [] { return plugin::Outcome{plugin::OutcomeStatus::reject, {}, "no such customer", {}}; });
  const std::vector<SeenSpan> seen = spans();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[1].failed);
  EXPECT_THAT(seen[1].texts, testing::HasSubstr("sluice.outcome=reject;"));
}

TEST_F(JobTracingTest, AMessageThatComesBackIsKnownWhateverPlaceInItsTraceItHas) {
  JobTracing traced = tracing();
  std::vector<queue::Delivery> twice{delivery({{"traceparent", kParent}}), delivery({{"traceparent", kParent}})};
  traced.claimed(twice, traced.now());
  ASSERT_NE(twice[0].message.attributes, twice[1].message.attributes);
  FinishedWork finished;
  Task task = task_of(twice[0]);
  task.dispose({queue::CompletionAction::remove, {}, {}, Ending::done, false}, clock.steady_now());
  FinishedWork::keep(task);
  finished.remember(task, std::move(task.disposition));
  EXPECT_TRUE(finished.recognise(task_of(twice[1]))) << "so that it is not run again";
}

TEST_F(JobTracingTest, AnOutboxsRowsAreFetchedPublishedAndMarked) {
  EXPECT_EQ(SpanNames::of("outbox:orders").claim, "fetch");
  EXPECT_EQ(SpanNames::of("outbox:orders").handle, "publish");
  EXPECT_EQ(SpanNames::of("outbox:orders").settle, "mark");
  JobTracing traced = tracing("outbox:orders", config::TraceSampler::always);
  std::vector<queue::Delivery> claimed{delivery({})};
  traced.claimed(claimed, traced.now());
  EXPECT_EQ(spans().at(0).name, "fetch");
}

/// The trace of each line that it is shown, "TRACE-SPAN", or "none".
class TraceTap final : public observe::LogTap {
 public:
  observe::LogLevel level() const override { return observe::LogLevel::trace; }
  void take(const observe::LogLine& line) override {
    const observe::TraceContext* context = observe::TraceScope::current();
    lines.push_back(
        std::string(line.message) + " " +
        (context == nullptr ? "none" : observe::hex_of(context->trace) + "-" + observe::hex_of(context->span)));
  }
  std::vector<std::string> lines;
};

TEST_F(JobTracingTest, WhatTheHostLogsAboutAMessageIsOfItsTrace) {
  std::vector<queue::Delivery> claimed{delivery({{"traceparent", kParent}})};
  tracing().claimed(claimed, clock.steady_now());
  const auto handling = observe::parse_traceparent(claimed[0].message.attributes.at("traceparent"));
  ASSERT_TRUE(handling);
  StepEffects traced;
  traced.about(observe::LogLevel::warn, "rejected", claimed[0].message, "no such topic");
  traced.line(observe::LogLevel::error, "cannot settle messages, trying again", {}, "gone");
  StepEffects untraced;
  untraced.about(observe::LogLevel::warn, "failed, to be retried", claimed[0].message, "no such topic");
  observe::Log log(observe::LogLevel::off, observe::LogFormat::datadog);
  TraceTap tap;
  log.tap(&tap);
  publish(traced, "mailer", true, log, metrics.job("mailer", "orders"));
  publish(untraced, "mailer", false, log, metrics.job("mailer", "orders"));
  log.tap(nullptr);
  const std::string span = observe::hex_of(handling->trace) + "-" + observe::hex_of(handling->span);
  EXPECT_THAT(tap.lines, testing::ElementsAre("rejected " + span, "cannot settle messages, trying again none",
                                              "failed, to be retried none"));
}

}  // namespace
}  // namespace sluice::work
