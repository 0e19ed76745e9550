// What /readyz says of a host whose store answers nothing.

#include "host/runtime/health_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "host/plugin/metric_board.hpp"
#include "tests/runtime/job_set_rig.hpp"

namespace sluice::runtime {
namespace {

using std::chrono_literals::operator""s;
using ::testing::StartsWith;

class Readiness : public JobSetTest {
 protected:
  observe::ProbeResult probe() { return readiness_of(true, {jobs_, config_, {}, {}, {}}); }

  config::HostConfig config_;
};

TEST_F(Readiness, EndsOnceAJobsStoreHasAnsweredNothingForLong) {
  ASSERT_TRUE(start({plan("a"), plan("b")}));
  EXPECT_TRUE(probe().ok);
  queues_.fail_next(test::StoreCall::claim, 1'000'000, Error(ErrorCode::queue_missing, "table 'orders' is not there"));
  until([&] { return !probe().components.at(0).ok; });
  EXPECT_TRUE(probe().ok) << "it may be back in a moment";
  clock_.leap(10s);
  until([&] { return !probe().ok; });
  EXPECT_THAT(probe().text, StartsWith("not ready: job "));
  EXPECT_THAT(probe().text, ::testing::EndsWith(" cannot work: table 'orders' is not there"));
  EXPECT_TRUE(health_of({jobs_, config_, {}, {}, {}}).ok) << "a restart mends nothing";
  queues_.heal();
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(Readiness, EndsAtOnceWhenTheDatabaseOfAnOutboxIsAway) {
  ASSERT_TRUE(start({plan("outbox:orders")}));
  EXPECT_TRUE(probe().ok);
  queues_.fail_next(test::StoreCall::claim, 1'000'000, Error(ErrorCode::unavailable, "connection refused"));
  until([&] { return !probe().ok; });
  EXPECT_EQ(probe().text, "not ready: job outbox:orders cannot work: connection refused");
  EXPECT_TRUE(health_of({jobs_, config_, {}, {}, {}}).ok) << "a restart mends nothing";
  queues_.heal();
  until([&] { return probe().ok; });
  EXPECT_TRUE(jobs_.drain(soon()).clean);
}

TEST_F(Readiness, EndsWhileALagWithALimitIsNotKnown) {
  const Lags lags{{"outbox:orders", {.age = 1s, .counted_ago = 0s, .limit = 60s, .unknown = "connection refused"}}};
  const observe::ProbeResult probe = readiness_of(true, {jobs_, config_, {}, lags, {}});
  EXPECT_FALSE(probe.ok);
  EXPECT_EQ(
      probe.text,
      "not ready: outbox:orders: how long the oldest row has waited is not known: connection refused, lag_limit is "
      "60 s");
}

TEST_F(Readiness, SaysWhenALagWasCounted) {
  const Lags lags{{"outbox:orders", {.age = 90s, .counted_ago = 4s, .limit = 60s, .unknown = {}}}};
  EXPECT_EQ(readiness_of(true, {jobs_, config_, {}, lags, {}}).text,
            "not ready: outbox:orders lags: the oldest row has waited 90 s (counted 4 s ago), lag_limit is 60 s");
}

class PluginFigures : public ::testing::Test {
 protected:
  using Board = plugin::MetricBoard;

  std::shared_ptr<Board> board(const std::string& job) {
    return std::make_shared<Board>(
        job, [this](sluice_log_level, std::string_view of, std::string_view, std::string_view text) {
          log_.push_back(std::string(of) + ": " + std::string(text));
        });
  }
  static sluice_series* make(Board& board, sluice_metric_kind kind, const char* name) {
    const sluice_metric_spec spec{sizeof(spec), kind, detail::borrow(name), detail::borrow("help"), nullptr, 0};
    return Board::series(board.metric(spec), nullptr, 0);
  }

  std::vector<std::string> log_;
};

TEST_F(PluginFigures, JobsShareTheFamilyOfAName) {
  const MetricBoards boards{{"a", board("a")}, {"b", board("b")}, {"c", board("c")}};
  Board::add(make(*boards[0].second, SLUICE_METRIC_COUNTER, "parts_total"), 1);
  Board::add(make(*boards[1].second, SLUICE_METRIC_COUNTER, "parts_total"), 2);
  const auto families = plugin_figures(boards);
  ASSERT_EQ(families.size(), 2U);
  EXPECT_EQ(families[0].name, "sluice_plugin_parts_total");
  EXPECT_TRUE(families[0].counter);
  ASSERT_EQ(families[0].figures.size(), 2U);
  EXPECT_EQ(families[0].figures[1].labels.front(), (std::pair<std::string, std::string>("sluice_job", "b")));
  EXPECT_EQ(families[0].figures[1].value, 2);
  EXPECT_EQ(families[1].name, "sluice_metrics_dropped_total");
  EXPECT_EQ(families[1].figures.size(), 2U) << "a job without metrics drops none";
}

TEST_F(PluginFigures, AnotherKindOfTheSameNameIsLeftOutAndToldOnce) {
  const MetricBoards boards{{"a", board("a")}, {"b", board("b")}};
  make(*boards[0].second, SLUICE_METRIC_COUNTER, "parts_total");
  make(*boards[1].second, SLUICE_METRIC_GAUGE, "parts_total");
  for (int i = 0; i < 3; ++i) {
    const auto families = plugin_figures(boards);
    EXPECT_EQ(families[0].figures.size(), 1U);
  }
  EXPECT_THAT(log_,
              ::testing::ElementsAre("b: the metric \"parts_total\" is not shown: job 'a' has one of that name and "
                                     "another kind; give it another name"));
}

TEST_F(PluginFigures, BucketsAddUp) {
  const MetricBoards boards{{"a", board("a")}};
  sluice_series* const sizes = make(*boards[0].second, SLUICE_METRIC_HISTOGRAM, "sizes");
  for (const double size : {0.002, 0.002, 1e9}) {
    Board::observe(sizes, size);
  }
  const auto families = plugin_figures(boards);
  const auto& buckets = families.at(0).figures.at(0).buckets;
  EXPECT_TRUE(families[0].histogram);
  EXPECT_EQ(buckets.front(), (std::pair<double, std::uint64_t>(0.001, 0)));
  EXPECT_EQ(buckets[1].second, 2U);
  EXPECT_EQ(buckets.back(), (std::pair<double, std::uint64_t>(std::numeric_limits<double>::infinity(), 3)));
}

}  // namespace
}  // namespace sluice::runtime
