// Metrics as an author has them, and as a test reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "sluice/testing.hpp"

namespace {

using sluice::testing::HandlerTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Measures {
  Measures(const sluice::Options&, sluice::Host host)
      : parts(host.counter("parts_total", "Parts by colour")),
        busy(host.gauge("busy", "Those at work")),
        sizes(host.histogram("sizes", "Their sizes", {1, 10})) {
    static_cast<void>(host.gauge("parts_total", "Another kind"));
    host.histogram("sizes", "Their sizes", {2}).observe(1);
    host.counter("no name", "").add();
  }
  sluice::Outcome handle(const sluice::Message& message, sluice::Context&) const {
    parts.add(2, {{"colour", message.body()}, {"size", "s"}});
    parts.add(-1, {{"le", "1"}});
    busy.set(3);
    busy.add(-1);
    sizes.observe(static_cast<double>(message.body().size()));
    sizes.with({{"colour", message.body()}}).observe(7);
    return sluice::done();
  }
  sluice::Counter parts;
  sluice::Gauge busy;
  sluice::Histogram sizes;
};

TEST(Metrics, AreReadByATest) {
  HandlerTest run(sluice::testing::handler<Measures>());
  ASSERT_TRUE(run.created());
  EXPECT_EQ(run.metric("parts_total"), 0);
  EXPECT_EQ(run.handle({.body = "red"}).status, SLUICE_DONE);
  EXPECT_EQ(run.handle({.body = "red"}).status, SLUICE_DONE);
  EXPECT_EQ(run.metric("parts_total", {{"size", "s"}, {"colour", "red"}}), 4);
  EXPECT_EQ(run.metric("parts_total", {{"colour", "blue"}}), 0);
  EXPECT_EQ(run.metric("busy"), 2);
  EXPECT_EQ(run.metric("sizes"), 2);
  EXPECT_THAT(run.observed("sizes"), ElementsAre(3, 3));
  EXPECT_THAT(run.observed("sizes", {{"colour", "red"}}), ElementsAre(7, 7));
  EXPECT_THAT(run.observed("sizes", {{"colour", "blue"}}), IsEmpty());
  EXPECT_THROW(static_cast<void>(run.metric("partz_total")), std::out_of_range);
  EXPECT_TRUE(run.logged("\"parts_total\" is not shown: it is a counter already, and no gauge"));
  EXPECT_TRUE(run.logged("\"sizes\" is not shown: it is there already with other buckets"));
  EXPECT_TRUE(run.logged("\"no name\" is not shown: its name must be"));
  EXPECT_TRUE(run.logged("the label \"le\" is not the plugin's to give"));
}

struct OddValues {
  OddValues(const sluice::Options&, sluice::Host host) : parts(host.counter("parts_total", "Parts")) {}
  sluice::Outcome handle(const sluice::Message&, sluice::Context&) const {
    parts.add(std::numeric_limits<double>::infinity());
    parts.add(1, {{"colour", ""}});
    return sluice::done();
  }
  sluice::Counter parts;
};

TEST(Metrics, AreTakenAsTheHostTakesThem) {
  HandlerTest run(sluice::testing::handler<OddValues>());
  EXPECT_EQ(run.handle({}).status, SLUICE_DONE);
  EXPECT_EQ(run.metric("parts_total"), 1) << "a label without a value is none";
}

TEST(Metrics, DoNothingOnAHostThatHasNone) {
  const sluice_host bare{sizeof(sluice_host),
                         0,
                         nullptr,
                         {},
                         [](const sluice_host*, sluice_log_level, sluice_string) {},
                         [](const sluice_host*, const char*) -> const void* { return nullptr; }};
  const sluice::Host host(bare);
  host.counter("a", "").add(1, {{"b", "c"}});
  host.gauge("a", "").with({{"b", "c"}}).set(1);
  host.histogram("a", "").observe(1);
  sluice::Counter().add();
  sluice::Gauge().set(1, {{"b", "c"}});
  sluice::Histogram().observe(1);
}

}  // namespace
