#include "host/plugin/metric_board.hpp"

#include <cmath>
#include <limits>
#include <thread>

#include "base/text/utf8.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

sluice_string text(std::string_view value) { return {value.data(), value.size()}; }

sluice_metric_spec spec(sluice_metric_kind kind, std::string_view name, std::string_view help = "help",
                        std::span<const double> buckets = {}) {
  return {sizeof(sluice_metric_spec),
          kind,
          text(name),
          text(help),
          buckets.empty() ? nullptr : buckets.data(),
          buckets.size()};
}

class MetricBoardTest : public ::testing::Test {
 protected:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  sluice_metric* make(sluice_metric_kind kind, std::string_view name) { return board_.metric(spec(kind, name)); }
  static sluice_series* of(sluice_metric* metric, const Pairs& labels = {}) {
    std::vector<sluice_attribute> raw;
    for (const auto& [name, value] : labels) {
      raw.push_back({text(name), text(value)});
    }
    return MetricBoard::series(metric, raw.data(), raw.size());
  }
  /// "parts_total{colour=red} 2", one for each series; of histograms their counts too.
  std::vector<std::string> lines() const { return lines_of(board_); }
  static std::vector<std::string> lines_of(const MetricBoard& board) {
    std::vector<std::string> all;
    for (const MetricFigures& metric : board.figures()) {
      for (const SeriesFigures& series : metric.series) {
        std::string line = metric.name;
        for (const auto& [name, value] : series.labels) {
          line += "{" + name + "=" + value + "}";
        }
        line += " " + std::to_string(static_cast<int>(series.value));
        for (const std::uint64_t count : series.counts) {
          line += " " + std::to_string(count);
        }
        all.push_back(std::move(line));
      }
    }
    return all;
  }
  std::vector<std::string> log() const {
    std::vector<std::string> all;
    for (const LogRecord::Line& line : log_.lines()) {
      EXPECT_EQ(line.level, SLUICE_LOG_WARN);
      EXPECT_EQ(line.job, "orders");
      all.push_back(line.text);
    }
    return all;
  }

  LogRecord log_;
  MetricBoard board_{"orders", log_.log()};
};

TEST_F(MetricBoardTest, CountsSetsAndObserves) {
  sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
  MetricBoard::add(of(parts, {{"colour", "red"}, {"size", "s"}}), 1);
  MetricBoard::add(of(parts, {{"size", "s"}, {"colour", "red"}}), 2.5);
  MetricBoard::add(of(parts, {{"colour", "blue"}, {"size", ""}}), 1);
  MetricBoard::add(of(parts, {{"colour", "blue"}}), 1);
  sluice_metric* const level = make(SLUICE_METRIC_GAUGE, "level");
  MetricBoard::set(of(level), 7);
  MetricBoard::add(of(level), -10);
  const std::array<double, 2> buckets{1, 10};
  sluice_series* const sizes = of(board_.metric(spec(SLUICE_METRIC_HISTOGRAM, "sizes", "h", buckets)));
  for (const double size : {0.5, 1.0, 9.0, 1000.0}) {
    MetricBoard::observe(sizes, size);
  }
  EXPECT_THAT(lines(), ElementsAre("level -3", "parts_total{colour=blue} 2", "parts_total{colour=red}{size=s} 3",
                                   "sizes 1010 2 1 1"));
  EXPECT_EQ(board_.dropped(), 0U);
  EXPECT_THAT(log(), IsEmpty());
}

TEST_F(MetricBoardTest, OneNameIsOneMetricAndOneSetOfLabelsOneSeries) {
  EXPECT_EQ(make(SLUICE_METRIC_GAUGE, "level"), make(SLUICE_METRIC_GAUGE, "level"));
  EXPECT_EQ(of(make(SLUICE_METRIC_GAUGE, "level"), {{"a", "1"}}), of(make(SLUICE_METRIC_GAUGE, "level"), {{"a", "1"}}));
}

TEST_F(MetricBoardTest, AMetricThatNobodyCountsWithIsZeroUnlessItHasLabels) {
  sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
  sluice_series* const plain = of(parts);
  EXPECT_THAT(lines(), ElementsAre("parts_total 0"));
  sluice_series* const red = of(parts, {{"colour", "red"}});
  EXPECT_THAT(lines(), ElementsAre("parts_total{colour=red} 0"));
  MetricBoard::add(plain, 1);
  MetricBoard::add(red, 1);
  EXPECT_THAT(lines(), ElementsAre("parts_total 1", "parts_total{colour=red} 1"));
}

TEST_F(MetricBoardTest, ANameThatIsNoneIsRefusedOnceAndCounted) {
  for (const std::string& name :
       {std::string(), std::string("1st"), std::string("a-b"), std::string("a b"), std::string(65, 'x'),
        std::string("x\n\x1b"), std::string("gr\xc3\xb6\xc3\x9f"), std::string("a_count"), std::string("a_sum"),
        std::string("a_bucket"), std::string(100'000, 'y')}) {
    MetricBoard::add(of(make(SLUICE_METRIC_COUNTER, name), {{"a", "1"}}), 1);
    MetricBoard::add(of(make(SLUICE_METRIC_COUNTER, name)), 1);
  }
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_EQ(board_.dropped(), 22U);
  ASSERT_EQ(log().size(), 11U);
  EXPECT_EQ(log()[1],
            "the metric \"1st\" is not shown: its name must be 1 to 64 letters, digits and '_' that begin with no "
            "digit");
  EXPECT_EQ(log()[5].find('\x1b'), std::string::npos);
  EXPECT_LT(log()[10].size(), 300U);
}

TEST_F(MetricBoardTest, AnotherKindAndOtherBucketsAreRefused) {
  make(SLUICE_METRIC_COUNTER, "level");
  MetricBoard::set(of(make(SLUICE_METRIC_GAUGE, "level")), 7);
  const std::array<double, 2> buckets{1, 10};
  make(SLUICE_METRIC_HISTOGRAM, "sizes");
  MetricBoard::observe(of(board_.metric(spec(SLUICE_METRIC_HISTOGRAM, "sizes", "h", buckets))), 7);
  EXPECT_EQ(board_.dropped(), 2U);
  EXPECT_THAT(log(),
              ElementsAre("the metric \"level\" is not shown: it is a counter already, and no gauge; give one of them "
                          "another name",
                          "the metric \"sizes\" is not shown: it is there already with other buckets; give one of them "
                          "another name"));
}

TEST_F(MetricBoardTest, BucketsThatAreNoneAreRefused) {
  const auto refused = [this](const std::vector<double>& buckets) {
    sluice_metric_spec bad = spec(SLUICE_METRIC_HISTOGRAM, "sizes", "h", buckets);
    static const double nothing = 0;
    bad.buckets = buckets.empty() ? &nothing : bad.buckets;
    MetricBoard::observe(of(board_.metric(bad)), 1);
    return lines().empty();
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({1, 1}));
  EXPECT_TRUE(refused({2, 1}));
  EXPECT_TRUE(refused({1, kInfinite}));
  EXPECT_TRUE(refused({kNan}));
  EXPECT_TRUE(refused(std::vector<double>(41, 1)));
  sluice_metric_spec cut = spec(SLUICE_METRIC_COUNTER, "cut");
  cut.struct_size = 8;
  MetricBoard::add(of(board_.metric(cut)), 1);
  MetricBoard::add(of(make(9, "odd")), 1);
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(MetricBoardTest, LabelsThatAreNoneAreRefused) {
  sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
  for (const Pairs& labels :
       {Pairs{{"job", "x"}}, Pairs{{"sluice_job", "x"}}, Pairs{{"le", "1"}}, Pairs{{"__name__", "x"}}, Pairs{{"", "x"}},
        Pairs{{"a b", "x"}}, Pairs{{"a", "1"}, {"a", "2"}}, Pairs(9, {"a", "1"})}) {
    MetricBoard::add(of(parts, labels), 1);
  }
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_EQ(board_.dropped(), 8U);
  EXPECT_EQ(
      log()[0],
      "the metric \"parts_total\" is not shown: the label \"job\" is not the plugin's to give: name it otherwise");
}

TEST_F(MetricBoardTest, LabelValuesAreCleanAndCut) {
  sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
  MetricBoard::add(of(parts, {{"a", "\xff"}}), 1);
  MetricBoard::add(of(parts, {{"a", "\xff"}}), 1);
  MetricBoard::add(of(parts, {{"b", std::string(100'000, 'x')}}), 1);
  EXPECT_THAT(lines(), ElementsAre("parts_total{a=" + std::string(kReplacementCharacter) + "} 2",
                                   "parts_total{b=" + std::string(256, 'x') + "} 1"));
}

TEST_F(MetricBoardTest, AHelpTextIsOneLine) {
  board_.metric(spec(SLUICE_METRIC_COUNTER, "parts_total", "Parts\n# TYPE sluice_claims_total gauge\r\xff"));
  const std::string help = board_.figures().at(0).help;
  EXPECT_THAT(help, HasSubstr("Parts"));
  EXPECT_EQ(help.find_first_of("\r\n"), std::string::npos);
  EXPECT_TRUE(is_utf8(help));
}

TEST_F(MetricBoardTest, BadValuesAreDropped) {
  sluice_series* const parts = of(make(SLUICE_METRIC_COUNTER, "parts_total"));
  for (const double value : {-1.0, kNan, kInfinite}) {
    MetricBoard::add(parts, value);
  }
  MetricBoard::set(parts, 1);
  MetricBoard::observe(parts, 1);
  MetricBoard::observe(of(make(SLUICE_METRIC_HISTOGRAM, "sizes")), kNan);
  MetricBoard::add(of(make(SLUICE_METRIC_HISTOGRAM, "sizes")), 1);
  EXPECT_EQ(board_.dropped(), 7U);
  EXPECT_EQ(lines()[0], "parts_total 0");
}

TEST_F(MetricBoardTest, NoMoreMetricsAndSeriesThanTheyMayBe) {
  sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
  for (int i = 0; i < 1000; ++i) {
    MetricBoard::add(of(parts, {{"id", std::to_string(i)}}), 1);
    make(SLUICE_METRIC_GAUGE, "gauge_" + std::to_string(i));
  }
  MetricBoard::add(of(parts, {{"id", "7"}}), 1);
  EXPECT_EQ(board_.figures().size(), 64U);
  EXPECT_EQ(lines().size(), 256U);
  EXPECT_EQ(board_.dropped(), 1000U - 256U);
  const auto said = log();
  EXPECT_EQ(said.size(), 2U) << "whoever makes up names cannot fill the log";
  EXPECT_EQ(
      std::count(said.begin(), said.end(),
                 "the metric \"parts_total\" is not shown: it has 256 sets of labels already, and further ones are "
                 "dropped; use labels of few values"),
      1);
}

TEST_F(MetricBoardTest, ThreadsCountTogether) {
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      sluice_metric* const parts = make(SLUICE_METRIC_COUNTER, "parts_total");
      sluice_metric* const sizes = make(SLUICE_METRIC_HISTOGRAM, "sizes");
      for (int j = 0; j < 10'000; ++j) {
        MetricBoard::add(of(parts, {{"odd", j % 2 == 0 ? "no" : "yes"}}), 1);
        MetricBoard::observe(of(sizes), i);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(lines()[0], "parts_total{odd=no} 20000");
  EXPECT_EQ(lines()[1], "parts_total{odd=yes} 20000");
  EXPECT_THAT(lines()[2], HasSubstr("sizes 60000 10000 "));
}

class TwoBoards : public MetricBoardTest {
 protected:
  /// Tells the first board's changes to the second.
  bool tell() {
    for (const MetricChange& change : board_.take_changes()) {
      if (!other_.apply(change, known_)) {
        return false;
      }
    }
    return true;
  }

  MetricBoard other_{"orders", log_.log()};
  std::vector<ToldSeries> known_;
};

TEST_F(TwoBoards, WhatOneHasComeToAddsUpOnTheOther) {
  sluice_series* const red = of(make(SLUICE_METRIC_COUNTER, "parts_total"), {{"colour", "red"}});
  sluice_series* const level = of(make(SLUICE_METRIC_GAUGE, "level"));
  sluice_series* const busy = of(make(SLUICE_METRIC_GAUGE, "busy"));
  sluice_series* const sizes = of(make(SLUICE_METRIC_HISTOGRAM, "sizes"));
  EXPECT_TRUE(tell());
  EXPECT_EQ(lines_of(other_), lines()) << "what is zero is told too";
  MetricBoard::add(of(other_.metric(spec(SLUICE_METRIC_COUNTER, "parts_total")), {{"colour", "red"}}), 100);
  MetricBoard::add(of(other_.metric(spec(SLUICE_METRIC_GAUGE, "busy"))), 5);
  for (int i = 0; i < 3; ++i) {
    MetricBoard::add(red, 2);
    MetricBoard::set(level, 40 + i);
    MetricBoard::add(busy, i == 2 ? -1 : 1);
    MetricBoard::observe(sizes, 0.003);
    MetricBoard::observe(sizes, 100);
    EXPECT_TRUE(tell());
  }
  EXPECT_THAT(lines_of(other_), ElementsAre("busy 6", "level 42", "parts_total{colour=red} 106",
                                            "sizes 300 0 0 3 0 0 0 0 0 0 0 0 0 0 0 3"));
  EXPECT_THAT(board_.take_changes(), IsEmpty()) << "nothing new";
}

TEST_F(TwoBoards, AGaugeWithoutEndIsTold) {
  sluice_series* const level = of(make(SLUICE_METRIC_GAUGE, "level"));
  MetricBoard::set(level, kInfinite);
  EXPECT_TRUE(tell());
  EXPECT_TRUE(tell());
  EXPECT_EQ(other_.figures().at(0).series.at(0).value, kInfinite);
}

TEST_F(TwoBoards, WhatMakesNoSenseIsRefused) {
  const auto fresh = [](std::uint32_t number) {
    MetricChange change;
    change.number = number;
    change.fresh = true;
    change.kind = SLUICE_METRIC_HISTOGRAM;
    change.name = "sizes";
    change.bounds = {1};
    change.counts = {1, 1};
    return change;
  };
  EXPECT_FALSE(other_.apply(fresh(1), known_));
  EXPECT_FALSE(other_.apply({}, known_));
  EXPECT_TRUE(other_.apply(fresh(0), known_));
  MetricChange few;
  few.counts = {1};
  EXPECT_FALSE(other_.apply(few, known_));
  MetricChange far;
  far.number = 1'000'000'000;
  EXPECT_FALSE(other_.apply(far, known_));
  EXPECT_THAT(lines_of(other_), ElementsAre("sizes 0 1 1"));
}

TEST(HandlerMetrics, ReachTheBoardOfTheJob) {
  const SystemClock clock;
  Attempt attempt(clock);
  const auto board = std::make_shared<MetricBoard>("orders", HandlerLog());
  const auto make = [&board] {
    return HandlerInstance::create({.log = {}, .metrics = board}, fixture_handler("measures"), "orders", {});
  };
  auto one = make();
  auto other = make();
  ASSERT_TRUE(one);
  ASSERT_TRUE(other);
  queue::Message message;
  message.body = "red";
  EXPECT_EQ((*one)->handle({message, "q", 0, attempt}).status, OutcomeStatus::done);
  EXPECT_EQ((*other)->handle({message, "q", 0, attempt}).status, OutcomeStatus::done);
  const auto figures = board->figures();
  ASSERT_EQ(figures.size(), 4U);
  EXPECT_EQ(figures[1].name, "parts_total");
  EXPECT_EQ(figures[1].help, "Parts by their colour");
  ASSERT_EQ(figures[1].series.size(), 1U);
  EXPECT_EQ(figures[1].series[0].value, 2) << "instances of a job share a metric";
}

TEST(HandlerMetrics, AreSaidToNobodyWhereNobodyAsks) {
  const SystemClock clock;
  Attempt attempt(clock);
  auto created = HandlerInstance::create({}, fixture_handler("measures"), "orders", {});
  ASSERT_TRUE(created);
  EXPECT_EQ((*created)->handle({{}, "q", 0, attempt}).status, OutcomeStatus::done);
}

}  // namespace
}  // namespace sluice::plugin
