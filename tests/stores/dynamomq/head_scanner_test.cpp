#include "host/stores/dynamomq/head_scanner.hpp"

#include <gtest/gtest.h>

#include "base/timestamp.hpp"

namespace sluice::queue::dynamomq {
namespace {

using namespace std::chrono_literals;
using Kind = ScanStep::Kind;

class Scanning : public ::testing::Test {
 protected:
  void pass_time(Duration span) {
    now_.wall += span;
    now_.steady += span;
  }
  ScanStep next(std::size_t want = 10) { return scanner_.next(now_, want); }
  dynamo::Item key(const std::string& sent_at) {
    return {{"id", "x"}, {"queue_type", "STANDARD"}, {"sent_at", sent_at}};
  }
  std::string past() const { return format_timestamp(now_.wall - 1h); }

  // A pass that ends after `invisible` records of 1 KB in flight, coming due after `due`.
  void pass_over(std::size_t invisible, Duration due = 1h) {
    const ScanStep step = next();
    ScanFinding finding;
    finding.items = invisible;
    finding.read_units = static_cast<double>(invisible) / 8;
    if (invisible > 0) {
      finding.stretches = {{past(), finding.read_units, now_.wall + due}};
    }
    scanner_.absorb(step, finding);
  }

  table::Moment now_{*parse_timestamp("2026-11-20T23:14:00.25Z"), SteadyTime(1000s)};
  HeadScanner scanner_;
};

TEST_F(Scanning, BeginsAtTheHead) {
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::head);
  EXPECT_TRUE(step.from.empty());
  EXPECT_TRUE(step.after.empty());
  EXPECT_GE(step.limit, 20);
  EXPECT_FALSE(scanner_.at_end());
}

TEST_F(Scanning, GoesOnWhereAPageEnded) {
  ScanFinding finding{
      .items = 25, .ready = 25, .read_units = 3, .last_key = key(past()), .stretches = {}, .future_due = {}};
  scanner_.absorb(next(), finding);
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::onward);
  EXPECT_EQ(step.after, finding.last_key);
  scanner_.absorb(step, {});
  EXPECT_TRUE(scanner_.at_end());
}

TEST_F(Scanning, LightHeadIsReadAtEveryPoll) {
  pass_over(3);
  EXPECT_TRUE(scanner_.at_end());
  EXPECT_EQ(next().kind, Kind::head);
}

TEST_F(Scanning, TailOverlapsByItsMargin) {
  pass_over(1'000);
  const WallTime ended = now_.wall;
  pass_time(300ms);
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::tail);
  EXPECT_LE(step.from, format_timestamp(ended - HeadScanner::kTailMargin));
  EXPECT_GT(step.from, format_timestamp(ended - HeadScanner::kTailMargin - 1s));
}

TEST_F(Scanning, ClockThatWasSetBackDoesNotSkipAnything) {
  pass_over(1'000);
  now_.wall -= 1h;
  now_.steady += 100ms;
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::tail);
  EXPECT_LT(step.from, format_timestamp(now_.wall));
}

TEST_F(Scanning, ReadsAStretchAgainWhenItsFirstRecordComesDue) {
  pass_over(300, 8s);
  pass_time(7s);
  EXPECT_EQ(next().kind, Kind::tail);
  scanner_.absorb(next(), {});
  pass_time(1001ms);
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::due);
  EXPECT_EQ(step.to, format_timestamp(now_.wall - 1h - 8001ms));
  EXPECT_EQ(next().kind, Kind::tail) << "what is new does not wait for it";
}

TEST_F(Scanning, LimitGrowsWithDemandAndWithWhatIsInFlight) {
  const auto first = next(1);
  EXPECT_EQ(first.limit, HeadScanner::kSmallestPage);
  std::int64_t before = first.limit;
  ScanFinding finding{
      .items = 25, .ready = 25, .read_units = 3, .last_key = key(past()), .stretches = {}, .future_due = {}};
  scanner_.absorb(first, finding);
  for (int i = 0; i < 8; ++i) {
    const auto step = next(1);
    EXPECT_GE(step.limit, before);
    EXPECT_LE(step.limit, HeadScanner::kLargestLimit);
    before = step.limit;
    scanner_.absorb(step, finding);
  }
  EXPECT_EQ(before, HeadScanner::kLargestPage);
  finding.ready = 0;
  scanner_.absorb(next(1), finding);
  EXPECT_EQ(next(1).limit, HeadScanner::kLargestLimit);
}

TEST_F(Scanning, DroppedCandidatesAreReadAgainInSmallerPages) {
  ScanFinding finding{
      .items = 25, .ready = 25, .read_units = 3, .last_key = key(past()), .stretches = {}, .future_due = {}};
  scanner_.absorb(next(), finding);
  scanner_.rewind({"2026-11-20T11:00:00Z", "2026-11-20T10:00:00Z"});
  const ScanStep step = next();
  EXPECT_EQ(step.kind, Kind::onward);
  EXPECT_EQ(step.from, "2026-11-20T10:00:00Z");
  EXPECT_TRUE(step.after.empty());
}

TEST_F(Scanning, MuchInTheFutureBoundsTheReading) {
  const ScanStep first = next();
  EXPECT_TRUE(first.to.empty()) << "so that one request covers unsorted records too";
  ScanFinding finding{.items = 25, .future = 25, .read_units = 3};
  finding.last_key = key(format_timestamp(now_.wall + 1h));
  scanner_.absorb(first, finding);
  EXPECT_TRUE(scanner_.at_end());
  const ScanStep second = next();
  EXPECT_EQ(second.to, "2026-11-20T23:14:00Z");
  scanner_.absorb(second, {});
  EXPECT_FALSE(scanner_.next_unsorted(now_));
  pass_time(2s);
  const auto unsorted = scanner_.next_unsorted(now_);
  ASSERT_TRUE(unsorted);
  EXPECT_EQ(unsorted->kind, Kind::unsorted);
  EXPECT_GT(unsorted->from, "9999-12-31T23:59:59Z");
  EXPECT_TRUE(scanner_.next_unsorted(now_)) << "as long as no query has succeeded";
  scanner_.absorb(*unsorted, {});
  EXPECT_FALSE(scanner_.next_unsorted(now_));
  EXPECT_TRUE(next().to.empty()) << "and looks whether the future still is that full";
}

TEST_F(Scanning, BoundCoversEveryFractionOfItsSecond) {
  const std::string bound = due_bound(now_.wall);
  EXPECT_GE(bound, "2026-11-20T23:14:00Z");
  EXPECT_GE(bound, "2026-11-20T23:14:00.25Z");
  EXPECT_GE(bound, "2026-11-20T23:14:00.000000000Z");
  EXPECT_LT(bound, "2026-11-20T23:14:01Z");
  EXPECT_LT(bound, "2026-11-20T23:14:01.000000000Z");
}

TEST_F(Scanning, RestartBeginsAnew) {
  pass_over(1'000);
  scanner_.restart();
  EXPECT_EQ(next().kind, Kind::head);
}

}  // namespace
}  // namespace sluice::queue::dynamomq
