// The catalogue of faulty plugins: each is loaded, and run where that can be; the host stays whole and says what is
// wrong.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "host/plugin/handler_instance.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Why the fixture is refused; it must be.
std::string refusal(const std::string& fixture) {
  const LibraryResult result = load_library(fixture_file(fixture));
  EXPECT_EQ(result.plugin, nullptr);
  EXPECT_EQ(result.why.find('\n'), std::string::npos);
  return result.why;
}

TEST(FaultyPlugin, NoEntry) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("no_entry"), HasSubstr("has no symbol sluice_plugin_v1")));
}

TEST(FaultyPlugin, BadMagic) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("bad_magic"), HasSubstr("does not begin as a Sluice plugin does")));
}

TEST(FaultyPlugin, MajorTooNew) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("major_too_new"),
                             AllOf(HasSubstr("built for plugin ABI 2.0"), HasSubstr("this host runs ABI 1.0"),
                                   HasSubstr("update the host, or rebuild the plugin"))));
}

TEST(FaultyPlugin, MinorTooNew) {
  IN_OWN_PROCESS(
      EXPECT_THAT(refusal("minor_too_new"), AllOf(HasSubstr("built for plugin ABI 1.1"), HasSubstr("up to 1.0"),
                                                  HasSubstr("update the host, or rebuild the plugin"))));
}

TEST(FaultyPlugin, StructTooSmall) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("struct_too_small"), HasSubstr("has a sluice_plugin of 24 bytes")));
}

TEST(FaultyPlugin, ZeroHandlers) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("zero_handlers"), HasSubstr("has no handlers")));
}

TEST(FaultyPlugin, DuplicateName) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("duplicate_name"), HasSubstr("two handlers named \"duplicate_name\"")));
}

TEST(FaultyPlugin, NullHandle) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("null_handle"), HasSubstr("has no function `handle`")));
}

TEST(FaultyPlugin, MissingDependency) {
  IN_OWN_PROCESS(EXPECT_THAT(refusal("missing_dependency"), HasSubstr("needs the symbol \"nobody_defines_this\"")));
}

TEST(OldPlugin, BuiltAgainstTheFrozenHeaderSeesEveryFieldAndRuns) {
  Bundle bundle("previous_minor");
  ASSERT_EQ(bundle.error, "");
  bundle.attempt.arm(bundle.clock.steady_now() + 10s);
  queue::Message message{.id = "A-1",
                         .body = "text",
                         .content_type = "text/plain",
                         .attributes = {{"colour", "red"}},
                         .group = "g",
                         .attempt = 2,
                         .sent_at = WallTime(1234567890ns)};
  const Outcome outcome = bundle.handle(message);
  EXPECT_EQ(outcome.status, OutcomeStatus::snooze);
  EXPECT_EQ(outcome.delay, 5000ns);
  ASSERT_EQ(bundle.log.lines().size(), 2U);
  EXPECT_EQ(bundle.log.lines()[0].text, "created");
  EXPECT_EQ(bundle.log.lines()[1].level, SLUICE_LOG_WARN);
}

TEST(FaultyPlugin, CreateThrows) {
  EXPECT_THAT(Bundle("create_throws").error,
              HasSubstr("\"create_throws\" could not be created: the licence has expired"));
  EXPECT_THAT(Bundle("create_throws", {{"kind", "int"}}).error,
              HasSubstr("threw something that is not a std::exception"));
}

TEST(FaultyPlugin, CreateFailsWithoutMessage) {
  EXPECT_THAT(Bundle("create_fails_without_message").error,
              HasSubstr("it gave no reason, which is a defect of the plugin"));
}

TEST(FaultyPlugin, HandleThrowsStd) {
  const Outcome outcome = Bundle("handle_throws_std").handle("this");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, "cannot work on this");
  EXPECT_EQ(outcome.breach, Breach::none) << "the SDK reports a fault, as anybody may";
}

TEST(FaultyPlugin, HandleThrowsInt) {
  const Outcome outcome = Bundle("handle_throws_int").handle();
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, "threw something that is not a std::exception");
}

TEST(FaultyPlugin, RawExceptionsOutOfTheTable) {
  IN_OWN_PROCESS({
    EXPECT_THAT(Bundle("raw_throws", {{"any", true}}).error, HasSubstr("thrown out of create"));
    Bundle bundle("raw_throws");
    EXPECT_EQ(bundle.handle("x").reason, "thrown out of handle");
    EXPECT_EQ(bundle.handle("x").breach, Breach::exception);
    EXPECT_EQ(bundle.handle("").reason, "threw something that is not a std::exception");
  });
}

TEST(FaultyPlugin, UnknownStatus) {
  const Outcome outcome = Bundle("unknown_status").handle();
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("unknown status 42"));
  EXPECT_EQ(outcome.breach, Breach::illegal_outcome);
}

TEST(FaultyPlugin, NoReportIsAFaultAndTheLastOfManyCounts) {
  Bundle bundle("no_report");
  EXPECT_EQ(bundle.handle("").status, OutcomeStatus::fault);
  EXPECT_THAT(bundle.handle("").reason, HasSubstr("without an outcome"));
  EXPECT_EQ(bundle.handle("").breach, Breach::no_outcome);
  EXPECT_EQ(bundle.handle("0").breach, Breach::none);
  EXPECT_EQ(bundle.handle("0").status, OutcomeStatus::done);
  EXPECT_EQ(bundle.handle("3").reason, "because");
  const Outcome last = bundle.handle("30");
  EXPECT_EQ(last.status, OutcomeStatus::done);
  EXPECT_EQ(last.reason, "") << "nothing of the first report is left";
  EXPECT_EQ(bundle.handle("03").status, OutcomeStatus::reject);
}

TEST(FaultyPlugin, TooShortAnOutcome) {
  const Outcome outcome = Bundle("old_size_outcome").handle();
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, HasSubstr("too short"));
}

TEST(FaultyPlugin, IgnoresStop) {
  Bundle bundle("ignores_stop", {{"duration", "20ms"}});
  bundle.attempt.request_stop();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(bundle.handle().status, OutcomeStatus::done);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 20ms);
}

TEST(FaultyPlugin, SlowEndsWhenAsked) {
  Bundle bundle("slow", {{"duration", "1h"}});
  bundle.attempt.arm(SteadyTime::max());
  Outcome outcome;
  {
    const std::jthread worker([&] { outcome = bundle.handle(); });
    bundle.attempt.request_stop();
  }
  EXPECT_EQ(outcome.reason, "asked to stop");
}

TEST(FaultyPlugin, LeaksThreadThatOutlivesHandle) {
  IN_OWN_PROCESS({
    Bundle bundle("leaks_thread");
    EXPECT_EQ(bundle.handle().status, OutcomeStatus::done);
    EXPECT_EQ(bundle.log.lines().size(), 0U);
    bundle.instance.reset();
    EXPECT_EQ(bundle.log.lines().at(0).text, "the thread of A-101 ends late");
  });
}

TEST(FaultyPlugin, LogsFromOwnThread) {
  Bundle bundle("logs_from_own_thread");
  EXPECT_EQ(bundle.handle().status, OutcomeStatus::done);
  const std::vector<LogRecord::Line> lines = bundle.log.lines();
  EXPECT_EQ(lines.size(), 200U);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.id == "A-101"; }), 100);
  EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [](const auto& line) { return line.job == "orders"; }));
}

TEST(FaultyPlugin, HugeErrorText) {
  Bundle bundle("huge_error_text");
  const Outcome outcome = bundle.handle();
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_EQ(outcome.reason, std::string(kReasonLimit, 'x'));
  EXPECT_LT(bundle.log.lines().at(0).text.size(), kLogTextLimit + 100);
}

TEST(FaultyPlugin, NonUtf8Error) {
  Bundle bundle("non_utf8_error");
  const Outcome outcome = bundle.handle();
  EXPECT_EQ(outcome.status, OutcomeStatus::reject);
  EXPECT_EQ(outcome.reason, "bad \xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD good \xc3\xa9");
  EXPECT_EQ(bundle.log.lines().at(0).text, "log \xff\xfe") << "the log escapes what it cannot show";
}

TEST(FaultyPlugin, ThreadLocalStateSurvivesItsWorkers) {
  IN_OWN_PROCESS({
    Bundle bundle("thread_local_state");
    for (int worker = 0; worker < 3; ++worker) {
      const std::jthread thread([&bundle] {
        FakeClock clock;
        Attempt attempt(clock);
        EXPECT_EQ(bundle.instance->handle({{}, "q", 0, attempt}).reason, "call 1 on this thread");
        EXPECT_EQ(bundle.instance->handle({{}, "q", 0, attempt}).reason, "call 2 on this thread");
      });
    }
    bundle.instance.reset();
  });
}

TEST(Fixture, CrashesEndsTheProcessAtItsBodyOnly) {
  EXPECT_EXIT(
      {
        Bundle bundle("crashes", {{"when_body", "boom"}});
        if (bundle.handle("calm").status == OutcomeStatus::done) {
          bundle.handle("boom");
        }
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

TEST(Fixture, FailsAsToldByItsOption) {
  const auto outcome_of = [](const std::map<std::string, config::OptionValue>& options) {
    return Bundle("fails", options).handle();
  };
  EXPECT_EQ(outcome_of({}).status, OutcomeStatus::retry);
  EXPECT_EQ(outcome_of({}).delay, std::nullopt);
  EXPECT_EQ(outcome_of({{"delay", "3s"}}).delay, 3s);
  EXPECT_EQ(outcome_of({{"outcome", "reject"}, {"reason", "because"}}).reason, "because");
  EXPECT_EQ(outcome_of({{"outcome", "discard"}}).status, OutcomeStatus::discard);
  EXPECT_EQ(outcome_of({{"outcome", "release"}}).status, OutcomeStatus::release);
  EXPECT_EQ(outcome_of({{"outcome", "snooze"}}).delay, 1s);
  EXPECT_EQ(outcome_of({{"outcome", "throw"}, {"reason", "thrown"}}).status, OutcomeStatus::fault);
  EXPECT_THAT(Bundle("fails", {{"outcome", "explode"}}).error, HasSubstr("cannot be \"explode\""));
}

TEST(Fixture, SleeperEndsEarlyWithRelease) {
  Bundle bundle("sleeper", {{"duration", "1h"}});
  bundle.attempt.request_stop();
  EXPECT_EQ(bundle.handle().status, OutcomeStatus::release);
  Bundle stubborn("sleeper", {{"duration", "2ms"}, {"ignore_stop", true}});
  stubborn.attempt.request_stop();
  EXPECT_EQ(stubborn.handle().status, OutcomeStatus::done);
}

TEST(Fixture, CountsAppendsOneLineAMessage) {
  const TemporaryFolder folder;
  Bundle bundle("counts", {{"path", folder.file("ids")}});
  EXPECT_EQ(bundle.handle().status, OutcomeStatus::done);
  EXPECT_EQ(bundle.handle().status, OutcomeStatus::done);
  EXPECT_EQ(std::filesystem::file_size(folder.file("ids")), 2 * std::string("A-101\n").size());
  EXPECT_THAT(Bundle("counts", {{"path", "/nowhere/at/all"}}).error, HasSubstr("No such file"));
}

}  // namespace
}  // namespace sluice::plugin
