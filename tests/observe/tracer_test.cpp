#include "host/observe/tracer.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::observe {
namespace {

using config::TraceSampler;

class TracerTest : public testing::Test {
 protected:
  Tracer tracer(TraceSampler sampler, double ratio = 1) {
    config::TracingConfig config{.endpoint = "http://collector:4318/v1/traces",
                                 .protocol = config::TraceProtocol::http,
                                 .sampler = sampler,
                                 .ratio = ratio};
    lane = &shipper.add(make_otlp(config, {"h", "1"}), transport);
    return Tracer(config, shipper, *lane, clock, random);
  }

  SystemClock clock;
  SeededRandom random{5};
  Shipper shipper{clock, random, [](const std::string&) {}};
  Shipper::Destination* lane = nullptr;
  test::FakeTransport transport{[](const dynamo::HttpRequest&) { return test::FakeTransport::response(200, ""); }};
  const TraceContext sampled = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  const TraceContext unsampled = *parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
};

TEST_F(TracerTest, APlaceInATraceIsNewAndKeepsTheTrace) {
  Tracer always = tracer(TraceSampler::always);
  const TraceContext below = always.begin(sampled);
  EXPECT_EQ(below.trace, sampled.trace);
  EXPECT_NE(below.span, sampled.span);
  EXPECT_NE(below.span, 0U);
  const TraceContext first = always.begin(std::nullopt);
  const TraceContext second = always.begin(std::nullopt);
  EXPECT_NE(first.trace, second.trace);
  EXPECT_NE(first.trace, TraceId());
}

TEST_F(TracerTest, SamplersDecide) {
  EXPECT_TRUE(tracer(TraceSampler::always).begin(unsampled).sampled);
  EXPECT_FALSE(tracer(TraceSampler::never).begin(sampled).sampled);
  Tracer parent = tracer(TraceSampler::parent, 0);
  EXPECT_TRUE(parent.begin(sampled).sampled);
  EXPECT_FALSE(parent.begin(unsampled).sampled);
  EXPECT_FALSE(parent.begin(std::nullopt).sampled) << "the ratio is that of traces that begin here";
  EXPECT_TRUE(tracer(TraceSampler::parent).begin(std::nullopt).sampled);
}

TEST_F(TracerTest, ARatioIsKeptAndIsThatOfTheTraceNotOfTheSpan) {
  Tracer quarter = tracer(TraceSampler::ratio, 0.25);
  int count = 0;
  for (int i = 0; i < 4000; ++i) {
    const TraceContext context = quarter.begin(std::nullopt);
    count += context.sampled ? 1 : 0;
    EXPECT_EQ(quarter.begin(context).sampled, context.sampled);
  }
  // A sum of 4,000 such throws lies beyond this once in some millions of seeds, and this seed is fixed.
  EXPECT_GT(count, 850);
  EXPECT_LT(count, 1150);
  EXPECT_FALSE(tracer(TraceSampler::ratio, 0).begin(sampled).sampled);
}

TEST_F(TracerTest, OnlyWhatIsSampledIsSent) {
  Tracer parent = tracer(TraceSampler::parent);
  ASSERT_TRUE(shipper.start());
  parent.record({.context = parent.begin(unsampled), .name = "claim"});
  parent.record({.context = parent.begin(sampled), .name = "claim"});
  EXPECT_TRUE(shipper.flush(clock.steady_now() + std::chrono::seconds(20)));
  EXPECT_EQ(shipper.statuses().at(0).figures.sent, 1U);
}

}  // namespace
}  // namespace sluice::observe
