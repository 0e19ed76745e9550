#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/views/output.hpp"
#include "host/cli/views/top_view.hpp"
#include "tests/operate/fleet_rig.hpp"

namespace sluice::cli {
namespace {

using operate::QueueCount;
using operate::TopKey;
using operate::TopModel;
using test::handler_at;
using test::job_record;
using test::kNoon;
using test::known_host;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = TopKey::Kind;

TopModel night_shift() {
  TopModel model({"orders", "mails", "images"});
  fleet::FleetView view;
  auto mailer = job_record("mailer", "mails");
  mailer.running = 2;
  mailer.stuck = 1;
  mailer.pace = {0,
                 12.4,
                 1.25,
                 std::chrono::milliseconds(840),
                 std::chrono::seconds(2),
                 std::chrono::seconds(31),
                 std::chrono::seconds(10)};
  auto picker = job_record("picker", "orders", 16);
  picker.running = 16;
  picker.pace = {0,
                 1234,
                 0,
                 std::chrono::milliseconds(12),
                 std::chrono::milliseconds(16),
                 std::chrono::seconds(1),
                 std::chrono::seconds(10)};
  view.hosts = {known_host("web-1", 4711, {mailer}), known_host("web-2", 12, {picker})};
  view.hosts[0].record.running_total = 2;
  view.hosts[0].record.running = {handler_at("M-77", mailer, std::chrono::seconds(95))};
  view.hosts[1].record.running_total = 16;
  view.hosts[1].pulse = fleet::Pulse::late;
  view.hosts[1].age = std::chrono::seconds(14);
  fleet::SteeringView steering;
  steering.given = {test::given(fleet::Wish::pause, fleet::Target::queue, "images")};
  model.see(view, steering);
  QueueCount mails;
  mails.standard.ready = 1204;
  mails.standard.in_flight = 2;
  mails.standard.delayed = 31;
  mails.dead.ready = 3000;
  mails.standard.oldest_ready = kNoon - std::chrono::minutes(12);
  mails.counted_at = kNoon;
  model.see("mails", mails, kNoon);
  QueueCount orders;
  orders.standard.ready = 1000;
  orders.standard.at_least = true;
  orders.counted_at = kNoon;
  model.see("orders", orders, kNoon);
  model.see_trouble("images", "the table is missing");
  return model;
}

TopFrame frame(std::size_t columns, std::size_t rows) {
  TopFrame made;
  made.columns = columns;
  made.rows = rows;
  made.now = kNoon;
  made.every = "2s";
  return made;
}

std::string text_of(const std::vector<std::string>& lines) {
  std::string text = "\n";
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return text;
}

TEST(TopScreen, ShowsQueuesHostsAndTheSlowestHandlers) {
  EXPECT_EQ(text_of(draw_top(night_shift(), frame(120, 24))), R"(
sluice top  12:00:00Z, every 2s  hosts 2, workers 24, running 18

 QUEUE   READYv  IN FLIGHT  DELAYED    DLQ  OLDEST  IN/S  OUT/S  FAILED/S  STATE
>mails    1,204          2       31  3,000     12m     -     12       1.2
 orders  1,000+         0+       0+      0       -     -   1.2k         0  no answer
 images       ?          ?        ?      ?       -     -      0         0  the table is missing

HOST        STATE          UP  RUNNING  DONE/S  FAILED/S  SEEN  VERSION
web-1:4711  running        3h        2      12       1.2    1s  1.0.0
web-2:12    running, late  3h        -       -         -   14s  1.0.0
web-2:12 has not told of itself since 2026-11-20T11:59:46Z, 14s ago: it is busy, stopped, cut off or dead; at work
    then: 16 handlers

SLOWEST JOBS  HANDLER         WORKERS  RUNNING  STUCK   MEAN    P95  SLOWEST  LONGEST NOW
mailer        mailer_handler        8        2      1  840ms  2.00s    31.0s  M-77 95.0s
picker        picker_handler       16       16      0   12ms   16ms    1.00s
q quit  s sort  r reverse  / filter  p pause or resume  ? help
)");
}

TEST(TopScreen, AtEightyColumnsTheHeadlineIsWhole) {
  TopFrame narrow = frame(80, 24);
  narrow.cost = "7.5 RCU/s, 0 WCU/s";
  EXPECT_EQ(draw_top(night_shift(), narrow).front(),
            "12:00:00Z, every 2s  hosts 2, workers 24, running 18  7.5 RCU/s, 0 WCU/s");
}

TEST(TopScreen, SaysOfAQueueWhoWorksOnItAndNoTimeThatNobodyKnows) {
  TopModel model({"mails", "orders"});
  const auto text = [&model] { return text_of(draw_top(model, frame(120, 0))); };
  model.see({}, {});
  EXPECT_THAT(text(), HasSubstr("no host"));
  fleet::FleetView view;
  const fleet::JobRecord mailer = job_record("mailer", "mails");
  view.hosts = {known_host("web-1", 1, {mailer})};
  model.see(view, {});
  EXPECT_THAT(text(), AllOf(HasSubstr("no job"), Not(HasSubstr("no host")), Not(HasSubstr("no answer"))));
  view.hosts[0].silence = "it does not answer at its control socket";
  view.hosts[0].record.running = {handler_at("M-1", mailer, std::chrono::seconds(9))};
  view.hosts[0].record.running[0].since = {};  // only its crash ledger tells of it
  model.see(view, {});
  EXPECT_THAT(text(), AllOf(HasSubstr("no answer"), HasSubstr("M-1 -")));
  view.hosts[0].record.running.push_back(handler_at("M-2", mailer, std::chrono::seconds(9)));
  model.see(view, {});
  EXPECT_THAT(text(), HasSubstr("M-2 9.00s")) << "of those that are known the longest";
}

TEST(TopScreen, AtEightyColumnsJobsOfOneHandlerAreToldApartAndReasonsAreWhole) {
  TopModel model({});
  fleet::FleetView view;
  std::vector<fleet::JobRecord> jobs;
  for (const char* const name : {"nightly-report-mailer", "nightly-report-cleaner"}) {
    jobs.push_back(job_record(name, "mails"));
    jobs.back().handler = "exec";
  }
  view.hosts = {known_host("sluice-worker-7f9c8d5b4-x2kq1.eu-west-1.internal", 4711, jobs)};
  view.hosts[0].record.unhealthy = "job nightly-report-mailer: no more workers take their place: restart the host";
  view.hosts[0].record.running = {
      handler_at("3f2a90c1-7d6e-4f5a-8b9c-0d1e2f3a4b5c", jobs[0], std::chrono::seconds(95))};
  model.see(view, {});
  const auto lines = draw_top(model, frame(80, 24));
  const std::string text = text_of(lines);
  for (const char* const seen : {"mailer ", "leaner ", "restart the host", "95.0s"}) {
    EXPECT_THAT(text, HasSubstr(seen));
  }
}

TEST(TopScreen, HostsThatAreNotKnownAreNotNone) {
  TopModel model({"mails"});
  model.see_no_hosts("the table does not answer");
  model.see_trouble("mails", "timeout");
  const std::string text = text_of(draw_top(model, frame(120, 0)));
  EXPECT_THAT(text, AllOf(HasSubstr("hosts ?, workers ?, running ?"), HasSubstr("  ?  "), HasSubstr("timeout")));
  EXPECT_THAT(text, Not(HasSubstr("no host")));
  fleet::FleetView view;
  view.hosts = {known_host("web-1", 4711, {job_record("mailer", "mails")})};
  view.troubles = {{"table mails", Error(ErrorCode::timeout, "timeout")}};
  model.see(view, {});
  EXPECT_THAT(draw_top(model, frame(120, 0)).front(), HasSubstr("hosts 1+, workers 8+, running 0+"));
}

TEST(TopScreen, OnePictureHasNothingAboutKeys) {
  const auto lines = draw_top(night_shift(), frame(1000, 0));
  EXPECT_THAT(text_of(lines), AllOf(HasSubstr("picker_handler"), Not(HasSubstr("q quit")), Not(HasSubstr(">mails"))));
}

TEST(TopScreen, FitsIntoAnyTerminal) {
  const TopModel model = night_shift();
  for (std::size_t rows = 1; rows < 30; ++rows) {
    for (const std::size_t columns : {1, 2, 10, 40, 79, 200}) {
      for (const bool colours : {false, true}) {
        TopFrame made = frame(columns, rows);
        made.colours = colours;
        const auto lines = draw_top(model, made);
        EXPECT_LE(lines.size(), rows);
        for (const std::string& line : lines) {
          EXPECT_EQ(fit_line(line, columns), line) << rows << " rows, " << columns << " columns: " << line;
        }
      }
    }
  }
}

TEST(TopScreen, TheSelectedQueueIsAlwaysSeen) {
  std::vector<std::string> names;
  for (int i = 100; i < 200; ++i) {
    names.push_back("q" + std::to_string(i));
  }
  TopModel model(names);
  const TopFrame small = frame(80, 12);
  for (int i = 0; i < 99; ++i) {
    model.press({Kind::down});
    EXPECT_THAT(text_of(draw_top(model, small)), HasSubstr(">" + model.queues()[model.selected()].name)) << i;
  }
}

TEST(TopScreen, AsksBeforeItPauses) {
  TopModel model = night_shift();
  model.press({Kind::character, 'p'});
  EXPECT_THAT(draw_top(model, frame(80, 24)).back(), HasSubstr("Pause queue mails on all hosts? [y/N]"));
  model.press({Kind::character, 'n'});
  EXPECT_EQ(draw_top(model, frame(80, 24)).back(), "left as it is");
}

TEST(TopScreen, NamesFromOutsideSteerNoTerminal) {
  TopModel model({"evil\x1b[2J\nqueue"});
  model.press({Kind::character, 'p'});
  EXPECT_THAT(draw_top(model, frame(200, 24)), Each(Not(HasSubstr("\x1b[2J"))));
  model.press({Kind::character, 'n'});
  model.say("an error\x1b[2J of a store");
  EXPECT_THAT(draw_top(model, frame(200, 24)), Each(Not(HasSubstr("\x1b[2J"))));
}

TEST(FitLine, CutsBetweenCharactersAndEndsColours) {
  EXPECT_EQ(fit_line("abcdef", 3), "abc");
  EXPECT_EQ(fit_line("a\xc3\xa4\xc3\xa4", 2), "a\xc3\xa4");
  EXPECT_EQ(fit_line("\xe4\xbd\xa0\xe5\xa5\xbd", 3), "\xe4\xbd\xa0") << "wide characters take two columns";
  EXPECT_EQ(fit_line("\x1b[31mred\x1b[0m and more", 2), "\x1b[31mre\x1b[0m");
  EXPECT_EQ(fit_line("\x1b[31mred\x1b[0m", 3), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(fit_line("", 0), "");
}

TEST(TopKeys, ReadsKeysHoweverTheyAreCut) {
  TopKeys keys;
  const auto kinds = [](const std::vector<TopKey>& taken) {
    std::vector<Kind> found;
    found.reserve(taken.size());
    for (const TopKey& key : taken) {
      found.push_back(key.kind);
    }
    return found;
  };
  EXPECT_THAT(kinds(keys.take("a\x1b[A\x1bOB\r\x7f")),
              ElementsAre(Kind::character, Kind::up, Kind::down, Kind::enter, Kind::erase));
  EXPECT_THAT(kinds(keys.take("\x1b")), IsEmpty());
  EXPECT_TRUE(keys.waits());
  EXPECT_THAT(kinds(keys.take("[")), IsEmpty());
  EXPECT_THAT(kinds(keys.take("Bq")), ElementsAre(Kind::down, Kind::character));
  EXPECT_FALSE(keys.waits());
  keys.take("\x1b");
  EXPECT_THAT(kinds(keys.give_up()), ElementsAre(Kind::escape));
  EXPECT_FALSE(keys.waits());
  EXPECT_THAT(kinds(keys.take("\x1bq")), ElementsAre(Kind::escape, Kind::character));
  EXPECT_THAT(kinds(keys.take("\x1b[5~\x1b[1;5C\x01\x0c")), IsEmpty()) << "keys that mean nothing here";
  EXPECT_THAT(kinds(keys.take("\x1b[" + std::string(100, '1') + "q")), ElementsAre()) << "no key at all";
}

TEST(FigureText, IsShort) {
  EXPECT_EQ(rate_text(0), "0");
  EXPECT_EQ(rate_text(0.04), "0");
  EXPECT_EQ(rate_text(0.4), "0.4");
  EXPECT_EQ(rate_text(9.96), "10");
  EXPECT_EQ(rate_text(999.7), "1.0k");
  EXPECT_EQ(rate_text(12'345), "12k");
  EXPECT_EQ(time_text({}), "-");
  EXPECT_EQ(time_text(std::chrono::nanoseconds(400)), "-") << "and not 0us";
  EXPECT_EQ(time_text(std::chrono::microseconds(250)), "250us");
  EXPECT_EQ(time_text(std::chrono::microseconds(2500)), "2.5ms");
  EXPECT_EQ(time_text(std::chrono::milliseconds(1500)), "1.50s");
  EXPECT_EQ(time_text(std::chrono::minutes(12)), "12m");
}

}  // namespace
}  // namespace sluice::cli
