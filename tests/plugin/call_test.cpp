#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "host/plugin/handler_instance.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""ns;

sluice_outcome reported(sluice_status status, std::int64_t delay = -1, std::string_view reason = "why") {
  return {sizeof(sluice_outcome), status, delay, {reason.data(), reason.size()}};
}

TEST(ReadOutcome, KnowsEveryStatus) {
  EXPECT_EQ(read_outcome(reported(SLUICE_DONE)).status, OutcomeStatus::done);
  EXPECT_EQ(read_outcome(reported(SLUICE_RETRY)).status, OutcomeStatus::retry);
  EXPECT_EQ(read_outcome(reported(SLUICE_SNOOZE)).status, OutcomeStatus::snooze);
  EXPECT_EQ(read_outcome(reported(SLUICE_REJECT)).status, OutcomeStatus::reject);
  EXPECT_EQ(read_outcome(reported(SLUICE_DISCARD)).status, OutcomeStatus::discard);
  EXPECT_EQ(read_outcome(reported(SLUICE_RELEASE)).status, OutcomeStatus::release);
  EXPECT_EQ(read_outcome(reported(SLUICE_FAULT)).status, OutcomeStatus::fault);
  EXPECT_EQ(read_outcome(reported(SLUICE_REJECT)).reason, "why");
  EXPECT_EQ(read_outcome(reported(SLUICE_FAULT)).reason, "why");
}

TEST(ReadOutcome, UnknownStatusIsAFault) {
  for (const sluice_status status : {-1, 7, std::numeric_limits<sluice_status>::max()}) {
    const Outcome outcome = read_outcome(reported(status));
    EXPECT_EQ(outcome.status, OutcomeStatus::fault);
    EXPECT_THAT(outcome.reason, ::testing::HasSubstr(std::to_string(status)));
  }
}

TEST(ReadOutcome, NegativeDelayOfARetryMeansByPolicy) {
  EXPECT_EQ(read_outcome(reported(SLUICE_RETRY, -1)).delay, std::nullopt);
  EXPECT_EQ(read_outcome(reported(SLUICE_RETRY, 0)).delay, 0ns);
  EXPECT_EQ(read_outcome(reported(SLUICE_RETRY, 5)).delay, 5ns);
}

TEST(ReadOutcome, SnoozeAlwaysHasADelayThatIsNotNegative) {
  EXPECT_EQ(read_outcome(reported(SLUICE_SNOOZE, -1)).delay, 0ns);
  EXPECT_EQ(read_outcome(reported(SLUICE_SNOOZE, 7)).delay, 7ns);
}

TEST(ReadOutcome, DelaysAreLimitedSoThatNowPlusDelayIsATime) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(read_outcome(reported(SLUICE_SNOOZE, kMost)).delay, kDelayLimit);
  EXPECT_EQ(read_outcome(reported(SLUICE_RETRY, kMost)).delay, kDelayLimit);
  EXPECT_EQ(read_outcome(reported(SLUICE_DONE, kMost)).delay, std::nullopt);
}

TEST(ReadOutcome, ReasonIsCutAndMadeUtf8) {
  EXPECT_EQ(read_outcome(reported(SLUICE_REJECT, -1, std::string(5000, 'x'))).reason.size(), 4096U);
  EXPECT_EQ(read_outcome(reported(SLUICE_REJECT, -1, "a\xff")).reason, "a\xEF\xBF\xBD");
  sluice_outcome null_reason = reported(SLUICE_REJECT);
  null_reason.reason = {nullptr, 12};
  EXPECT_EQ(read_outcome(null_reason).reason, "");
}

TEST(ReadOutcome, TooShortAStructIsAFault) {
  sluice_outcome outcome = reported(SLUICE_DONE);
  outcome.struct_size = 8;
  EXPECT_EQ(read_outcome(outcome).status, OutcomeStatus::fault);
  outcome.struct_size = sizeof(sluice_outcome) + 64;  // of a later minor version
  EXPECT_EQ(read_outcome(outcome).status, OutcomeStatus::done);
}

TEST(WriteLog, CutsLongTextAndSaysSo) {
  LogRecord record;
  const std::string text(kLogTextLimit + 1, 'x');
  write_log(record.log(), SLUICE_LOG_INFO, "job", "id", {text.data(), text.size()});
  write_log(record.log(), SLUICE_LOG_INFO, "job", "id", {text.data(), kLogTextLimit});
  EXPECT_THAT(record.lines()[0].text, ::testing::EndsWith("x... (cut; it has 16385 bytes)"));
  EXPECT_EQ(record.lines()[1].text.size(), kLogTextLimit);
}

TEST(WriteLog, UnknownLevelsCountAsInfo) {
  LogRecord record;
  for (const sluice_log_level level : {-1, 5, 99}) {
    write_log(record.log(), level, "job", "", {nullptr, 0});
  }
  for (const LogRecord::Line& line : record.lines()) {
    EXPECT_EQ(line.level, SLUICE_LOG_INFO);
  }
}

TEST(WriteLog, ABrokenOrAbsentLogIsNotTheHandlersAffair) {
  const HandlerLog broken = [](sluice_log_level, std::string_view, std::string_view, std::string_view) {
    throw std::runtime_error("disk full");
  };
  write_log(broken, SLUICE_LOG_INFO, "job", "", {nullptr, 0});
  write_log(HandlerLog(), SLUICE_LOG_INFO, "job", "", {nullptr, 0});
}

}  // namespace
}  // namespace sluice::plugin
