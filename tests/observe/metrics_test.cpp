#include "host/observe/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "dynamo/client.hpp"

namespace sluice::observe {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// The value of the sample whose name and labels are `series`, as the text format writes it; -1 when absent.
double sample(const std::string& text, const std::string& series) {
  const auto at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

TEST(Metrics, ShowWhatAJobDid) {
  Metrics metrics;
  JobMetrics& job = metrics.job("orders", "orders-q");
  JobCounts counts;
  counts.claimed = 10;
  counts.outcomes[static_cast<std::size_t>(queue::core::OutcomeStatus::done)] = 7;
  counts.outcomes[static_cast<std::size_t>(queue::core::OutcomeStatus::retry)] = 2;
  counts.duplicates = 1;
  counts.endings[static_cast<std::size_t>(queue::core::Ending::released)] = 1;
  counts.endings[static_cast<std::size_t>(queue::core::Ending::lost)] = 4;
  counts.settle_failed = 3;
  counts.effects_refused = 2;
  counts.lost = 4;
  counts.claim_failed = 1;
  counts.held = 9;
  job.add(counts);
  job.add({.claimed = 5, .outcomes = {1}, .timed_out = 8});
  job.add({.held = 6});
  const std::string text = metrics.text();
  EXPECT_EQ(sample(text, R"(sluice_claims_total{queue="orders-q",sluice_job="orders"})"), 15);
  EXPECT_EQ(sample(text, R"(sluice_outcomes_total{outcome="done",queue="orders-q",sluice_job="orders"})"), 8);
  EXPECT_EQ(sample(text, R"(sluice_outcomes_total{outcome="retry",queue="orders-q",sluice_job="orders"})"), 2);
  EXPECT_EQ(sample(text, R"(sluice_outcomes_total{outcome="exhausted",queue="orders-q",sluice_job="orders"})"), 0)
      << "every outcome is there from the start, so that rates have a zero to begin with";
  EXPECT_EQ(sample(text, R"(sluice_outcomes_total{outcome="duplicate",queue="orders-q",sluice_job="orders"})"), 1);
  EXPECT_EQ(sample(text, R"(sluice_settled_total{ending="released",queue="orders-q",sluice_job="orders"})"), 1);
  EXPECT_EQ(sample(text, R"(sluice_settled_total{ending="done",queue="orders-q",sluice_job="orders"})"), 0);
  EXPECT_THAT(text, testing::Not(HasSubstr("ending=\"lost\""))) << "what is lost has a counter of its own";
  EXPECT_EQ(sample(text, R"(sluice_timeouts_total{queue="orders-q",sluice_job="orders"})"), 8);
  EXPECT_EQ(sample(text, R"(sluice_settle_failures_total{queue="orders-q",sluice_job="orders"})"), 3);
  EXPECT_EQ(sample(text, R"(sluice_effects_refused_total{queue="orders-q",sluice_job="orders"})"), 2);
  EXPECT_EQ(sample(text, R"(sluice_lost_receipts_total{queue="orders-q",sluice_job="orders"})"), 4);
  EXPECT_EQ(sample(text, R"(sluice_claim_failures_total{queue="orders-q",sluice_job="orders"})"), 1);
  EXPECT_EQ(sample(text, R"(sluice_in_flight{queue="orders-q",sluice_job="orders"})"), 6);
}

TEST(Metrics, PutHandlerTimesIntoBuckets) {
  Metrics metrics;
  JobMetrics& job = metrics.job("j", "q");
  job.add({.handler_times = {{milliseconds(2), 1},
                             {milliseconds(20), 100},
                             {std::chrono::hours(1), 2},
                             {milliseconds(20), 0},
                             {milliseconds(5), 1},
                             {milliseconds(5), 3}}});  // on a bound: same bucket, batch or not
  const std::string text = metrics.text();
  const auto bucket = [&text](const char* bound) {
    return sample(
        text, std::string(R"(sluice_handler_duration_seconds_bucket{queue="q",sluice_job="j",le=")") + bound + "\"}");
  };
  EXPECT_EQ(bucket("0.001"), 0);
  EXPECT_EQ(bucket("0.005"), 5);
  EXPECT_EQ(bucket("0.05"), 105);
  EXPECT_EQ(bucket("300"), 105);
  EXPECT_EQ(bucket("+Inf"), 107);
  EXPECT_EQ(sample(text, R"(sluice_handler_duration_seconds_count{queue="q",sluice_job="j"})"), 107);
  EXPECT_NEAR(sample(text, R"(sluice_handler_duration_seconds_sum{queue="q",sluice_job="j"})"), 7202.022, 0.001);
  EXPECT_EQ(sample(text, R"(sluice_attempts_total{queue="q",sluice_job="j"})"), 107);
}

TEST(Metrics, GiveOneObjectForOneJob) {
  Metrics metrics;
  EXPECT_EQ(&metrics.job("a", "q"), &metrics.job("a", "q"));
  EXPECT_NE(&metrics.job("a", "q"), &metrics.job("b", "q"));
  EXPECT_NE(&metrics.job("a", "q"), &metrics.job("a", "r"));
}

TEST(Metrics, CountDynamoRequestsPerOperationAndQueue) {
  Metrics metrics;
  metrics.dynamodb_request("q", {"Query", "orders", {.read = 0.5}, {}});
  metrics.dynamodb_request("q", {"Query", "orders", {.read = 1.5}, {}});
  metrics.dynamodb_request("other", {"Query", "other", {.read = 8}, {}});
  metrics.dynamodb_request("q", {"BatchExecuteStatement", "orders", {.write = 50}, dynamo::ErrorKind::throttled});
  const std::string text = metrics.text();
  EXPECT_EQ(sample(text, R"(sluice_dynamodb_requests_total{operation="Query",queue="q",table="orders"})"), 2);
  EXPECT_EQ(sample(text, R"(sluice_dynamodb_read_units_total{operation="Query",queue="q",table="orders"})"), 2);
  EXPECT_EQ(sample(text, R"(sluice_dynamodb_read_units_total{operation="Query",queue="other",table="other"})"), 8);
  EXPECT_EQ(
      sample(text, R"(sluice_dynamodb_write_units_total{operation="BatchExecuteStatement",queue="q",table="orders"})"),
      50);
  EXPECT_EQ(
      sample(text, R"(sluice_dynamodb_throttles_total{operation="BatchExecuteStatement",queue="q",table="orders"})"),
      1);
  EXPECT_EQ(
      sample(
          text,
          R"(sluice_dynamodb_errors_total{error="throttled",operation="BatchExecuteStatement",queue="q",table="orders"})"),
      1);
  EXPECT_EQ(sample(text, R"(sluice_dynamodb_throttles_total{operation="Query",queue="q",table="orders"})"), 0);
}

TEST(Metrics, TellWhatRunsAndHowTheProcessIs) {
  const std::string text = Metrics().text();
  EXPECT_THAT(text, HasSubstr("sluice_build_info{abi=\"1."));
  EXPECT_GE(sample(text, "process_cpu_seconds_total"), 0);
  EXPECT_GT(sample(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GE(sample(text, "process_threads"), 1);
  EXPECT_GE(sample(text, "process_open_fds"), 3);
  EXPECT_GT(sample(text, "process_start_time_seconds"), 1.6e9);
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter"));
}

TEST(Metrics, TextIsTheExpositionFormatWhateverTheLabels) {
  Metrics metrics;
  metrics.job("a \"quoted\"\nname\\", "q\n").add({.claimed = 1});
  std::istringstream lines(metrics.text());
  const std::regex form(R"((# (HELP|TYPE) [a-z_]+ .*)|([a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+0-9.eInfNa]+))");
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, form)) << line;
  }
}

TEST(Metrics, ShowsHistogramsThatOthersKeep) {
  Metrics metrics;
  static constexpr double kEnd = std::numeric_limits<double>::infinity();
  metrics.collect_from([] {
    return std::vector<FigureFamily>{{.name = "sizes",
                                      .help = "Sizes",
                                      .counter = false,
                                      .figures = {{{{"a", "x\"y\nz"}}, 12.5, {{1, 2}, {10, 3}, {kEnd, 4}}}},
                                      .histogram = true}};
  });
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("# TYPE sizes histogram\n"));
  EXPECT_EQ(sample(text, R"(sizes_bucket{a="x\"y\nz",le="1"})"), 2);
  EXPECT_EQ(sample(text, R"(sizes_bucket{a="x\"y\nz",le="10"})"), 3);
  EXPECT_EQ(sample(text, R"(sizes_bucket{a="x\"y\nz",le="+Inf"})"), 4);
  EXPECT_EQ(sample(text, R"(sizes_sum{a="x\"y\nz"})"), 12.5);
  EXPECT_EQ(sample(text, R"(sizes_count{a="x\"y\nz"})"), 4);
}

TEST(Metrics, MayBeCalledFromManyThreads) {
  Metrics metrics;
  constexpr int kRounds = 500;
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&metrics] {
        JobMetrics& job = metrics.job("j", "q");
        for (int round = 0; round < kRounds; ++round) {
          job.add({.claimed = 1, .outcomes = {1}, .handler_times = {{milliseconds(1), 2}}});
          const auto error = round % 2 == 0 ? std::optional(dynamo::ErrorKind::server) : std::nullopt;
          metrics.dynamodb_request("t", {"Query", "t", {.read = 0.5}, error});
          if (round % 100 == 0) {
            EXPECT_FALSE(metrics.text().empty());
          }
        }
      });
    }
  }
  EXPECT_EQ(sample(metrics.text(), R"(sluice_claims_total{queue="q",sluice_job="j"})"), 4 * kRounds);
  EXPECT_EQ(sample(metrics.text(), R"(sluice_dynamodb_requests_total{operation="Query",queue="t",table="t"})"),
            4 * kRounds);
}

}  // namespace
}  // namespace sluice::observe
