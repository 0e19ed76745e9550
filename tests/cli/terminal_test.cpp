#include "tests/cli/terminal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <functional>

#include "host/cli/console.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST(Terminal, WhoSaysNoEndsEachCommandInTheSameWay) {
  const HostFolder folder;
  const auto kept = on_terminal(folder, {"keys", "forget", "q", "order-7", "--job", "pay"}, "[y/N] ", "n\n");
  EXPECT_THAT(kept.text, HasSubstr("sluice keys forget: nothing was forgotten"));
  EXPECT_EQ(kept.exit_code, 1);
  const auto stays = on_terminal(folder, {"move", "q", "orders"}, "[y/N] ", "n\n");
  EXPECT_THAT(stays.text, HasSubstr("sluice move: nothing was moved"));
  EXPECT_EQ(stays.exit_code, 1);
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

/// What a console writes to a terminal of 40 columns.
std::string on_console(const std::function<void(cli::Console&)>& write) {
  int terminal = -1;
  const winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    cli::Console console;
    write(console);
    ::_exit(0);
  }
  std::string text;
  std::array<char, 4096> bytes;
  for (ssize_t count = 0; (count = ::read(terminal, bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  ::close(terminal);
  ::waitpid(pid, nullptr, 0);
  return text;
}

// A line of `drain --wait` was longer than the screen, so that each second left one or two.
TEST(Terminal, AProgressLineIsNoLongerThanTheScreen) {
  EXPECT_EQ(
      on_console([](cli::Console& console) {
        console.progress(std::string(100, 'x'));
        console.progress("\xc3\xa4 and more");
        console.end_progress();
      }),
      "\r" + std::string(39, 'x') + "\r\xc3\xa4 and more" + std::string(29, ' ') + "\r" + std::string(10, ' ') + "\r");
}

// It stood behind the progress, on one line with it.
TEST(Terminal, WhatAStoreHasToSayTakesTheProgressLineAway) {
  EXPECT_EQ(on_console([](cli::Console& console) {
              console.progress("12 moved");
              cli::QueueSession::warn("the store is slow");
              console.end_progress();
            }),
            "\r12 moved\r        \rsluice: the store is slow\r\n");
}

TEST(Terminal, WarningsAreWrapped) {
  EXPECT_EQ(
      on_console([](cli::Console& console) { console.note("warning: host web-1 has not told of itself for 14s"); }),
      "warning: host web-1 has not told of\r\n    itself for 14s\r\n");
}

TEST(Terminal, AnEmptyQueueIsSaidToBe) {
  const HostFolder folder("[store]\npath = \"s.db\"\n[queues.q]\n");
  folder.run({"send", "q", "--id", "A-1", "--data", "1"});
  folder.run({"delete", "q", "A-1"});
  for (const char* const look : {"ls", "peek"}) {
    EXPECT_EQ(on_terminal(folder, {look, "q"}).text, "no messages\r\n") << look;
    EXPECT_EQ(folder.run({look, "q", "--output", "text"}).err, "") << look;
  }
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
  EXPECT_EQ(asked({"--where", "data > 5"}), "Remove 0 messages of queue q that match?")
      << "one that is sent while the user thinks may match";
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

TEST(Terminal, ManyMessagesAreACountAndIdsAreForWhoWantsThem) {
  const HostFolder folder;
  folder.run({"send", "--queue", "q", "-"}, "1\n2\n3\n4\n5\n6\n");
  const std::vector<std::string> some{"delete", "q", "--where", "data < 3", "--yes"};
  EXPECT_THAT(folder.run({"delete", "q", "--where", "data < 3", "--dry-run", "--output", "text"}).out,
              HasSubstr("would remove  "))
      << "a pipe has them";
  auto tried = some;
  tried.back() = "--dry-run";
  EXPECT_THAT(on_terminal(folder, tried).text,
              AllOf(HasSubstr("\rwould remove 2, 0 skipped; --ids lists them\r\n"), Not(HasSubstr("would remove  "))));
  tried.emplace_back("--ids");
  EXPECT_THAT(on_terminal(folder, tried).text, HasSubstr("would remove  "));
  EXPECT_THAT(on_terminal(folder, some).text,
              AllOf(HasSubstr("\r2 removed, 0 skipped\r\n"), Not(HasSubstr("removed  "))));
  EXPECT_THAT(on_terminal(folder, {"delete", "q", "nobody", "nobody-else"}).text, HasSubstr("failed  nobody-else"))
      << "what was named is told one by one";
  EXPECT_THAT(on_terminal(folder, {"edit", "q", "--all", "--set", "data.no.way=1", "--yes"}).text,
              AllOf(HasSubstr("failed  "), HasSubstr("0 edited, 0 skipped, 4 failed\r\n")))
      << "and so are failures";
}

TEST(Terminal, SendCountsWhatItSends) {
  const HostFolder folder;
  const std::string lines = "1\n2\n3\n";
  EXPECT_EQ(on_terminal(folder, {"send", "q", "-"}, {}, {}, lines).text, "3 messages were sent\r\n");
  EXPECT_THAT(on_terminal(folder, {"send", "q", "-", "--ids"}, {}, {}, lines).text, Not(HasSubstr("sent")));
  EXPECT_EQ(folder.run({"send", "q", "-"}, lines).out_lines().size(), 3U) << "a pipe has the ids";
  EXPECT_EQ(on_terminal(folder, {"send", "q", "--data", "1", "--id", "A-1"}).text, "A-1\r\n");
  EXPECT_EQ(stored(folder), 10);
}

TEST(Terminal, ARunThatIsInterruptedGoesOnWithTheRestOfItsLimit) {
  const HostFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i) {
    lines += "1\n";
  }
  folder.run({"send", "q", "-"}, lines);
  const std::vector<std::string> words{"delete", "q", "--all", "--limit", "40", "--rate", "40/s", "--yes"};
  const auto stopped = on_terminal(folder, words, " removed, ", "\x03");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.text;
  const auto gone = 60 - stored(folder);
  const std::string token = "--resume 'rest=" + std::to_string(40 - gone) + ";";
  ASSERT_THAT(stopped.text, HasSubstr(token));
  const auto from = stopped.text.find(token) + std::string("--resume '").size();
  auto again = words;
  again[6] = "1000/s";
  again.insert(again.end(), {"--resume", stopped.text.substr(from, stopped.text.find('\'', from) - from)});
  EXPECT_EQ(on_terminal(folder, again).exit_code, 0);
  EXPECT_EQ(stored(folder), 20);
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
