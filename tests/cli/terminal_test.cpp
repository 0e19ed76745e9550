#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;
using testing::Not;

struct TerminalSession {
  int exit_code = -1;
  std::string text;  ///< all that appeared on the terminal
};

/// Runs the binary on a pseudo-terminal and types `answer` as soon as `prompt` has appeared (an empty one: never).
TerminalSession on_terminal(const HostFolder& folder, std::vector<std::string> words, const std::string& prompt,
                            const std::string& answer) {
  words.insert(words.begin(), SLUICE_BINARY);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int terminal = -1;
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    if (::chdir(folder.path().c_str()) == 0) {
      ::execv(SLUICE_BINARY, arguments.data());
    }
    ::_exit(127);
  }
  TerminalSession session;
  bool answered = prompt.empty();
  std::array<char, 4096> bytes;
  for (;;) {
    const auto count = ::read(terminal, bytes.data(), bytes.size());
    if (count <= 0) {
      break;
    }
    session.text.append(bytes.data(), static_cast<std::size_t>(count));
    if (!answered && session.text.find(prompt) != std::string::npos) {
      answered = true;
      EXPECT_EQ(::write(terminal, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    }
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  session.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return session;
}

std::int64_t stored(const HostFolder& folder) {
  return boost::json::parse(folder.run({"stats", "--queue", "q"}).out).at("total").as_int64();
}

TEST(Terminal, PurgeAsksAndTakesNoForAnAnswer) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n");
  const auto session = on_terminal(folder, {"purge", "--queue", "q"}, "[y/N] ", "n\n");
  EXPECT_THAT(session.text, HasSubstr("Remove all 2 messages of queue q? [y/N] "));
  EXPECT_THAT(session.text, HasSubstr("sluice purge: nothing was removed"));
  EXPECT_EQ(session.exit_code, 1);
  EXPECT_EQ(stored(folder), 2);
}

TEST(Terminal, DevTakesTypedMessagesUntilCtrlD) {
  const HostFolder folder;
  const auto session = on_terminal(folder, {"dev", "--plugin", SLUICE_FIXTURE_PLUGIN, "--option", "port=7"},
                                   "type a message a line", "hello\n\x04");
  EXPECT_EQ(session.exit_code, 0) << session.text;
  EXPECT_THAT(session.text, HasSubstr("Ctrl-D ends, Ctrl-C ends at once"));
  EXPECT_THAT(session.text, HasSubstr("m-1"));
  EXPECT_THAT(session.text, HasSubstr("done 1, retried 0, dead 0"));
}

TEST(Terminal, PurgeTakesYesForAnAnswer) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n");
  const auto session = on_terminal(folder, {"purge", "--queue", "q"}, "[y/N] ", "y\n");
  EXPECT_EQ(session.exit_code, 0) << session.text;
  EXPECT_THAT(session.text, HasSubstr("2 removed, 0 skipped")) << "text, where somebody looks";
  EXPECT_EQ(stored(folder), 0);
}

/// A variable of this process, and so of those it starts, for a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(Terminal, ColoursAreForThoseWhoWantThem) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n");
  const std::vector<std::string> words{"ls", "--queue", "q", "--output", "text"};
  EXPECT_THAT(on_terminal(folder, words, "", "").text, HasSubstr("\x1b[32mready\x1b[0m"));
  {
    const Variable refused("NO_COLOR", "1");
    EXPECT_THAT(on_terminal(folder, words, "", "").text, Not(HasSubstr("\x1b")));
  }
  const Variable dumb("TERM", "dumb");
  EXPECT_THAT(on_terminal(folder, words, "", "").text, Not(HasSubstr("\x1b")));
}

TEST(Terminal, WatchRedrawsInPlaceUntilCtrlC) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n");
  const auto session = on_terminal(folder, {"stats", "--queue", "q", "--watch"}, "OLDEST READY", "\x03");
  EXPECT_THAT(session.text, HasSubstr("\x1b[H\x1b[2J"));
  EXPECT_THAT(session.text, Not(HasSubstr("first_100"))) << "a table, unless JSON was asked for";
  EXPECT_EQ(session.exit_code, 0);
}

TEST(Terminal, AsksAboutWhatWillHappen) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n3\n4\n5\n");
  const auto asked = [&folder](std::vector<std::string> words) {
    words.insert(words.begin(), {"delete", "--queue", "q"});
    const auto session = on_terminal(folder, words, "[y/N] ", "n\n");
    return session.text.substr(0, session.text.find(" [y/N]"));
  };
  EXPECT_EQ(asked({"--all"}), "Remove all 5 messages of queue q?");
  EXPECT_EQ(asked({"--all", "--limit", "2"}), "Remove 2 messages of queue q?");
  EXPECT_EQ(asked({"--where", "data > 3"}), "Remove 2 messages of queue q that match?");
  EXPECT_EQ(asked({"--where", "data > 1", "--limit", "1"}), "Remove 1 message of queue q that matches?");
  EXPECT_EQ(asked({"--all", "--rate", "1/m"}), "Remove all 5 messages of queue q, in 5m?");
  folder.run({"receive", "--queue", "q"});
  EXPECT_EQ(asked({"--all"}), "Remove 4 messages of queue q, leaving 1 in flight alone?");
  EXPECT_EQ(asked({"--all", "--force"}), "Remove all 5 messages of queue q?");
  EXPECT_EQ(stored(folder), 5);
}

TEST(Terminal, ShowsTextToWhoLooksAndJsonToWhoAsks) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "--id", "A-1", "--data", "1"});
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q"}, "", "").text, HasSubstr("RECEIVES"));
  EXPECT_THAT(on_terminal(folder, {"get", "--queue", "q", "A-1"}, "", "").text, HasSubstr("receives"));
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--json"}, "", "").text, HasSubstr("\"statuses\""));
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--output", "json"}, "", "").text, HasSubstr("\"statuses\""));
}

TEST(Terminal, LsSaysHowManyThereAre) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n3\n");
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--limit", "2"}, "", "").text, HasSubstr("2 of 3; "));
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--where", "data < 3", "--limit", "1"}, "", "").text,
              HasSubstr("1 of 2; "));
}

TEST(Terminal, LsSaysThatThereIsNothing) {
  const HostFolder folder;
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--output", "text"}, "", "").text, HasSubstr("no messages"));
}

TEST(Terminal, LsSaysThatThereIsMore) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n3\n");
  EXPECT_THAT(on_terminal(folder, {"ls", "--queue", "q", "--limit", "2"}, "", "").text, HasSubstr("--all shows it"));
}

}  // namespace
}  // namespace sluice::test
