#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/plugins/live_host.hpp"

namespace sluice::shipped {
namespace {

using Map = std::map<std::string, std::string>;

Result run(const OptionMap& options, const TestMessage& message = {}) {
  return LiveHost("exec", options).handle(message);
}

/// What the script prints for the message.
std::string printed(const std::string& script, const TestMessage& message = {}, OptionMap more = {}) {
  LiveHost host("exec", shell(script, std::move(more)));
  const Result result = host.handle(message);
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  std::string text;
  for (const std::string& line : host.log()) {
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

TEST(ExecPlugin, GivesTheBodyOnStandardInput) {
  EXPECT_EQ(printed("cat", {.body = "hello\nworld\n"}), "hello\nworld");
  EXPECT_EQ(printed("wc -c", {.body = std::string(400 * 1024, 'x')}), "409600");
  EXPECT_EQ(printed("wc -c", {.body = ""}), "0");
  EXPECT_EQ(printed("cat /dev/stdin; cat", {.body = "twice "}), "twice twice");
  EXPECT_EQ(printed("od -An -tx1", {.body = std::string("\0\xff\n", 3)}), " 00 ff 0a");
}

TEST(ExecPlugin, DoesNotMindABodyThatNobodyReads) {
  EXPECT_EQ(run({{"command", List{"true"}}}, {.body = std::string(400 * 1024, 'x')}).status, SLUICE_DONE);
  EXPECT_EQ(run(shell("exec <&-; exit 0"), {.body = std::string(400 * 1024, 'x')}).status, SLUICE_DONE);
}

TEST(ExecPlugin, TellsAboutTheMessageInTheEnvironment) {
  const TestMessage message{.body = "",
                            .id = "A-1",
                            .queue = "orders",
                            .content_type = "text/x",
                            .attributes = {{"tenant-id", "a b"}, {"Über", "$(id)"}, {"x.y", ""}},
                            .group = "g",
                            .attempt = 3,
                            .max_attempts = 7};
  EXPECT_EQ(
      printed("env | grep ^SLUICE_ | grep -v ^SLUICE_EMULATOR= | sort", message),
      "SLUICE_ATTEMPT=3\nSLUICE_ATTR_TENANT_ID=a b\nSLUICE_ATTR_X_Y=\nSLUICE_ATTR___BER=$(id)\n"
      "SLUICE_CONTENT_TYPE=text/x\nSLUICE_GROUP=g\nSLUICE_MAX_ATTEMPTS=7\nSLUICE_MESSAGE_ID=A-1\nSLUICE_QUEUE=orders");
}

TEST(ExecPlugin, NeverPassesOnAnAttributeOfAnotherMessage) {
  ASSERT_EQ(::setenv("SLUICE_ATTR_STALE", "x", 1), 0);
  ASSERT_EQ(::setenv("SLUICE_TEST_KEPT", "y", 1), 0);
  EXPECT_EQ(printed("echo \"$SLUICE_ATTR_STALE,$SLUICE_TEST_KEPT\""), ",y");
  ::unsetenv("SLUICE_ATTR_STALE");
  ::unsetenv("SLUICE_TEST_KEPT");
}

TEST(ExecPlugin, KeepsTheHostsKeysUnlessAsked) {
  const std::map<std::string, std::string> keys{{"AWS_ACCESS_KEY_ID", "AKID"},
                                                {"AWS_SECRET_ACCESS_KEY", "s3cret"},
                                                {"AWS_SESSION_TOKEN", "t0ken"},
                                                {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/keys"},
                                                {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t0ken"},
                                                {"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}};
  for (const auto& [name, value] : keys) {
    ASSERT_EQ(::setenv(name.c_str(), value.c_str(), 1), 0);
  }
  EXPECT_EQ(printed("env | grep -c ^AWS_ || true"), "0");
  EXPECT_EQ(printed("echo $AWS_SESSION_TOKEN $AWS_ACCESS_KEY_ID", {}, {{"aws_env", true}}), "t0ken AKID");
  EXPECT_EQ(printed("env | grep ^AWS_", {}, {{"env", Map{{"AWS_REGION", "eu-west-1"}}}}), "AWS_REGION=eu-west-1");
  for (const auto& [name, value] : keys) {
    ::unsetenv(name.c_str());
  }
}

TEST(ExecPlugin, SetsAndClearsTheEnvironment) {
  EXPECT_EQ(printed("echo $A $SLUICE_QUEUE", {}, {{"env", Map{{"A", "1 2"}, {"SLUICE_QUEUE", "no"}}}}), "1 2 test");
  const std::string all =
      printed("/usr/bin/env | sort", {.id = "A-1"}, {{"env", Map{{"A", "1"}}}, {"clear_env", true}});
  EXPECT_EQ(all.rfind("A=1\n", 0), 0U) << all;
  EXPECT_EQ(all.find("HOME="), std::string::npos) << all;
  EXPECT_NE(all.find("SLUICE_MESSAGE_ID=A-1"), std::string::npos) << all;
}

TEST(ExecPlugin, RunsNoShellUnlessAsked) {
  LiveHost direct("exec", {{"command", List{"/bin/echo", "$HOME; id", "*"}}});
  EXPECT_EQ(direct.handle({}).status, SLUICE_DONE);
  EXPECT_EQ(direct.log(), List{"$HOME; id *"});
  LiveHost script("exec", {{"command", List{"echo $# \"$1\" \"$2\"", "a b", "$x"}}, {"shell", true}});
  EXPECT_EQ(script.handle({}).status, SLUICE_DONE);
  EXPECT_EQ(script.log(), List{"2 a b $x"});
}

TEST(ExecPlugin, RunsInTheFolder) {
  EXPECT_EQ(printed("pwd", {}, {{"cwd", "/usr"}}), "/usr");
  LiveHost host("exec", {{"command", List{"bin/pwd"}}, {"cwd", "/usr"}});
  EXPECT_EQ(host.handle({}).status, SLUICE_DONE);
  EXPECT_EQ(host.log(), List{"/usr"});
}

TEST(ExecPlugin, MapsExitCodes) {
  const auto status = [](int code, const OptionMap& more = {}) {
    return run(shell("exit " + std::to_string(code), more)).status;
  };
  EXPECT_EQ(status(0), SLUICE_DONE);
  EXPECT_EQ(status(75), SLUICE_RETRY);
  EXPECT_EQ(status(65), SLUICE_REJECT);
  EXPECT_EQ(status(1), SLUICE_RETRY);
  EXPECT_EQ(status(255), SLUICE_RETRY);
  const OptionMap mapped{{"exit_codes", Map{{"3", "discard"}, {"4", "release"}, {"0", "reject"}, {"default", "done"}}}};
  EXPECT_EQ(status(3, mapped), SLUICE_DISCARD);
  EXPECT_EQ(status(4, mapped), SLUICE_RELEASE);
  EXPECT_EQ(status(0, mapped), SLUICE_REJECT);
  EXPECT_EQ(status(75, mapped), SLUICE_RETRY);
  EXPECT_EQ(status(1, mapped), SLUICE_DONE);
}

TEST(ExecPlugin, DelaysByExitCode) {
  const OptionMap mapped{{"exit_codes", Map{{"3", "retry 30s"}, {"4", "snooze 2m"}}}};
  const Result retry = run(shell("exit 3", mapped));
  EXPECT_EQ(retry.status, SLUICE_RETRY);
  EXPECT_EQ(retry.delay, std::chrono::seconds(30));
  const Result snooze = run(shell("exit 4", mapped));
  EXPECT_EQ(snooze.status, SLUICE_SNOOZE);
  EXPECT_EQ(snooze.delay, std::chrono::minutes(2));
  EXPECT_LT(run(shell("exit 1")).delay, std::chrono::nanoseconds::zero());
}

TEST(ExecPlugin, NamesTheSignalThatKilledTheCommand) {
  const Result result = run(shell("echo why >&2; kill -KILL $$"));
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.reason, "killed by SIGKILL: why");
  EXPECT_EQ(run(shell("kill -TERM $$")).reason, "killed by SIGTERM");
  EXPECT_EQ(run(shell("kill -TERM $$", {{"exit_codes", Map{{"signal", "reject"}}}})).status, SLUICE_REJECT);
}

TEST(ExecPlugin, RefusesOptionsThatCannotWork) {
  const auto says = [](const OptionMap& options, const std::string& phrase) {
    const std::string error = creation_error("exec", options);
    EXPECT_NE(error.find(phrase), std::string::npos) << error;
  };
  says({}, "command");
  says({{"command", List{}}}, "\"command\" is empty");
  says({{"command", List{""}}}, "\"command\" is empty");
  says({{"command", List{"true", std::string("a\0b", 3)}}}, "zero byte");
  says({{"command", List{"no-such-command"}}}, "\"no-such-command\" is in no folder of PATH, which is \"");
  says({{"command", List{"true"}}, {"env", Map{{"PATH", "/nowhere"}}}}, "which is \"/nowhere\"");
  says({{"command", List{"/no/such"}}}, "\"/no/such\" is not an executable file");
  says({{"command", List{"/usr"}}}, "not an executable file");
  says({{"command", List{"/etc/passwd"}}}, "not an executable file");
  says({{"command", List{"bin/pwd"}}, {"cwd", "/etc"}}, "\"/etc/bin/pwd\" is not");
  says({{"command", List{"true"}}, {"cwd", "/no/such"}}, "\"cwd\" must be a folder");
  says({{"command", List{"true"}}, {"env", Map{{"A=B", ""}}}}, "cannot be the name of a variable");
  says({{"command", List{"true"}}, {"env", Map{{"", ""}}}}, "cannot be the name of a variable");
  says({{"command", List{"true"}}, {"stdout_level", "loud"}}, "\"stdout_level\" must be");
  says({{"command", List{"true"}}, {"output_limit", -1}}, "from 0 to");
  says({{"command", List{"true"}}, {"timeout", "0s"}}, "more than 0s");
  for (const char* code : {"256", "-1", "x", "", "1 ", "0x1"}) {
    says({{"command", List{"true"}}, {"exit_codes", Map{{code, "done"}}}}, "may name exit codes");
  }
  for (const char* verdict : {"", "ok", "snooze", "done 5s", "retry 5", "retry -5s", "retry  5s", "retry 8d",
                              "snooze 99999999999999999999s"}) {
    says({{"command", List{"true"}}, {"exit_codes", Map{{"1", verdict}}}}, "it may be done, retry");
  }
}

TEST(ExecPlugin, RetriesWhenTheCommandIsGoneOrNoProgram) {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-exec-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/script";
  std::ofstream(file) << "echo no first line\n";
  ASSERT_EQ(::chmod(file.c_str(), 0755), 0);
  LiveHost host("exec", {{"command", List{file}}});
  Result result = host.handle({});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_NE(result.reason.find("#!/bin/sh"), std::string::npos) << result.reason;
  std::filesystem::remove_all(folder);
  result = host.handle({});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_EQ(result.reason, "cannot start " + file + ": No such file or directory");
}

TEST(ExecPlugin, RejectsAttributesThatNoEnvironmentTakes) {
  const Result result =
      run({{"command", List{"true"}}}, {.body = "", .attributes = {{"big", std::string(300'000, 'x')}}});
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_NE(result.reason.find("too big for an environment"), std::string::npos) << result.reason;
}

TEST(ExecPlugin, PassesOnNoDescriptorAndNoSignalState) {
  const int leak = ::fcntl(STDERR_FILENO, F_DUPFD, 100);  // Without close-on-exec, as careless libraries leave it.
  ASSERT_GE(leak, 100);
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_handler = ::signal(SIGPIPE, SIG_IGN);
  // Beyond the 31 classic signals are two that the C library keeps for itself.
  const std::string text = printed(
      "echo $(ls /proc/self/fd); sed -n 's/SigBlk:.*\\(.\\{8\\}\\)$/\\1/p; s/SigIgn:.*\\(.\\{8\\}\\)$/\\1/p' "
      "/proc/self/status");
  ::signal(SIGPIPE, pipe_handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(leak);
  // 3 is the folder that ls itself has open.
  EXPECT_TRUE(text == "0 1 2 3\n00000000\n80000000" || text == "0 1 2 3\n00000000\n00000000") << text;
}

TEST(ExecPlugin, PassesOnNoRealTimeSignalThatTheHostIgnores) {
  const auto before = ::signal(SIGRTMIN, SIG_IGN);
  const std::string ignored = printed("sed -n 's/SigIgn:[^0-9a-f]*//p' /proc/self/status");
  ::signal(SIGRTMIN, before);
  EXPECT_EQ(std::stoull(ignored, nullptr, 16) >> static_cast<unsigned>(SIGRTMIN - 1) & 1U, 0U) << ignored;
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(ExecPlugin, LeavesNeitherDescriptorsNorZombies) {
  LiveHost host("exec", shell("cat >/dev/null; echo x; echo y >&2; exit $SLUICE_ATTEMPT"));
  LiveHost broken("exec", {{"command", List{"true"}}});
  host.handle({.body = "x"});
  const int before = open_descriptors();
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(host.handle({.body = "x", .attempt = i}).status, i == 0 ? SLUICE_DONE : SLUICE_RETRY);
    EXPECT_EQ(broken.handle({.body = "", .attributes = {{"big", std::string(300'000, 'x')}}}).status, SLUICE_REJECT);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ExecPlugin, WorksForManyWorkersAtOnce) {
  LiveHost host("exec", shell("cat; exit 0"));
  std::atomic<int> done{0};
  std::vector<std::jthread> workers;
  workers.reserve(64);
  for (int i = 0; i < 64; ++i) {
    workers.emplace_back([&host, &done, i] {
      for (int j = 0; j < 3; ++j) {
        const std::string body = "message " + std::to_string(i * 3 + j) + ".";
        done += host.handle({.body = body}).status == SLUICE_DONE && host.logged(body) ? 1 : 0;
      }
    });
  }
  workers.clear();
  EXPECT_EQ(done, 64 * 3);
  EXPECT_EQ(host.log().size(), 64U * 3);
}

TEST(ExecPluginDeathTest, WorksInAHostWithoutStandardStreams) {
  EXPECT_EXIT(
      {
        LiveHost host("exec", shell("cat >&2; exit 3"));
        ::close(STDIN_FILENO);
        ::close(STDOUT_FILENO);
        const Result result = host.handle({.body = "body"});
        std::_Exit(result.reason == "exited with 3: body" ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(ExecPluginDeathTest, RetriesWhenSomebodyElseCollectsTheExitCode) {
  EXPECT_EXIT(
      {
        ::signal(SIGCHLD, SIG_IGN);  // The kernel itself collects then.
        LiveHost host("exec", shell("exit 0"));
        const Result result = host.handle({});
        std::_Exit(result.status == SLUICE_RETRY && result.reason.find("not known") != std::string::npos ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice::shipped
