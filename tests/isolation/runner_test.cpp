#include "host/isolation/runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/isolation/fixture_spec.hpp"
#include "tests/isolation/ledger_rig.hpp"
#include "tests/isolation/sanitized.hpp"

namespace sluice::isolation {
namespace {

using plugin::Outcome;
using plugin::OutcomeStatus;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""us;
using std::chrono_literals::operator""s;
using testing::AllOf;
using testing::HasSubstr;

struct Line {
  std::string id;
  std::string text;
};

/// Of any of this process's threads.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) {
      found.push_back(child);
    }
  }
  return found;
}

/// Of a bomb in a file of its own.
RunnerSpec copied_bomb(const StateFolder& folder) {
  std::filesystem::create_directories(folder.path());
  const std::string file = folder.path() + "/bomb.so";
  std::filesystem::copy_file(SLUICE_TEST_PLUGINS "/bomb.so", file);
  RunnerSpec spec{{"orders", file, "bomb"}, {}, {}, {}};
  add_bomb_options(spec);
  spec.file = *open_plugin(file);
  return spec;
}

class RunnerTest : public testing::Test {
 protected:
  RunnerTest() { EXPECT_TRUE(spawner_.start()); }

  Result<std::unique_ptr<plugin::HandlerInstance>> create(const RunnerLimits& limits = {},
                                                          const std::string& create = "") {
    RunnerSpec spec = fixture_spec("bomb");
    spec.limits = limits;
    add_bomb_options(spec, create);
    return RunnerInstance::create(
        std::move(spec), spawner_,
        [this](sluice_log_level, std::string_view job, std::string_view id, std::string_view text) {
          EXPECT_EQ(job, "orders");
          if (on_line_) {
            on_line_();
          }
          const MutexLock lock(mutex_);
          lines_.push_back({std::string(id), std::string(text)});
        });
  }
  /// For most tests: an instance that is there.
  void open(const RunnerLimits& limits = {}) {
    auto created = create(limits);
    ASSERT_TRUE(created) << created.error().message();
    instance_ = std::move(*created);
  }
  Outcome handle(const std::string& order, const std::string& body = "body", Duration timeout = 60s) {
    queue::Message message;
    message.id = "m-" + order;
    message.body = body;
    message.attempt = 2;
    message.group = "g";
    if (!order.empty()) {
      message.attributes["do"] = order;
    }
    attempt_.arm(clock_.steady_now() + timeout);
    return instance_->handle({message, "queue-a", 5, attempt_});
  }
  std::vector<Line> lines() {
    const MutexLock lock(mutex_);
    return lines_;
  }

  const SystemClock clock_;
  RunnerSpawner spawner_;
  plugin::Attempt attempt_{clock_};
  Mutex mutex_;
  std::vector<Line> lines_ SLUICE_GUARDED_BY(mutex_);
  std::atomic<bool> stop_now_{false};
  std::function<void()> on_line_;  ///< whenever the log takes one; empty: nothing
  std::unique_ptr<plugin::HandlerInstance> instance_;
};

TEST_F(RunnerTest, TheHandlerSeesTheWholeMessage) {
  open();
  const Outcome outcome = handle("describe", "abc");
  EXPECT_EQ(outcome.status, OutcomeStatus::discard);
  EXPECT_EQ(outcome.reason, "queue-a m-describe g text/plain 2/5 3 96354");
}

TEST_F(RunnerTest, HowTheBrokerFaresIsHeardAndForgottenWithTheProcess) {
  plugin::HealthBoard board;
  RunnerSpec spec = fixture_spec("fares");
  spec.health = board.seat();
  auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  ASSERT_TRUE(created) << created.error().message();
  instance_ = std::move(*created);
  ASSERT_EQ(board.parts().size(), 1U);
  EXPECT_EQ(board.parts()[0].text, "not asked yet");
  EXPECT_EQ(handle("", "down").status, OutcomeStatus::done);
  ASSERT_EQ(board.parts().size(), 1U);
  EXPECT_EQ(board.parts()[0].part, "broker");
  EXPECT_EQ(board.parts()[0].text, "down");
  EXPECT_FALSE(board.parts()[0].works);
  EXPECT_EQ(handle("", "end").status, OutcomeStatus::crashed);
  EXPECT_TRUE(board.parts().empty());
}

TEST_F(RunnerTest, WhatTheHandlerCountsIsHeardWithTheOutcome) {
  const auto board = std::make_shared<plugin::MetricBoard>("orders", plugin::HandlerLog());
  const auto figure = [&board](std::size_t metric, std::size_t series = 0) {
    return board->figures().at(metric).series.at(series);
  };
  RunnerSpec spec = fixture_spec("measures");
  spec.metrics = board;
  auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  ASSERT_TRUE(created) << created.error().message();
  instance_ = std::move(*created);
  ASSERT_EQ(board->figures().size(), 4U) << "what is zero is there from the start";
  EXPECT_EQ(board->figures()[1].name, "parts_total");
  EXPECT_EQ(figure(1).value, 0);
  EXPECT_EQ(handle("", "hot").status, OutcomeStatus::done);
  EXPECT_EQ(handle("", "hot").status, OutcomeStatus::done);
  EXPECT_EQ(figure(0).value, 3);
  EXPECT_EQ(figure(1).value, 2000);
  EXPECT_EQ(figure(1).labels, (plugin::MetricLabels{{"colour", "hot"}}));
  EXPECT_EQ(figure(2).counts, (std::vector<std::uint64_t>{0, 2, 0, 0}));
  EXPECT_EQ(handle("", "crash").status, OutcomeStatus::crashed);
  EXPECT_EQ(handle("", "red").status, OutcomeStatus::done);
  EXPECT_EQ(figure(1, 0).value, 2000) << "another process adds to what the first one has told";
  EXPECT_EQ(figure(1, 1).value, 1);
  EXPECT_EQ(figure(2).counts, (std::vector<std::uint64_t>{0, 3, 0, 0}));
  EXPECT_EQ(board->figures().at(3).name, "there");
  EXPECT_EQ(figure(3).value, 1) << "what a process adds to a gauge goes with it";
  instance_.reset();
  EXPECT_EQ(figure(3).value, 0);
}

TEST_F(RunnerTest, AsManyMetricsAsThereMayBeGoThroughTheEvents) {
  plugin::MetricBoard from("orders", {});
  plugin::MetricBoard to("orders", {});
  const std::string help(256, 'h');
  for (int i = 0; i < 64; ++i) {
    const std::string name = "metric_" + std::to_string(i);
    const sluice_metric_spec spec{
        sizeof(spec), SLUICE_METRIC_HISTOGRAM, {name.data(), name.size()}, {help.data(), help.size()}, nullptr, 0};
    for (int j = 0; j < 20; ++j) {
      const std::string value(static_cast<std::size_t>(j + 200), 'v');
      const sluice_attribute label{{"label", 5}, {value.data(), value.size()}};
      plugin::MetricBoard::observe(plugin::MetricBoard::series(from.metric(spec), &label, 1), j);
    }
  }
  std::vector<plugin::ToldSeries> known;
  const auto pieces = pack_changes(from.take_changes());
  EXPECT_GT(pieces.size(), 10U);
  for (const std::string& piece : pieces) {
    EXPECT_LE(piece.size(), kEventTextLimit);
    const auto changes = unpack_changes(piece);
    ASSERT_TRUE(changes);
    for (const plugin::MetricChange& change : *changes) {
      EXPECT_TRUE(to.apply(change, known));
    }
    EXPECT_FALSE(unpack_changes(std::string_view(piece).substr(0, piece.size() - 1)));
  }
  ASSERT_EQ(to.figures().size(), 64U);
  EXPECT_EQ(to.figures()[63].series.size(), 20U);
  EXPECT_FALSE(unpack_changes(std::string(100, '\xff')));
}

TEST_F(RunnerTest, AroundsOfAnotherPluginRunInTheHandlersProcess) {
  RunnerSpec spec = fixture_spec("bomb");
  add_bomb_options(spec);
  for (const std::string mark : {"a", "b"}) {
    RunnerAround around{{SLUICE_TEST_PLUGINS "/arounds.so", "trail", {}}, {}};
    around.options.push_back({"mark", SLUICE_OPTION_STRING, mark, 0, 0, {}});
    around.options.push_back({"at", SLUICE_OPTION_STRING, "", 0, 0, {}});
    auto opened = open_plugin(around.plugin);
    ASSERT_TRUE(opened);
    around.file = *opened;
    spec.arounds.push_back(std::move(around));
  }
  std::vector<std::string> said;
  const auto log = [&said](sluice_log_level, std::string_view, std::string_view, std::string_view text) {
    said.emplace_back(text);
  };
  auto created = RunnerInstance::create(spec, spawner_, log);
  ASSERT_TRUE(created) << created.error().message();
  instance_ = std::move(*created);
  EXPECT_EQ(handle("throw").reason, "thrown");
  EXPECT_THAT(said, testing::ElementsAre("b1 saw 6 thrown of a", "a1 saw 6 thrown of "));

  spec.arounds[1].handler = "gone";
  const auto refused = RunnerInstance::create(spec, spawner_, log);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("arounds.so has no handler \"gone\" any more"));
}

TEST_F(RunnerTest, OutcomesComeBackAsTheyWere) {
  open();
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
  const Outcome thrown = handle("throw");
  EXPECT_EQ(thrown.status, OutcomeStatus::fault);
  EXPECT_EQ(thrown.reason, "thrown");
}

TEST_F(RunnerTest, TenThousandMessagesGoThroughOneProcess) {
  open();
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_EQ(handle("").status, OutcomeStatus::done);
  }
}

TEST_F(RunnerTest, ABodyOfSixteenMebibytesFitsAndSoDoesTheNextSmallOne) {
  open();
  const std::string large(16 * 1024 * 1024, 'x');
  EXPECT_THAT(handle("describe", large).reason, HasSubstr(" 16777216 "));
  EXPECT_THAT(handle("describe", "abc").reason, HasSubstr(" 3 96354"));
  EXPECT_THAT(handle("describe", large).reason, HasSubstr(" 16777216 "));
}

TEST_F(RunnerTest, LogLinesArriveWithJobAndMessage) {
  open();
  handle("log");
  ASSERT_THAT(lines(), testing::SizeIs(1));
  EXPECT_EQ(lines()[0].id, "m-log");
  EXPECT_EQ(lines()[0].text, "about m-log");
}

TEST_F(RunnerTest, TheStopTokenReachesTheHandlerAndIsGoneForTheNextMessage) {
  open();
  attempt_.arm(SteadyTime::max());
  std::jthread stopper([this] {
    // The handler waits for half a minute; whenever the stop comes, it has to end that.
    while (!stop_now_.load()) {
      std::this_thread::yield();
    }
    attempt_.request_stop();
  });
  stop_now_.store(true);
  queue::Message message;
  message.id = "m";
  message.attributes["do"] = "wait";
  EXPECT_EQ(instance_->handle({message, "queue-a", 5, attempt_}).status, OutcomeStatus::release);
  EXPECT_THAT(handle("describe").reason, testing::Not(HasSubstr("stop")));
}

TEST_F(RunnerTest, AStopThatWasRequestedBeforeIsSeenToo) {
  open();
  attempt_.arm(SteadyTime::max());
  attempt_.request_stop();
  queue::Message message;
  message.attributes["do"] = "describe";
  EXPECT_THAT(instance_->handle({message, "queue-a", 5, attempt_}).reason, HasSubstr(" stop"));
}

TEST_F(RunnerTest, TheHandlerKnowsHowLongTheDrainWaitsForIt) {
  open();
  attempt_.arm(SteadyTime::max());
  attempt_.request_stop(clock_.steady_now() + std::chrono::hours(1));
  const std::jthread hastener([this] { attempt_.request_stop(clock_.steady_now() + 30s); });
  queue::Message message;
  message.attributes["do"] = "hurry";  // goes on until it has less than a minute
  EXPECT_EQ(instance_->handle({message, "queue-a", 5, attempt_}).status, OutcomeStatus::release);
}

TEST_F(RunnerTest, AnExtensionMovesTheTimeOutOnBothSides) {
  open();
  EXPECT_EQ(handle("extend").reason, "extended");
  EXPECT_GT(attempt_.time_left(), std::chrono::minutes(58));
}

TEST_F(RunnerTest, AnEndOfTheProcessIsTheOutcomeOfThatMessage) {
  open();
  const Outcome outcome = handle("exit");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("called exit(3)"), HasSubstr("'bomb'"), HasSubstr("bomb.so")));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, AnEndThatNobodyCanCatchHasItsExitCode) {
  open();
  EXPECT_THAT(handle("_exit").reason, AllOf(HasSubstr("exit code 4"), HasSubstr("'bomb' of bomb.so")));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, AKillFromOutsideIsNamedAsWhatItMostLikelyIs) {
  open();
  const Outcome outcome = handle("kill9");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("SIGKILL"), HasSubstr("memory ran out")));
}

TEST_F(RunnerTest, AbortIsTheOutcomeOfThatMessageWithItsStack) {
  open();
  const Outcome outcome = handle("abort");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("SIGABRT in handler 'bomb' of bomb.so"), HasSubstr("stack: ")));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, EqualCrashesHaveEqualReasons) {
  open();
  const std::string first = handle("abort").reason;
  EXPECT_EQ(handle("abort").reason, first);
}

TEST_F(RunnerTest, AHangIsKilledPastTimeOutAndGraceAndSaysWhere) {
  open({.kill_grace = 50ms});
  const Outcome outcome = handle("hang", "", 50ms);
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("timed out, and did not stop within 50ms: killed"),
                                    HasSubstr("'bomb' of bomb.so"), HasSubstr("pause")));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

// The log is slower than the handler, so that there is always another line.
TEST_F(RunnerTest, AHandlerThatLogsWithoutPauseIsKilledAsSoonAsAnyOther) {
  open({.kill_grace = 50ms});
  std::size_t late = 0;
  on_line_ = [&] {
    const SteadyTime taken = clock_.steady_now() + 50us;
    while (clock_.steady_now() < taken) {
    }
    late += clock_.steady_now() > attempt_.deadline() + 50ms ? 1 : 0;
  };
  const Outcome outcome = handle("chatter", "", 50ms);
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, HasSubstr("timed out, and did not stop within 50ms: killed"));
  EXPECT_LE(late, 100U) << "no more than it takes to look again";
}

TEST_F(RunnerTest, TheCpuLimitEndsAnAttemptAndIsNamed) {
  open({.cpu = 100ms});
  const Outcome outcome = handle("burn");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("CPU limit of 100ms"), HasSubstr("killed")));
}

TEST_F(RunnerTest, TheCpuLimitIsOfAnAttemptAndNotOfTheProcess) {
  open({.cpu = 50ms});
  const SteadyTime begin = clock_.steady_now();
  while (clock_.steady_now() < begin + 200ms) {
    ASSERT_EQ(handle("").status, OutcomeStatus::done);
  }
}

TEST_F(RunnerTest, WhatDiesBetweenTwoMessagesIsNotTheNextOnesFault) {
  open();
  handle("");
  ASSERT_THAT(children(), testing::SizeIs(1));
  ::kill(children().front(), SIGKILL);
  // The order goes to a process that is gone, or that goes: in the second case nobody has seen the message.
  const Outcome first = handle("");
  EXPECT_TRUE(first.status == OutcomeStatus::done || first.status == OutcomeStatus::snooze) << first.reason;
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, AMessageThatItsProcessNeverBeganWithKeepsItsAttempt) {
  open({.kill_grace = 50ms});
  handle("");
  ASSERT_THAT(children(), testing::SizeIs(1));
  ::kill(children().front(), SIGSTOP);
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(children().front()), &stopped, WSTOPPED | WNOWAIT), 0);
  const Outcome outcome = handle("", "body", 50ms);
  EXPECT_EQ(outcome.status, OutcomeStatus::snooze) << outcome.reason;
  EXPECT_THAT(outcome.reason, HasSubstr("timed out"));
  ASSERT_FALSE(lines().empty());
  EXPECT_THAT(lines().back().text, HasSubstr("has ended between two messages"));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, AMessageWhoseLeaseIsLostTakesNoTimeFromItsBatch) {
  RunnerSpec spec{{"orders", SLUICE_TEST_PLUGINS "/kinds.so", "batches"}, {}, {}, {}};
  auto file = open_plugin(spec.plugin);
  ASSERT_TRUE(file);
  spec.file = *file;
  spec.options = {{"path", SLUICE_OPTION_STRING, "", 0, 0, {}}, {"sleep", SLUICE_OPTION_DURATION, "0s", 0, 0, {}}};
  auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  ASSERT_TRUE(created) << created.error().message();
  plugin::Attempt lost{clock_};
  attempt_.arm(SteadyTime::max());
  lost.arm(SteadyTime::max());
  attempt_.request_stop(clock_.steady_now() + std::chrono::hours(1));
  lost.lose_lease();
  queue::Message message;
  message.attributes["do"] = "left";
  std::vector<Outcome> outcomes(2);
  (*created)->handle_batch(std::vector<plugin::Work>{{message, "q", 5, attempt_}, {message, "q", 5, lost}}, outcomes);
  EXPECT_EQ(outcomes[0].reason, "59 minutes left");
  EXPECT_EQ(outcomes[1].reason, "0 minutes left");
}

TEST_F(RunnerTest, AHandlerThatRefusesItsOptionsSaysSo) {
  const auto created = create({}, "refuse");
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message(), HasSubstr("it does not like the weather"));
}

TEST_F(RunnerTest, AConstructorThatCrashesIsAnError) {
  const auto created = create({}, "abort");
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code(), ErrorCode::invalid);
  EXPECT_THAT(created.error().message(), AllOf(HasSubstr("SIGABRT"), HasSubstr("'bomb'")));
}

TEST_F(RunnerTest, AConstructorThatHangsIsAnErrorWithinItsTime) {
  const auto created = create({.start = 300ms}, "hang");
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message(), AllOf(HasSubstr("not made within 300ms"), HasSubstr("pause")));
}

TEST_F(RunnerTest, NothingIsMadeAfterAHardStopAndMessagesKeepTheirAttempts) {
  open();
  spawner_.kill_all();
  const Outcome outcome = handle("wait");
  EXPECT_TRUE(outcome.status == OutcomeStatus::release || outcome.status == OutcomeStatus::snooze);
  EXPECT_EQ(handle("wait").status, OutcomeStatus::snooze);
  EXPECT_FALSE(create());
}

TEST_F(RunnerTest, NoProcessIsLeftBehind) {
  open();
  handle("");
  instance_.reset();
  spawner_.stop();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(RunnerTest, APluginThatIsReplacedOnDiskStaysTheOneThatWasOpened) {
  const StateFolder folder;
  RunnerSpec spec = copied_bomb(folder);
  const std::string file = spec.plugin;
  std::filesystem::remove(file);
  std::ofstream(file) << "not a plugin any more";
  auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  ASSERT_TRUE(created) << created.error().message();
  instance_ = std::move(*created);
  EXPECT_THAT(handle("abort").reason, HasSubstr(" < Bomb::go_off(")) << "its functions are those that it has";
}

TEST_F(RunnerTest, APluginThatIsReplacedUnderItsProcessKeepsTheNamesOfItsFunctions) {
  const StateFolder folder;
  RunnerSpec spec = copied_bomb(folder);
  const std::string file = spec.plugin;
  auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  ASSERT_TRUE(created) << created.error().message();
  instance_ = std::move(*created);
  std::filesystem::remove(file);
  std::ofstream(file) << "not a plugin any more";
  EXPECT_THAT(handle("abort").reason, HasSubstr(" < Bomb::go_off("));
}

TEST_F(RunnerTest, APinnedPluginIsTheBytesThatTheHostLoadedWhateverIsWrittenIntoItsFile) {
  const StateFolder folder;
  std::filesystem::create_directories(folder.path());
  const std::string file = folder.path() + "/bomb.so";
  std::filesystem::copy_file(SLUICE_TEST_PLUGINS "/bomb.so", file);
  const auto bytes = plugin::SealedFile::copy_of(file);
  ASSERT_TRUE(bytes) << bytes.error().message();
  std::ofstream(file) << "not a plugin any more";
  RunnerSpec spec{{"orders", file, "bomb"}, {}, {}, {}};
  add_bomb_options(spec);
  spec.file = *open_plugin(plugin::LoadedPlugin{file, nullptr, *bytes});
  const auto created = RunnerInstance::create(std::move(spec), spawner_, {});
  EXPECT_TRUE(created) << created.error().message();
}

#ifndef SLUICE_SANITIZED
TEST_F(RunnerTest, AFaultIsTheOutcomeOfThatMessageWithItsStack) {
  open();
  EXPECT_THAT(handle("segv").reason,
              AllOf(HasSubstr("SIGSEGV at address 0x0 in handler 'bomb' of bomb.so"), HasSubstr("stack: ")));
}

TEST_F(RunnerTest, AMessageThatDoesNotFitIntoItsProcessCountsItsAttempt) {
  open({.memory = 16U << 20U});
  EXPECT_EQ(handle("", std::string(20U << 20U, 'b')).status, OutcomeStatus::crashed);
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, TheMemoryLimitIsNamedWhereAHandlerDoesNotSurviveIt) {
  open({.memory = 64U << 20U});
  const Outcome outcome = handle("oom");
  EXPECT_EQ(outcome.status, OutcomeStatus::crashed);
  EXPECT_THAT(outcome.reason, HasSubstr("memory limit is 64MiB"));
  EXPECT_EQ(handle("").status, OutcomeStatus::done);
}

TEST_F(RunnerTest, TheMemoryLimitIsNamedWhereAHandlerDoes) {
  open({.memory = 64U << 20U});
  const Outcome outcome = handle("grow");
  EXPECT_EQ(outcome.status, OutcomeStatus::fault);
  EXPECT_THAT(outcome.reason, AllOf(HasSubstr("bad_alloc"), HasSubstr("memory limit is 64MiB")));
}
#endif

}  // namespace
}  // namespace sluice::isolation
