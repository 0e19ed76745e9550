// Tables in a terminal of 80 columns, with ids, hosts and queues as long as they are in earnest.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "host/cli/views/output.hpp"
#include "host/cli/views/queue_report.hpp"
#include "host/operate/fleet_report.hpp"
#include "tests/cli/terminal.hpp"
#include "tests/cli/transcript.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 50)};
constexpr Screen kNarrow{.colours = false, .columns = 80};
const std::string kQueue = "customer-notifications-eu-west-1";
const std::string kJob = "customer-notification-mailer";

void expect_narrow(const std::string& text) {
  for (const std::string& line : lines_of(text)) {
    EXPECT_LE(display_width(line), 80U) << line;
  }
}

fleet::KnownHost host(const std::string& name, fleet::Pulse pulse) {
  fleet::JobRecord job;
  job.name = kJob;
  job.queue = kQueue;
  job.handler = "send-customer-mail";
  job.plugin = "customer-mail.so";
  job.plugin_version = "12.4.0";
  job.concurrency = job.file_concurrency = 16;
  job.running = 12;
  job.pace = {.claimed = 1234, .done = 1200, .failed = 12.5, .mean = 12ms, .p95 = 180ms, .slowest = 3s};
  fleet::HostRecord record;
  record.instance = name + "-instance";
  record.name = name;
  record.pid = 4711;
  record.version = "1.12.0";
  record.address = "10.20.130.140:9464";
  record.state = fleet::HostState::running;
  record.started_at = kNow - 50h;
  record.log_level = record.file_log_level = "info";
  record.running_total = 12;
  record.jobs = {job};
  return {record, pulse, 2s, {}};
}

fleet::FleetView hosts() {
  fleet::FleetView view;
  view.hosts = {host("sluice-worker-7f9c8d5b4-x2kq1", fleet::Pulse::fresh),
                host("sluice-worker-7f9c8d5b4-m9zzt", fleet::Pulse::late)};
  return view;
}

cost::Usage usage(double messages) {
  return {.spent = {.requests = messages / 10, .read_units = messages / 2, .write_units = messages * 2},
          .messages = messages,
          .kib = messages,
          .indexed_kib = messages};
}

std::string fleet_tables(const Screen& screen) {
  const fleet::FleetView view = hosts();
  fleet::SteeringView steering;
  const auto jobs = [&] { return rows_of(operate::summarize_jobs({}, view, steering), kNow, {screen, job_columns()}); };
  std::string text = rows_of(view.hosts, kNow, {screen, host_columns()}) + "\n" + jobs();
  steering.given.push_back({.directive = {.id = "1",
                                          .wish = fleet::Wish::pause,
                                          .target = fleet::Target::queue,
                                          .name = kQueue,
                                          .value = {},
                                          .by = "annette@operations-bastion-1",
                                          .at = kNow - 5min},
                            .place = {}});
  text += "\n" + jobs();
  fleet::RunningRecord handler{.message = "3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c",
                               .job = kJob,
                               .queue = kQueue,
                               .handler = "send-customer-mail",
                               .worker = 11,
                               .attempt = 2,
                               .since = kNow - 90s,
                               .times_out_at = kNow + 30s};
  text += "\n" + rows_of(std::vector<operate::HandlerAtWork>{{"sluice-worker-7f9c8d5b4-x2kq1:4711", handler}}, kNow,
                         {screen, running_columns()});
  const std::vector<fleet::AuditEntry> audit{
      {.id = "1", .at = kNow - 5min, .who = "annette@operations-bastion-1", .what = "pause queue " + kQueue},
      {.id = "2",
       .at = kNow - 3h,
       .who = "bo@ops-1",
       .what = "move queue " + kQueue + " to customer-notifications-2",
       .ended_at = kNow - 2h,
       .changed = 12345}};
  return text + "\n" + rows_of(audit, kNow, {.screen = screen});
}

TEST(Narrow, TablesOfAFleet) {
  const std::string text = fleet_tables(kNarrow);
  expect_narrow(text);
  for (const char* const seen : {"-x2kq1:4711", "3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c", "queue paused by ", "FAILED/S",
                                 "late", "pause queue customer-"}) {
    EXPECT_THAT(text, HasSubstr(seen));
  }
  EXPECT_THAT(fleet_tables({}), HasSubstr("10.20.130.140:9464")) << "elsewhere nothing is left out";
}

TEST(Narrow, LongIdsLoseTheirMiddleAndNoColumn) {
  const std::string id = "customer-notifications/eu-west-1/2026-11-27/3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c-retry";
  queue::StoredMessage stored;
  stored.message.id = id;
  stored.created_at = kNow - 5min;
  const auto ls = [&stored] {
    return rows_of(std::vector{operate::ListedMessage{stored}}, kNow,
                   {kNarrow, {"ID", "STATE", "RECEIVES", "AGE", "ERROR"}});
  };
  expect_narrow(ls());
  EXPECT_THAT(ls(), AllOf(HasSubstr("STATE"), HasSubstr("RECEIVES"), HasSubstr("AGE"), HasSubstr("b5c-retry")));
  EXPECT_THAT(ls(), Not(HasSubstr("ERROR"))) << "nothing stands in it";
  stored.failure.error = "connection to smtp.example.com:587 refused after 30 s: no route to host";
  expect_narrow(ls());
  EXPECT_THAT(ls(), AllOf(HasSubstr("STATE"), HasSubstr("AGE"), HasSubstr("connection to")));
  stored.invisible_until = kNow + 1h;
  stored.received_at = kNow;
  const std::string both = rows_of(std::vector{operate::ListedMessage{stored}}, kNow,
                                   {kNarrow, {"ID", "HALF", "STATE", "RECEIVES", "AGE", "ERROR"}});
  expect_narrow(both);
  EXPECT_THAT(both, AllOf(HasSubstr("in_flight"), HasSubstr("connection to smtp.example.com"))) << "the id loses more";
  const operate::HandlerAtWork at_work{"sluice-worker-7f9c8d5b4-x2kq1:4711",
                                       {.message = id, .job = kJob, .queue = kQueue, .handler = "exec"}};
  const std::string running = rows_of(std::vector{at_work}, kNow, {kNarrow, running_columns()});
  expect_narrow(running);
  EXPECT_THAT(running, AllOf(HasSubstr("HOST"), HasSubstr("b5c-retry")));
  EXPECT_THAT(rows_of(std::vector{at_work}, kNow, {{}, running_columns()}), HasSubstr(id)) << "elsewhere it is whole";
}

TEST(Narrow, ALimitIsWholeAndAnAuditSaysWhat) {
  fleet::FleetView view = hosts();
  view.hosts[0].record.jobs[0].rate_limit = view.hosts[1].record.jobs[0].rate_limit = "20/s per host";
  const std::string jobs = rows_of(operate::summarize_jobs({}, view, {}), kNow,
                                   {kNarrow, {"JOB", "QUEUE", "STATE", "LIMIT", "RUNNING", "DONE/S"}});
  expect_narrow(jobs);
  EXPECT_THAT(jobs, HasSubstr("20/s/host"));
  const fleet::AuditEntry deed{.id = "1",
                               .at = kNow - 5min,
                               .who = "annette@operations-bastion-1",
                               .what = "redrive the dead-letter half of queue orders",
                               .state = fleet::DeedState::begun};
  const std::string audit = rows_of(std::vector{deed}, kNow, {.screen = kNarrow});
  expect_narrow(audit);
  EXPECT_THAT(audit, AllOf(HasSubstr("dead-letter half of queue"), HasSubstr("AGO"), Not(HasSubstr("WHEN"))));
  EXPECT_THAT(json_of(deed, kNow), HasSubstr("\"changed\": null,")) << "nobody knows";
}

TEST(Narrow, TablesOfCosts) {
  operate::CostSummary costs;
  costs.rows.push_back({.queue = kQueue, .job = kJob, .hosts = 12, .hour = usage(123456), .per_hour = 0.31});
  costs.rows.push_back({.queue = kQueue, .job = "(shared)", .hosts = 12, .hour = usage(0), .per_hour = 0.001});
  costs.attribute = "tenant";
  costs.values.push_back({"a-tenant-with-a-long-name-limited", usage(5000)});
  costs.hosts = 12;
  costs.covered = 1h;
  costs.shortest = 20min;
  const std::string text = cost_text(costs, cost::Prices(), kNarrow);
  expect_narrow(text);
  for (const char* const seen : {"PER MILLION", "A MONTH", "SINCE START", "WITH SENDING", "(shared)"}) {
    EXPECT_THAT(text, HasSubstr(seen));
  }
  costs.covered = costs.shortest = 0s;
  EXPECT_THAT(cost_text(costs, cost::Prices(), {}), AllOf(HasSubstr("within a minute"), Not(HasSubstr("last 0s"))));
}

TEST(Narrow, TheErrorOfADeadLetterIsSeen) {
  queue::QueueOverview half;
  queue::ErrorGroup& cause = half.errors.emplace_back();
  cause.error = "connection to smtp.example.com:587 refused after 30 s: no route to host";
  cause.count = 1;
  cause.example = "3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c";
  cause.last_failed_at = kNow - 5min;
  cause.first_failed_at = kNow - 50h;
  cause.fingerprint = "3f2a90c1";
  cause.handlers = {{"send-customer-mail", 1}};
  cause.hosts = {{"sluice-worker-7f9c8d5b4-x2kq1", 1}};
  const std::string text = error_table(half, kNow, kNarrow);
  expect_narrow(text);
  EXPECT_EQ(text,
            "COUNT  LAST HOUR  FIRST  LAST  CAUSE     ERROR\n"
            "    1          0     2d    5m  3f2a90c1  connection to smtp.example.com:587 ref…\n");
}

/// A folder whose names are long, with dead letters.
class Desk {
 public:
  Desk() : folder_("[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues." + kQueue + "]\n") {
    folder_.write("jobs.d/mailer.toml", "[job]\nname = \"" + kJob + "\"\nqueue = \"" + kQueue +
                                            "\"\nhandler = \"send-customer-mail\"\n[schedule.weekly-report-of-all]\n"
                                            "cron = \"30 6 * * MON-FRI\"\ntime_zone = \"UTC\"\nbody = \"1\"\n");
    for (const char* const id : {"3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c", "3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5d"}) {
      folder_.run({"send", kQueue, "--id", id, "--data", "1"});
    }
    folder_.run({"invalid", kQueue, "3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5d", "--reason",
                 "connection to smtp.example.com:587 refused after 30 s: no route to host"});
  }

  const test::HostFolder& folder() const { return folder_; }
  std::string shown(const std::vector<std::string>& words) const {
    const std::string text = test::on_terminal(folder_, words).text;
    const std::string plain = std::regex_replace(text, std::regex("\x1b\\[[0-9]*m|\r"), "");
    return std::regex_replace(plain, std::regex("20[0-9]{2}-[0-9]{2}-[0-9]{2}"), "2026-11-27");
  }

 private:
  test::HostFolder folder_;
};

TEST(Narrow, TablesOfAQueue) {
  const Desk desk;
  std::string text;
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"ls"}, {"ls", kQueue, "--dlq"}, {"dlq", kQueue}, {"stats"}, {"queues"}, {"jobs"}}) {
    text += desk.shown(words) + "\n";
  }
  expect_narrow(text);
  // Ages keep their column.
  test::expect_golden("narrow_queue", std::regex_replace(text, std::regex("( +)[0-9]+s(?= |\n)"), "$1?s"));
  EXPECT_THAT(desk.shown({"dlq", "--wide"}), HasSubstr("no route to host"));
}

TEST(Narrow, LinesOfPlugins) {
  const Desk desk;
  const std::vector<std::vector<std::string>> all{
      {"plugin", "inspect", SLUICE_NOTED_PLUGIN},
      {"plugins", "--dir", std::string(SLUICE_NOTED_PLUGIN).substr(0, std::string(SLUICE_NOTED_PLUGIN).rfind('/'))},
      {"plugin", "validate", SLUICE_FIXTURE_PLUGIN, "--step-limit", "1s", "--seed", "7"}};
  for (const auto& words : all) {
    for (const std::string& line : lines_of(desk.shown(words))) {
      // A path is one word.
      EXPECT_TRUE(display_width(line) <= 80U || line.find(' ', line.find_first_not_of(' ')) == std::string::npos)
          << line;
    }
  }
}

}  // namespace
}  // namespace sluice::cli
