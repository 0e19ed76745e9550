#include "host/fleet/host_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::fleet {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr std::size_t kPlenty = 1U << 20U;

RunningRecord running(const std::string& message) {
  RunningRecord record;
  record.message = message;
  record.job = "mailer";
  record.queue = "mails";
  record.handler = "send_mail";
  record.worker = 3;
  record.attempt = 2;
  record.since = WallTime(1'700'000'000s);
  record.times_out_at = WallTime(1'700'000'060s);
  record.leased_until = WallTime(1'700'000'030s);
  record.cancelled = true;
  return record;
}

HostRecord full_record() {
  HostRecord record;
  record.instance = "h-1";
  record.name = "ops \"1\"";
  record.pid = 4711;
  record.version = "1.2.3";
  record.address = "127.0.0.1:9100";
  record.host_file = "/etc/sluice/host.toml";
  record.state = HostState::draining;
  record.unhealthy = "no more workers take their place";
  record.not_ready = "job mailer cannot work";
  record.left_behind = "job mailer: a handler had not returned";
  record.up = 95s;
  record.started_at = WallTime(1'700'000'000s);
  record.every = 30s;
  record.seen = 17;
  record.log_level = "debug";
  record.file_log_level = "info";
  record.jobs.resize(1);
  JobRecord& job = record.jobs.front();
  job.name = "mailer";
  job.queue = "mails";
  job.dead_letters = true;
  job.handler = "send_mail";
  job.plugin = "mail.so";
  job.plugin_version = "2.0";
  job.concurrency = 16;
  job.file_concurrency = 8;
  job.paused = true;
  job.cut_off = true;
  job.running = 1;
  job.claimed = 10;
  job.done = 7;
  job.retried = 2;
  job.rejected = 1;
  job.timed_out = 3;
  job.pace = {.claimed = 1.5, .done = 1.25, .failed = 0.25, .mean = 20ms, .p95 = 40ms, .slowest = 2s, .over = 12s};
  record.answers.push_back({"d-1", true, "stop token set"});
  record.spent_in = std::chrono::minutes(20);
  record.spent = {{"orders", "mailer", {{12, 3.5, 480}, 120, 130, 240, 1.25, 0.75}},
                  {"orders", "(shared)", {{4, 2, 0}, 0, 0}}};
  record.attribute = "tenant";
  record.values = {{"acme", {{6.25, 1, 240}, 60, 65}}};
  record.running_total = 1;
  record.detailed = true;
  record.running.push_back(running("m-1"));
  return record;
}

TEST(HostRecord, ComesBackAsItWasWritten) {
  const std::string text = write_record(full_record(), kPlenty);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto read = read_record(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(write_record(*read, kPlenty), text);
  EXPECT_EQ(read->label(), "ops \"1\":4711");
  EXPECT_EQ(read->state, HostState::draining);
  EXPECT_EQ(read->unhealthy, "no more workers take their place");
  EXPECT_EQ(read->not_ready, "job mailer cannot work");
  EXPECT_EQ(read->left_behind, "job mailer: a handler had not returned");
  EXPECT_EQ(read->up, 95s);
  EXPECT_EQ(read->every, 30s);
  EXPECT_EQ(read->jobs.at(0).pace.over, 12s);
  EXPECT_EQ(read->jobs.at(0).pace.slowest, 2s);
  EXPECT_EQ(read->jobs.at(0).timed_out, 3U);
  EXPECT_TRUE(read->jobs.at(0).cut_off);
  EXPECT_EQ(read->spent_in, std::chrono::minutes(20));
  EXPECT_EQ(read->spent.at(0).usage.spent.write_units, 480);
  EXPECT_EQ(read->spent.at(0).usage.indexed_kib, 240);
  EXPECT_EQ(read->spent.at(0).usage.message_seconds, 1.25);
  EXPECT_EQ(read->spent.at(0).usage.kib_seconds, 0.75);
  EXPECT_EQ(read->spent.at(1).job, "(shared)");
  EXPECT_EQ(read->values.at(0).usage.kib, 65);
  EXPECT_EQ(read->running.at(0).times_out_at, WallTime(1'700'000'060s));
  EXPECT_TRUE(read->running.at(0).cancelled);
  EXPECT_FALSE(read->running.at(0).stuck);
}

TEST(HostRecord, IsCalledByNameLabelAndInstance) {
  const HostRecord record = full_record();
  EXPECT_TRUE(record.is_called("ops \"1\""));
  EXPECT_TRUE(record.is_called("ops \"1\":4711"));
  EXPECT_TRUE(record.is_called("h-1"));
  EXPECT_FALSE(record.is_called("ops"));
  EXPECT_FALSE(record.is_called(""));
}

TEST(HostRecord, LeavesOutWhatDoesNotFit) {
  HostRecord record = full_record();
  record.not_ready.clear();
  record.left_behind.clear();
  for (int i = 2; i <= 500; ++i) {
    record.running.push_back(running("m-" + std::to_string(i)));
    record.answers.push_back({"d-" + std::to_string(i), true, "done"});
  }
  record.running_total = 500;
  for (std::size_t most = 300; most < 300'000; most = most * 3 / 2) {
    const std::string text = write_record(record, most);
    EXPECT_LE(text.size(), std::max<std::size_t>(most, 512));
    const auto read = read_record(text);
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->running_total, 500U);
    EXPECT_EQ(read->jobs.size() + read->jobs_left_out, 1U);
    if (!read->running.empty()) {
      EXPECT_EQ(read->running.front().message, "m-1") << "the first are kept";
      EXPECT_EQ(read->answers.size(), 500U) << "answers come first";
    }
    if (!read->answers.empty()) {
      EXPECT_EQ(read->answers.back().directive, "d-500") << "the newest are kept";
    }
  }
}

// Up to two KiB it is told every half minute; beyond that more seldom.
TEST(HostRecord, AnIdleHostTakesLittleMoreThanAKilobyte) {
  HostRecord record = full_record();
  record.running.clear();
  record.answers.clear();
  record.values.clear();
  record.spent = {{"mails", "mailer", {{3600, 1800, 0}, 0, 0}}, {"mails", "(shared)", {{3720, 1860, 120}, 0, 0}}};
  record.jobs.resize(2, record.jobs.front());
  record.unhealthy.clear();
  record.not_ready.clear();
  record.left_behind.clear();
  EXPECT_LT(write_record(record, kPlenty).size(), 1'280U);
}

TEST(HostRecord, PassesOverWhatOtherVersionsWrite) {
  const auto read = read_record(
      R"({"new": {"deep": [1, {}]}, "name": "a", "pid": "not a number", "jobs": [{"name": "j", "concurrency": -3,
          "odd": [1]}, 7], "state": "dancing", "started_at": 5, "every_ms": 1e300, "seen": 99999999999999999999})");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->name, "a");
  EXPECT_EQ(read->pid, 0);
  EXPECT_EQ(read->jobs.size(), 2U);
  EXPECT_EQ(read->jobs.at(0).concurrency, 0U);
  EXPECT_EQ(read->state, HostState::starting);
  EXPECT_EQ(read->every, Duration::zero());
}

TEST(HostRecord, GarbageIsCorrupt) {
  for (const std::string text : {"", "[]", "null", "{", "{\"name\": }", "\x01\xff\xfe", "{} x", "7"}) {
    const auto read = read_record(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code(), ErrorCode::corrupt);
    EXPECT_THAT(read.error().message(), ::testing::HasSubstr("the record of a host cannot be read"));
  }
  EXPECT_FALSE(read_record(std::string(100'000, '{')));
}

}  // namespace
}  // namespace sluice::fleet
