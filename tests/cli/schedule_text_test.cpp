#include "host/cli/views/schedule_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "base/timestamp.hpp"

namespace sluice::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ScheduleText : public ::testing::Test {
 protected:
  ScheduleText() {
    job_.queue = "orders";
    config::ScheduleConfig schedule;
    schedule.name = "sweep";
    schedule.every = std::chrono::hours(1);
    schedule.queue = "orders";
    job_.schedules.push_back(schedule);
    definition_ = runtime::definition_of(schedule);
  }

  void told(const std::string& last, bool sent = true) {
    const WallTime time = *parse_timestamp(last);
    const config::ScheduleTimes::Time at(std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()));
    told_[{"orders", "sweep"}] = {definition_, "a", "a.toml", at, sent ? std::optional(at) : std::nullopt};
  }
  std::string line() { return schedule_lines(job_, now_, &told_).at(0); }
  boost::json::value json() {
    JsonWriter json(JsonWriter::Layout::compact);
    json.begin_object();
    write_schedules(json, job_, now_, &told_);
    json.end_object();
    return boost::json::parse(json.take_text()).at("schedules").at(0);
  }

  const WallTime now_ = *parse_timestamp("2026-11-22T12:30:00Z");
  config::JobConfig job_;
  std::string definition_;
  ScheduleNotices told_;
};

TEST_F(ScheduleText, OneThatNoHostHasHadIsNew) {
  EXPECT_THAT(line(), AllOf(HasSubstr("last never"), Not(HasSubstr("missed")), HasSubstr("next 2026-11-22 13:00")));
  EXPECT_TRUE(json().at("last").is_null());
  EXPECT_EQ(json().at("missed").as_int64(), 0);
  EXPECT_THAT(schedule_lines(job_, now_).at(0), Not(HasSubstr("last"))) << "`check` asks no store";
}

TEST_F(ScheduleText, OneThatHasNeverSentSaysSo) {
  told("2026-11-22T12:00:00Z", false);
  EXPECT_THAT(line(), AllOf(HasSubstr("; last never; next 2026-11-22 13:00"), Not(HasSubstr("missed"))));
  EXPECT_TRUE(json().at("last").is_null());
  EXPECT_EQ(json().at("told_by").as_string(), "a");
  told("2026-11-22T09:00:00Z", false);
  EXPECT_THAT(line(), HasSubstr("; last never; missed 3: ")) << "what was missed is counted from when a host had it";
}

TEST_F(ScheduleText, OneThatIsUpToDateHasMissedNothing) {
  told("2026-11-22T12:00:00Z");
  EXPECT_THAT(line(), AllOf(HasSubstr("last 2026-11-22 12:00:00"), Not(HasSubstr("missed"))));
  EXPECT_EQ(json().at("last").as_string(), "2026-11-22T12:00:00.000000000Z");
  EXPECT_EQ(json().at("next").as_array().size(), 3U);
}

TEST_F(ScheduleText, WhatWasMissedIsCountedWithWhatBecomesOfIt) {
  told("2026-11-22T09:00:00Z");
  EXPECT_THAT(line(), HasSubstr("missed 3: the last of them is sent when a host runs"));
  EXPECT_EQ(json().at("missed").as_int64(), 3);
  job_.schedules[0].catch_up = config::CatchUp::none;
  EXPECT_THAT(line(), HasSubstr("missed 3: they are let go"));
  job_.schedules[0].catch_up = config::CatchUp::all;
  EXPECT_THAT(line(), HasSubstr("missed 3: they are sent when a host runs"));
}

TEST_F(ScheduleText, WhatIsDueJustNowIsNotMissed) {
  told("2026-11-22T12:00:00Z");
  job_.schedules[0].every = std::chrono::minutes(30);
  EXPECT_THAT(line(), Not(HasSubstr("missed"))) << "its host has two minutes to tell of it";
}

TEST_F(ScheduleText, OneThatAHostHasOtherwiseIsToldWithTheMend) {
  told("2026-11-22T12:00:00Z");
  EXPECT_EQ(schedule_lines(job_, now_, &told_).size(), 1U);
  EXPECT_TRUE(json().at("differs_on").is_null());
  definition_ = "every 20m to queue orders";
  told("2026-11-22T12:00:00Z");
  const auto lines = schedule_lines(job_, now_, &told_);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1],
            "  schedule sweep is not the same everywhere: on host a a.toml has every 20m to queue orders; make the "
            "files the same and reload, or give one of them another name");
  EXPECT_EQ(json().at("differs_on").as_string(), "a");
}

TEST_F(ScheduleText, ALongAbsenceIsCountedToALimit) {
  told("2026-01-01T00:00:00Z");
  EXPECT_THAT(line(), HasSubstr("missed 100 or more"));
}

}  // namespace
}  // namespace sluice::cli
