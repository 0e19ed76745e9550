#include "host/operate/fleet_report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/views/output.hpp"

namespace sluice::cli {
namespace {

using std::chrono_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr WallTime kNow{std::chrono::hours(24 * 365 * 50)};

std::string row_of(const fleet::RunningRecord& handler) {
  const std::string text =
      rows_of(std::vector<operate::HandlerAtWork>{{"web-1", handler}}, kNow, {.columns = {"MESSAGE", "LEFT", "HOST"}});
  return text.substr(text.find('\n') + 1);
}

fleet::RunningRecord handler_since(Duration begun, std::optional<Duration> time_out) {
  fleet::RunningRecord handler;
  handler.message = "A-1";
  handler.since = kNow - begun;
  if (time_out) {
    handler.times_out_at = handler.since + *time_out;
  }
  return handler;
}

TEST(RunningText, ATimeOutIsCalledOneAlthoughItSetsTheStopToken) {
  fleet::RunningRecord handler = handler_since(3s, 1s);
  handler.cancelled = true;
  EXPECT_THAT(row_of(handler), AllOf(HasSubstr("timed out"), Not(HasSubstr("cancelled"))));
  handler.stuck = true;
  EXPECT_THAT(row_of(handler), AllOf(HasSubstr("stuck"), Not(HasSubstr("timed out"))));
}

TEST(RunningText, SaysWhatIsLeftOrThatItWasCancelled) {
  fleet::RunningRecord handler = handler_since(3s, 10s);
  EXPECT_THAT(row_of(handler), HasSubstr(" 7s "));
  handler.cancelled = true;
  EXPECT_THAT(row_of(handler), HasSubstr("cancelled"));
  EXPECT_THAT(row_of(handler_since(3s, std::nullopt)), HasSubstr("no limit"));
}

TEST(RunningText, OfAHostThatDoesNotAnswerSaysSo) {
  fleet::RunningRecord handler = handler_since(3s, 10s);
  handler.since = {};
  const std::string text = rows_of(std::vector<operate::HandlerAtWork>{{"web-1", handler, false}}, kNow,
                                   {.columns = {"MESSAGE", "SINCE", "LEFT"}});
  EXPECT_THAT(text, AllOf(HasSubstr("no answer"), HasSubstr(" - "))) << "only its crash ledger tells of it";
}

fleet::KnownHost known(std::uint32_t running) {
  fleet::KnownHost host;
  host.record.name = "web-1";
  host.record.pid = 7;
  host.record.state = fleet::HostState::running;
  host.record.started_at = kNow - 3600s;
  host.record.running_total = running;
  host.age = 45s;
  return host;
}

std::string state_of(const fleet::KnownHost& host) {
  return lines_of(rows_of(std::vector<fleet::KnownHost>{host}, kNow, {.columns = {"STATE"}})).at(1);
}

TEST(HostText, UnhealthyIsNotCalledRunning) {
  fleet::KnownHost host = known(3);
  EXPECT_EQ(state_of(host), "running");
  host.record.unhealthy = "no more workers take their place: restart the host";
  EXPECT_EQ(state_of(host), "unhealthy");
  EXPECT_THAT(operate::host_warnings({.hosts = {host}}, kNow),
              testing::ElementsAre("web-1:7 is unhealthy: no more workers take their place: restart the host"));
  EXPECT_THAT(json_of(host, kNow), HasSubstr("\"unhealthy\": \"no more workers"));
}

TEST(HostText, AHostThatIsNotReadyIsNotCalledRunningNorItsJobWorking) {
  fleet::KnownHost host = known(0);
  host.record.jobs.resize(1);
  host.record.jobs[0].name = "mailer";
  const auto job_state = [&host] {
    const auto jobs = operate::summarize_jobs({}, {.hosts = {host}}, {});
    return lines_of(rows_of(jobs, kNow, {.columns = {"STATE"}})).at(1);
  };
  EXPECT_EQ(job_state(), "working");
  host.record.jobs[0].cut_off = true;
  EXPECT_EQ(job_state(), "cannot work on 1 of 1");
  host.record.not_ready = "job mailer cannot work: table t: no answer";
  EXPECT_EQ(state_of(host), "not ready");
  EXPECT_THAT(operate::host_warnings({.hosts = {host}}, kNow),
              testing::ElementsAre("web-1:7 is not ready: job mailer cannot work: table t: no answer"));
  EXPECT_THAT(json_of(host, kNow), HasSubstr("\"not_ready\": \"job mailer cannot"));
}

TEST(HostText, SaysSinceWhenAHostDoesNotAnswerAndWhatItWasAt) {
  fleet::KnownHost host = known(3);
  EXPECT_THAT(operate::host_warnings({.hosts = {host}}, kNow), testing::IsEmpty());
  host.silence = "it does not answer at its control socket";
  EXPECT_EQ(state_of(host), "no answer");
  fleet::KnownHost gone = known(0);
  gone.pulse = fleet::Pulse::silent;
  EXPECT_EQ(state_of(gone), "silent");
  EXPECT_THAT(operate::host_warnings({.hosts = {host, gone}}, kNow),
              testing::ElementsAre(AllOf(HasSubstr("has not told of itself since"), HasSubstr("45s ago"),
                                         HasSubstr("control socket; at work by its crash ledger: 3 handlers")),
                                   HasSubstr("dead; at work then: nothing")));
}

TEST(HostText, WhatIsOverOrOutOfDateIsNoFigureAndItsReasonIsShort) {
  fleet::KnownHost host = known(3);
  const auto running = [&host] {
    return lines_of(rows_of(std::vector<fleet::KnownHost>{host}, kNow, {.columns = {"RUNNING"}})).at(1);
  };
  EXPECT_THAT(running(), HasSubstr("3"));
  host.pulse = fleet::Pulse::late;
  EXPECT_THAT(running(), HasSubstr("-"));
  host.silence = "it does not answer at its control socket";
  EXPECT_THAT(running(), HasSubstr("3")) << "by its crash ledger";
  host.silence.clear();
  host.pulse = fleet::Pulse::silent;
  host.record.state = fleet::HostState::ended;
  host.record.left_behind = std::string(900, 'x');
  EXPECT_THAT(running(), HasSubstr("-"));
  EXPECT_LT(operate::host_warnings({.hosts = {host}}, kNow).at(0).size(), 130U);
  EXPECT_THAT(json_of(host, kNow), HasSubstr(host.record.left_behind));
  host.record.state = fleet::HostState::running;
  host.silence = "its process is gone";
  EXPECT_THAT(operate::host_warnings({.hosts = {host}}, kNow),
              testing::ElementsAre(HasSubstr("its process is gone; at work then: 3 handlers")));
}

TEST(JobText, AJobWhoseHostDrainsOrDoesNotAnswerIsNotWorking) {
  fleet::FleetView view{.hosts = {known(0), known(0)}};
  for (fleet::KnownHost& host : view.hosts) {
    host.record.jobs.resize(1);
    host.record.jobs[0].name = "mailer";
  }
  const auto state = [&view] {
    return lines_of(rows_of(operate::summarize_jobs({}, view, {}), kNow, {.columns = {"STATE"}})).at(1);
  };
  EXPECT_EQ(state(), "working");
  view.hosts[0].record.state = fleet::HostState::draining;
  EXPECT_EQ(state(), "draining on 1 of 2");
  view.hosts[1].record.state = fleet::HostState::draining;
  EXPECT_EQ(state(), "draining");
  view.hosts[1].silence = "it does not answer at its control socket";
  EXPECT_EQ(state(), "no answer: 1 of 2");
}

TEST(HostText, NamesTheHostsThatDoNotAnswer) {
  fleet::FleetView view;
  view.hosts.push_back(known(1));
  EXPECT_EQ(operate::quiet_hosts(view, false), "");
  EXPECT_EQ(operate::quiet_hosts(view, true), "web-1:7 for 45s (1 handler at work then)");
  for (std::int64_t i = 0; i < 5; ++i) {
    view.hosts.push_back(known(0));
    view.hosts.back().record.pid = 8 + i;
    view.hosts.back().pulse = fleet::Pulse::late;
  }
  EXPECT_EQ(operate::quiet_hosts(view, false), "web-1:8 for 45s, web-1:9 for 45s, web-1:10 for 45s and 2 more");
}

TEST(HostText, OfADrainSaysWhatIsStillAtWork) {
  fleet::KnownHost host = known(5);
  for (int i = 0; i < 5; ++i) {
    host.record.running.push_back(handler_since(std::chrono::seconds(50 - i), 10s));
    host.record.running.back().job = "mailer";
    host.record.running.back().message = "A-" + std::to_string(i);
  }
  EXPECT_EQ(operate::drain_text(host, 12s, kNow),
            "host web-1:7 has not obeyed yet, 12s: at work 45s ago: 5 handlers: mailer on A-0 (50s), mailer on A-1 "
            "(49s), mailer on A-2 (48s) and 2 more");
  host.record.state = fleet::HostState::draining;
  host.record.running.resize(3);
  host.record.running_total = 3;
  host.record.running[1].stuck = host.record.running[2].stuck = true;
  EXPECT_EQ(operate::drain_text(host, 12s, kNow),
            "host web-1:7 drains, 12s: at work still: 1 handler: mailer on A-0 (50s), 2 stuck: A-1, A-2");
  host.record.running.clear();
  EXPECT_EQ(operate::drain_text(host, 12s, kNow), "host web-1:7 drains, 12s: at work still: 3 handlers");
  host.record.running_total = 0;
  EXPECT_EQ(operate::drain_text(host, 1s, kNow), "host web-1:7 drains, 1s: at work still: nothing");
}

TEST(HostText, OfADrainThatAStoppedHostHasNotSeenSaysSo) {
  fleet::KnownHost host = known(3);
  host.record.instance = "i";
  host.pulse = fleet::Pulse::late;
  EXPECT_THAT(operate::drain_text(host, 12s, kNow),
              AllOf(HasSubstr("host web-1:7 has not told of itself since "), HasSubstr(", 45s ago: "),
                    HasSubstr("; at work then: 3 handlers; it has not obeyed")));
  EXPECT_THAT(
      operate::drain_ends({"i"}, {.hosts = {host}}, kNow).going,
      testing::ElementsAre(AllOf(HasSubstr("has not told of itself since "), HasSubstr("; it has not obeyed"))));
}

TEST(HostText, TellsHowHostsHaveEndedThatWereToDrain) {
  fleet::KnownHost host = known(0);
  host.record.instance = "i";
  const auto ends = [](const fleet::FleetView& view) { return operate::drain_ends({"i"}, view, kNow); };
  EXPECT_THAT(ends({.hosts = {host}}).going, testing::ElementsAre("host web-1:7 has not obeyed"));
  host.record.state = fleet::HostState::draining;
  EXPECT_THAT(ends({.hosts = {host}}).going, testing::ElementsAre("host web-1:7 drains, and has not ended"));
  host.pulse = fleet::Pulse::silent;
  const auto silent = ends({.hosts = {host}});
  EXPECT_THAT(silent.unknown, testing::ElementsAre(AllOf(HasSubstr("has not told of itself since "),
                                                         HasSubstr("nobody knows whether it has ended, or how"))));
  EXPECT_THAT(silent.going, testing::IsEmpty());
  host.record.state = fleet::HostState::ended;
  host.record.left_behind = "job mailer: message A-1 was taken from its handler";
  const auto unclean = ends({.hosts = {host}});
  EXPECT_THAT(unclean.unclean, testing::ElementsAre("host web-1:7 has ended and left work behind: job mailer: message "
                                                    "A-1 was taken from its handler"));
  EXPECT_EQ(state_of(host), "ended, NOT clean");
  EXPECT_THAT(json_of(host, kNow), HasSubstr("\"left_behind\": \"job mailer"));
  EXPECT_THAT(
      operate::host_warnings({.hosts = {host}}, kNow),
      testing::ElementsAre("web-1:7 has ended, not clean: job mailer: message A-1 was taken from its handler; see "
                           "`sluice crashes`"));
  EXPECT_EQ(operate::quiet_hosts({.hosts = {host}}, true), "") << "it has told of its end";
  host.pulse = fleet::Pulse::fresh;
  EXPECT_EQ(operate::drain_text(host, 1s, kNow), "host web-1:7 drains, 1s: at work still: nothing");
  const auto clean = ends({});
  EXPECT_THAT(clean.going, testing::IsEmpty());
  EXPECT_THAT(clean.unclean, testing::IsEmpty());
  EXPECT_THAT(clean.unknown, testing::IsEmpty());
  EXPECT_THAT(ends({.troubles = {{"table t", Error(ErrorCode::timeout, "no answer")}}}).going, testing::SizeIs(1))
      << "its record may be on the board that cannot be read";
}

TEST(HostText, ARateThatIsNotKnownYetIsNoZero) {
  fleet::KnownHost host = known(0);
  host.record.jobs.resize(1);
  const auto rates = [&host] {
    return lines_of(rows_of(std::vector<fleet::KnownHost>{host}, kNow, {.columns = {"DONE/S"}})).at(1);
  };
  EXPECT_THAT(rates(), HasSubstr("-"));
  EXPECT_THAT(json_of(host, kNow), HasSubstr("\"done_per_second\": null"));
  host.record.jobs[0].pace.over = 10s;
  EXPECT_THAT(rates(), HasSubstr("0"));
  host.record.jobs.resize(2);
  EXPECT_THAT(rates(), HasSubstr("-")) << "a sum with something unknown";
}

TEST(JobText, ARateOfTwoHostsIsNotThatOfOne) {
  fleet::FleetView view{.hosts = {known(0), known(0)}};
  for (fleet::KnownHost& host : view.hosts) {
    host.record.jobs.resize(1);
    host.record.jobs[0].name = "mailer";
    host.record.jobs[0].pace.done = 20;
    host.record.jobs[0].pace.over = 10s;
  }
  const auto rate = [&view] {
    return lines_of(rows_of(operate::summarize_jobs({}, view, {}), kNow, {.columns = {"DONE/S"}})).at(1);
  };
  EXPECT_THAT(rate(), HasSubstr("40"));
  view.hosts[0].record.jobs[0].pace = {};
  EXPECT_THAT(rate(), AllOf(HasSubstr("-"), Not(HasSubstr("20"))));
}

}  // namespace
}  // namespace sluice::cli
