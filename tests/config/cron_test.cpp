#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>

#include "config/schedule_times.hpp"
#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Time = ScheduleTimes::Time;

std::string wrong(const std::string& line) {
  const auto parsed = parse_cron(line);
  const auto* text = std::get_if<std::string>(&parsed);
  return text == nullptr ? "" : *text;
}

ScheduleTimes times_of(const std::string& cron, const std::string& zone = "UTC") {
  ScheduleConfig schedule;
  schedule.cron = cron;
  schedule.time_zone = zone;
  auto times = ScheduleTimes::of(schedule);
  EXPECT_TRUE(times) << cron << " in " << zone;
  return *times;
}

std::vector<std::string> next_texts(const ScheduleTimes& times, Time from, int count) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    from = times.next_after(from);
    texts.push_back(times.text(from));
  }
  return texts;
}

Time utc(std::int64_t seconds) { return Time(std::chrono::seconds(seconds)); }

// Of 2026, UTC.
const Time kMarch28 = utc(1'774'656'000);    // 2026-03-28T00:00:00Z
const Time kOctober24 = utc(1'792'800'000);  // 2026-10-24T00:00:00Z

TEST(Cron, FieldsBecomeBits) {
  const auto line = std::get<CronLine>(parse_cron("*/15 9-17 1,15 JAN-mar fri-SUN"));
  EXPECT_EQ(line.minutes, (1ULL << 0) | (1ULL << 15) | (1ULL << 30) | (1ULL << 45));
  EXPECT_EQ(std::popcount(line.hours), 9);
  EXPECT_EQ(line.days, (1U << 1U) | (1U << 15U));
  EXPECT_EQ(line.months, 0b1110U);
  EXPECT_EQ(line.weekdays, (1U << 5U) | (1U << 6U) | (1U << 0U));
  EXPECT_EQ(std::get<CronLine>(parse_cron("0 0 * * 7")).weekdays, 1U);
  EXPECT_EQ(std::get<CronLine>(parse_cron("10-20/5 0 * * *")).minutes, (1ULL << 10) | (1ULL << 15) | (1ULL << 20));
}

TEST(Cron, WhatIsWrongIsSaidWithTheMend) {
  EXPECT_THAT(wrong("* * * *"), HasSubstr("five fields"));
  EXPECT_THAT(wrong("* * * *"), HasSubstr("it has 4"));
  EXPECT_THAT(wrong(""), HasSubstr("it has 0"));
  EXPECT_THAT(wrong("60 * * * *"), HasSubstr("bad minute, \"60\": 60 is not within 0 to 59"));
  EXPECT_THAT(wrong("* 24 * * *"), HasSubstr("bad hour"));
  EXPECT_THAT(wrong("* * 0 * *"), HasSubstr("bad day of the month"));
  EXPECT_THAT(wrong("* * * 13 *"), HasSubstr("bad month"));
  EXPECT_THAT(wrong("* * * * 8"), HasSubstr("bad day of the week"));
  EXPECT_THAT(wrong("* * * MON *"), HasSubstr("names of three letters"));
  EXPECT_THAT(wrong("5/15 * * * *"), HasSubstr("write 5-59/15"));
  EXPECT_THAT(wrong("*/0 * * * *"), HasSubstr("a step is"));
  EXPECT_THAT(wrong("*/60 * * * *"), HasSubstr("smaller than its range"));
  EXPECT_THAT(wrong("* 22-2 * * *"), HasSubstr("write 22-23,0-2"));
  EXPECT_THAT(wrong("1,,2 * * * *"), HasSubstr("it takes 0 to 59"));
  EXPECT_THAT(wrong("-1 * * * *"), HasSubstr("bad minute"));
  EXPECT_THAT(wrong("+1 * * * *"), HasSubstr("bad minute"));
  EXPECT_THAT(wrong("* * L * *"), HasSubstr("bad day of the month"));
  EXPECT_THAT(wrong("@daily"), HasSubstr("write \"0 0 * * *\""));
  EXPECT_THAT(wrong("@reboot"), HasSubstr("write five fields"));
  EXPECT_THAT(wrong("0 0 */2 * MON"), HasSubstr("write its days out"));
  EXPECT_THAT(wrong("99999999999 * * * *"), HasSubstr("bad minute"));
}

TEST(Cron, ALineThatIsNeverDueIsRefused) {
  EXPECT_EQ(wrong("0 0 31 2 *"), "is never due: FEB has 29 days at most; take another day, or another month");
  EXPECT_THAT(wrong("0 0 31 FEB,APR,JUN *"), HasSubstr("FEB has 29 days at most, APR has 30 days at most, JUN"));
  EXPECT_THAT(wrong("0 0 30,31 2 *"), HasSubstr("never due"));
  EXPECT_EQ(wrong("0 0 29 2 *"), "");
  EXPECT_EQ(wrong("0 0 31 2,3 *"), "");
  // Its Mondays come up.
  EXPECT_EQ(wrong("0 0 31 2 MON"), "");
}

// croniter, which Debian has, knows the same lines: tests/config/cron/make_cases.py.
TEST(Cron, AgreesWithAnotherImplementation) {
  std::ifstream file(SLUICE_CRON_CASES);
  std::string text;
  int cases = 0;
  while (std::getline(file, text)) {
    std::istringstream row(text);
    std::string line;
    std::getline(row, line, '\t');
    std::int64_t seconds = 0;
    row >> seconds;
    const ScheduleTimes times = times_of(line);
    Time at = utc(seconds);
    for (std::int64_t expected = 0; row >> expected;) {
      at = times.next_after(at);
      EXPECT_EQ(at, utc(expected)) << text << ": " << times.text(at);
    }
    ++cases;
  }
  EXPECT_GT(cases, 300);
}

TEST(ScheduleTimes, ATimeThatTheClocksSkipIsDueWhenTheyGoForward) {
  const ScheduleTimes daily = times_of("30 2 * * *", "Europe/Vienna");
  EXPECT_THAT(next_texts(daily, kMarch28, 3),
              ElementsAre("2026-03-28 02:30:00 CET", "2026-03-29 03:00:00 CEST", "2026-03-30 02:30:00 CEST"));
  // Several of one gap are one.
  const ScheduleTimes often = times_of("0,20,40 1-3 29 3 *", "Europe/Vienna");
  EXPECT_THAT(next_texts(often, kMarch28, 7),
              ElementsAre("2026-03-29 01:00:00 CET", "2026-03-29 01:20:00 CET", "2026-03-29 01:40:00 CET",
                          "2026-03-29 03:00:00 CEST", "2026-03-29 03:20:00 CEST", "2026-03-29 03:40:00 CEST",
                          "2027-03-29 01:00:00 CEST"));
}

TEST(ScheduleTimes, ATimeThatComesTwiceIsDueTheFirstTime) {
  const ScheduleTimes daily = times_of("30 2 * * *", "Europe/Vienna");
  EXPECT_THAT(next_texts(daily, kOctober24, 3),
              ElementsAre("2026-10-24 02:30:00 CEST", "2026-10-25 02:30:00 CEST", "2026-10-26 02:30:00 CET"));
}

TEST(ScheduleTimes, ALineOfEveryHourGoesOnThroughBoth) {
  const ScheduleTimes hourly = times_of("30 * * * *", "Europe/Vienna");
  EXPECT_THAT(next_texts(hourly, utc(1'774'739'000), 3),  // 2026-03-28T23:03:20Z
              ElementsAre("2026-03-29 00:30:00 CET", "2026-03-29 01:30:00 CET", "2026-03-29 03:30:00 CEST"));
  EXPECT_THAT(next_texts(hourly, utc(1'792'886'000), 4),  // 2026-10-24T23:53:20Z
              ElementsAre("2026-10-25 02:30:00 CEST", "2026-10-25 02:30:00 CET", "2026-10-25 03:30:00 CET",
                          "2026-10-25 04:30:00 CET"));
}

TEST(ScheduleTimes, ClocksThatChangeAtMidnightLoseNoDay) {
  // 2018-11-04 began at one o'clock in Sao Paulo; 2011-12-30 did not come at all in Apia.
  EXPECT_THAT(next_texts(times_of("0 0 * * *", "America/Sao_Paulo"), utc(1'541'220'000), 3),
              ElementsAre("2018-11-04 01:00:00 -02", "2018-11-05 00:00:00 -02", "2018-11-06 00:00:00 -02"));
  EXPECT_THAT(next_texts(times_of("0 12 * * *", "Pacific/Apia"), utc(1'325'210'000), 2),
              ElementsAre("2011-12-31 00:00:00 +14", "2011-12-31 12:00:00 +14"));
}

TEST(ScheduleTimes, AnIntervalIsAlignedToTheEpoch) {
  ScheduleConfig schedule;
  schedule.every = std::chrono::minutes(15);
  const auto times = ScheduleTimes::of(schedule);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->next_after(utc(900)), utc(1800));
  EXPECT_EQ(times->next_after(utc(901)), utc(1800));
  EXPECT_EQ(times->next_after(utc(-1)), utc(0));
  EXPECT_THAT(times->between(utc(0), utc(3600), 100), ElementsAre(utc(900), utc(1800), utc(2700), utc(3600)));
  EXPECT_THAT(times->between(utc(0), utc(900'000'000), 2), ElementsAre(utc(899'999'100), utc(900'000'000)));
  EXPECT_THAT(times->between(utc(900), utc(1799), 5), IsEmpty());
}

TEST(ScheduleTimes, TheLastTimesOfAnAbsenceAreThoseThatWereDue) {
  const struct {
    const char* line;
    const char* zone;
    Time begin;
    Time end;
  } absences[] = {
      {"*/7 * * * *", "Europe/Vienna", utc(1'792'880'001), utc(1'792'904'000)},        // clocks go back
      {"0,20,40 1-3 * * *", "Europe/Vienna", utc(1'774'700'000), utc(1'774'760'000)},  // clocks go forward
      {"*/30 * * * *", "Atlantic/Azores", utc(1'792'880'000), utc(1'792'905'000)},     // back, across midnight
      {"0 0 * * *", "America/Sao_Paulo", utc(1'541'100'000), utc(1'541'500'000)},
      {"0 12 * * *", "Pacific/Apia", utc(1'325'000'000), utc(1'325'500'000)},
      {"0 0 29 2 *", "UTC", utc(0), utc(1'774'656'000)},
      {"15 6 * * MON", "Asia/Kathmandu", utc(1'774'656'000), utc(1'774'656'000)},
  };
  for (const auto& [line, zone, begin, end] : absences) {
    const ScheduleTimes times = times_of(line, zone);
    std::vector<Time> all;
    for (Time due = times.next_after(begin); due <= end; due = times.next_after(due)) {
      all.push_back(due);
    }
    for (const std::size_t most : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
      const std::size_t count = std::min(most, all.size());
      EXPECT_EQ(times.between(begin, end, most),
                std::vector<Time>(all.end() - static_cast<std::ptrdiff_t>(count), all.end()))
          << line << " in " << zone << ", the last " << most;
    }
  }
}

// One by one, the minutes of a thousand years would take hours, in which nothing that is due is sent.
TEST(ScheduleTimes, ALongAbsenceCostsWhatIsWantedOfIt) {
  const ScheduleTimes times = times_of("* * * * *", "Europe/Vienna");
  const Time end = utc(33'000'000'000);
  EXPECT_THAT(times.between(utc(1'000'000'000), end, 2), ElementsAre(end - std::chrono::minutes(1), end));
  EXPECT_THAT(times.between(utc(1'000'000'000), end, 1), ElementsAre(end));
}

TEST(ScheduleTimes, ALeapDayMayBeEightYearsAway) {
  // 2096-03-01T00:00:00Z
  EXPECT_EQ(times_of("0 0 29 2 *").text(times_of("0 0 29 2 *").next_after(utc(3'981'312'000))),
            "2104-02-29 00:00:00 UTC");
}

TEST(ScheduleTimes, ZonesAreNamesAndNotFiles) {
  for (const std::string name :
       {"", "localtime", "/etc/localtime", "../../etc/passwd", ":UTC", "Mars/Olympus", "PST "}) {
    EXPECT_FALSE(has_time_zone(name)) << name;
  }
  EXPECT_TRUE(has_time_zone("UTC"));
  EXPECT_TRUE(has_time_zone("America/Argentina/Buenos_Aires"));
}

std::string job_errors(const std::string& text) {
  return errors_text(
      parse_job_config("[job]\nqueue = \"orders\"\nhandler = \"log\"\n" + text, "jobs.d/a.toml", environment_of({})));
}

TEST(ScheduleFile, IsReadWhole) {
  const JobConfig job = value_of(parse_job_config(R"(
[job]
queue = "orders"
handler = "log"
[schedule.report]
cron = "30 6 * * MON-FRI"
time_zone = "Europe/Vienna"
catch_up = "all"
queue = "reports"
body = '{"kind": "daily"}'
content_type = "application/json"
attributes = { tenant = "acme" }
group = "g"
priority = "high"
[schedule.sweep]
every = "15m"
)",
                                                  "jobs.d/a.toml", environment_of({})));
  ASSERT_EQ(job.schedules.size(), 2U);
  const ScheduleConfig& report = job.schedules[0];
  EXPECT_EQ(report.name, "report");
  EXPECT_EQ(report.cron, "30 6 * * MON-FRI");
  EXPECT_EQ(report.time_zone, "Europe/Vienna");
  EXPECT_EQ(report.catch_up, CatchUp::all);
  EXPECT_EQ(report.queue, "reports");
  EXPECT_EQ(report.body, R"({"kind": "daily"})");
  EXPECT_EQ(report.content_type, "application/json");
  EXPECT_EQ(report.attributes.at("tenant"), "acme");
  EXPECT_EQ(report.group, "g");
  EXPECT_EQ(report.priority, "high");
  EXPECT_EQ(job.schedules[1].every, std::chrono::minutes(15));
  EXPECT_EQ(job.schedules[1].time_zone, "UTC");
  EXPECT_EQ(job.schedules[1].queue, job.queue) << "which is named once";
}

TEST(ScheduleFile, SaysWhatIsWrongWithFileAndLine) {
  EXPECT_EQ(job_errors("[schedule.a]\ncron = \"0 0 31 2 *\"\n"),
            "jobs.d/a.toml:5:8: 'cron' in [schedule.a] is never due: FEB has 29 days at most; take another day, or "
            "another month\n");
  EXPECT_THAT(job_errors("[schedule.a]\n"), HasSubstr("[schedule.a] has neither 'cron' nor 'every'"));
  EXPECT_THAT(job_errors("[schedule.a]\ncron = \"* * * * *\"\nevery = \"1m\"\n"), HasSubstr("has both"));
  EXPECT_THAT(job_errors("[schedule.a]\nevery = \"1500ms\"\n"), HasSubstr("whole seconds"));
  EXPECT_THAT(job_errors("[schedule.a]\nevery = \"10ms\"\n"), HasSubstr("'every' in [schedule.a] must be"));
  EXPECT_THAT(job_errors("[schedule.a]\ncron = \"* * * * *\"\ntime_zone = \"Europe/Wien\"\n"),
              HasSubstr("'time_zone' in [schedule.a] names no time zone of this machine: \"Europe/Wien\"; give its"));
  EXPECT_THAT(job_errors("[schedule.a]\nevery = \"1m\"\ntime_zone = \"UTC\"\n"), HasSubstr("goes with 'cron' only"));
  EXPECT_THAT(job_errors("[schedule.a]\nevery = \"1m\"\ncatchup = \"last\"\n"), HasSubstr("catch_up"));
  EXPECT_THAT(job_errors("[schedule.a]\nevery = \"1m\"\nattributes = { a = 1 }\n"),
              HasSubstr("must hold strings only"));
  EXPECT_THAT(job_errors("[schedule.\"a b\"]\nevery = \"1m\"\n"), HasSubstr("a schedule's name must be"));
  EXPECT_THAT(job_errors("schedule = 3\n"), HasSubstr("schedule"));
}

TEST(ScheduleFile, OneNameIsOfOneSchedule) {
  const TemporaryFolder folder;
  const std::string host = folder.write("host.toml", "");
  const std::string job = "[job]\nqueue = \"orders\"\nhandler = \"log\"\n[schedule.nightly]\nevery = \"1h\"\n";
  folder.write("jobs.d/a.toml", job);
  folder.write("jobs.d/b.toml", job);
  const auto files = load_job_files(value_of(load_host_config(host, environment_of({}))), environment_of({}));
  ASSERT_EQ(files.errors.size(), 1U);
  EXPECT_THAT(files.errors[0].text(), HasSubstr("b.toml:4:11: the schedule name 'nightly' is taken by"));
  EXPECT_THAT(files.errors[0].text(), HasSubstr("a.toml:4; give one of them another name"));
}

TEST(HostFile, QueuesHaveSqssRules) {
  const HostConfig host = value_of(parse_host_config(R"(
[queues.orders]
dedup = "content"
dedup_window = "1h"
max_in_flight = 100
max_lease = "2h"
)",
                                                     "host.toml", environment_of({})));
  const QueueConfig queue = host.queue("orders");
  EXPECT_TRUE(queue.dedup_by_content);
  EXPECT_EQ(queue.dedup_window, std::chrono::hours(1));
  EXPECT_EQ(queue.max_in_flight, 100U);
  EXPECT_EQ(queue.max_lease, std::chrono::hours(2));
  EXPECT_FALSE(host.queue("others").dedup_by_content);
}

TEST(HostFile, SqssRulesSayWhatIsWrong) {
  const auto errors = [](const std::string& text) {
    return errors_text(parse_host_config(text, "host.toml", environment_of({})));
  };
  EXPECT_THAT(errors("[queues.a]\ndedup = \"body\"\n"), HasSubstr("\"id\" or \"content\""));
  EXPECT_THAT(errors("[queues.a]\nmax_in_flight = 0\n"), HasSubstr("from 1 to 120000"));
  EXPECT_THAT(errors("[queues.a]\nmax_lease = \"13h\"\n"), HasSubstr("max_lease"));
  EXPECT_THAT(errors("[queues.a]\nvisibility_timeout = \"1m\"\nmax_lease = \"30s\"\n"),
              HasSubstr("must not be shorter than visibility_timeout, 1m; it is 30s"));
  EXPECT_THAT(errors("[store]\nkind = \"dynamodb\"\n[queues.a]\nlayout = \"dynamomq\"\nmax_in_flight = 5\n"),
              HasSubstr("'max_in_flight' in [queues.a] needs a queue on SQLite or a leased one"));
  EXPECT_EQ(errors("[store]\nkind = \"dynamodb\"\n[queues.a]\nmax_in_flight = 8\n"), "");
  EXPECT_THAT(errors("[stores.t]\nkind = \"dynamodb\"\n[queues.a]\nstore = \"t\"\ntable = \"go\"\nmax_in_flight = 5\n"),
              HasSubstr("needs a queue on SQLite"));
}

TEST(HostFile, AQueueOnDynamoDbIsLeasedUnlessATableIsNamed) {
  const HostConfig host = value_of(parse_host_config(R"(
[store]
kind = "dynamodb"
[stores.file]
kind = "sqlite"
path = "file.db"
[queues.local]
store = "file"
[queues.go]
table = "orders-of-go"
[queues.older]
index = "by-time"
[queues.named]
layout = "dynamomq"
[queues.orders]
shards = 64
fence = "strict"
[queues.invoices]
layout = "leased"
table = "mine"
)",
                                                     "host.toml", environment_of({})));
  EXPECT_EQ(host.queue("orders").layout, Layout::leased);
  EXPECT_EQ(host.queue("orders").shards, 64U);
  EXPECT_EQ(host.queue("orders").fence, Fence::strict);
  EXPECT_EQ(host.queue("orders").table, "sluice-queues") << "one table for many";
  EXPECT_EQ(host.queue("invoices").table, "mine");
  EXPECT_EQ(host.queue("invoices").shards, 8U);
  EXPECT_TRUE(host.leased("orders"));
  EXPECT_TRUE(host.leased("others")) << "which the file does not know";
  EXPECT_EQ(host.queue("others").table, "sluice-queues");
  for (const std::string queue : {"local", "go", "older", "named"}) {
    EXPECT_FALSE(host.leased(queue)) << queue;
  }
  EXPECT_EQ(host.queue("go").table, "orders-of-go");
  EXPECT_EQ(host.queue("older").table, "older");
  EXPECT_EQ(host.queue("named").table, "named");
}

TEST(HostFile, WhatDoesNotGoWithALayoutIsNamed) {
  const auto errors = [](const std::string& text) {
    return errors_text(parse_host_config(text, "host.toml", environment_of({})));
  };
  const std::string leased = "[store]\nkind = \"dynamodb\"\n[queues.a]\nlayout = \"leased\"\n";
  EXPECT_THAT(errors(leased + "shards = 0\n"), HasSubstr("host.toml:5:10"));
  EXPECT_THAT(errors(leased + "shards = 0\n"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(errors(leased + "shards = 10000\n"), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(errors(leased + "index = \"by-type\"\n"), HasSubstr("a leased table has no index"));
  EXPECT_THAT(errors("[queues.a]\nlayout = \"leased\"\n"),
              HasSubstr("host.toml:2:1: 'layout' in [queues.a] is how a queue lies in a DynamoDB table"));
  EXPECT_THAT(errors("[queues.a]\nlayout = \"lesaed\"\n"), HasSubstr("\"dynamomq\" or \"leased\""));
  for (const char* key : {"shards = 4", "fence = \"strict\""}) {
    EXPECT_THAT(errors("[store]\nkind = \"dynamodb\"\n[queues.a]\ntable = \"go\"\n" + std::string(key) + "\n"),
                HasSubstr("goes with layout = \"leased\" only; leave it out"));
  }
}

}  // namespace
}  // namespace sluice::config
