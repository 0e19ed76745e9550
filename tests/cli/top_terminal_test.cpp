// `sluice top` on a pseudo-terminal: what it shows, and that it gives the terminal back however it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;

constexpr const char* kEnter = "\x1b[?1049h";
constexpr const char* kLeave = "\x1b[?25h\x1b[?1049l";

/// `sluice top` that runs on a terminal of its own.
class LiveTop {
 public:
  explicit LiveTop(const HostFolder& folder, std::vector<std::string> words = {"top", "--output", "text"},
                   const char* kind = "xterm") {
    words.insert(words.begin(), SLUICE_BINARY);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (auto& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    winsize size{.ws_row = 20, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
    pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (pid_ == 0) {
      ::setenv("TERM", kind, 1);
      if (::chdir(folder.path().c_str()) == 0) {
        ::execv(SLUICE_BINARY, arguments.data());
      }
      ::_exit(127);
    }
    ::tcgetattr(terminal_, &before_);
  }
  ~LiveTop() {
    if (pid_ > 0) {  // it has not been waited for
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(terminal_);
  }
  LiveTop(const LiveTop&) = delete;
  LiveTop& operator=(const LiveTop&) = delete;

  void type(const std::string& text) {
    ASSERT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void signal(int number) const { ::kill(pid_, number); }
  void resize(unsigned short rows, unsigned short columns) const {
    winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(terminal_, TIOCSWINSZ, &size);
  }
  /// Reads until the text has appeared behind what was read before.
  void await(const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (seen_.find(text, from_) == std::string::npos) {
      ASSERT_TRUE(std::chrono::steady_clock::now() < until && read_some()) << "never shown: " << text << "\n"
                                                                           << seen_.substr(from_);
    }
    from_ = seen_.find(text, from_) + text.size();
  }
  /// 128 + signal when one ended it.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool stopped() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  bool terminal_is_as_before() const {
    termios now{};
    ::tcgetattr(terminal_, &now);
    return now.c_lflag == before_.c_lflag && now.c_cc[VQUIT] == before_.c_cc[VQUIT] &&
           now.c_cc[VMIN] == before_.c_cc[VMIN];
  }
  const std::string& seen() const { return seen_; }

 private:
  bool read_some() {
    pollfd watched{terminal_, POLLIN, 0};
    std::array<char, 4096> bytes;
    if (::poll(&watched, 1, 20'000) <= 0) {
      return false;
    }
    const auto count = ::read(terminal_, bytes.data(), bytes.size());
    seen_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return count > 0;
  }

  pid_t pid_ = -1;
  int terminal_ = -1;
  termios before_{};
  std::string seen_;
  std::size_t from_ = 0;
};

class TopTerminal : public testing::Test {
 protected:
  TopTerminal() : folder_("[store]\npath = \"s.db\"\n[queues.mails]\n[queues.orders]\n") {
    folder_.run({"send", "--queue", "orders", "-"}, "1\n2\n3\n");
  }
  HostFolder folder_;
};

TEST_F(TopTerminal, ShowsQueuesAndEndsOnQ) {
  LiveTop top(folder_);
  top.await(kEnter);
  top.await("orders");
  top.type("q");
  EXPECT_EQ(top.finish(), 0);
  EXPECT_THAT(top.seen(), HasSubstr(kLeave));
}

TEST_F(TopTerminal, GivesTheTerminalBackOnCtrlCAndOnSignals) {
  for (const int signal : {0, SIGTERM, SIGHUP, SIGINT}) {
    LiveTop top(folder_);
    top.await("q quit");
    EXPECT_FALSE(top.terminal_is_as_before()) << "keys come at once";
    if (signal == 0) {
      top.type("\x03");
    } else {
      top.signal(signal);
    }
    top.await(kLeave);
    EXPECT_EQ(top.finish(), 0) << signal;
    EXPECT_TRUE(top.terminal_is_as_before()) << signal;
  }
}

TEST_F(TopTerminal, GivesTheTerminalBackOnCtrlZAndTakesItAgain) {
  LiveTop top(folder_);
  top.await("q quit");
  top.type("\x1a");
  ASSERT_TRUE(top.stopped());
  top.await(kLeave);
  EXPECT_TRUE(top.terminal_is_as_before());
  top.signal(SIGCONT);
  top.await(kEnter);
  top.await("q quit");
  EXPECT_FALSE(top.terminal_is_as_before());
  top.type("q");
  EXPECT_EQ(top.finish(), 0);
  EXPECT_TRUE(top.terminal_is_as_before());
}

TEST_F(TopTerminal, FollowsTheSizeOfTheWindow) {
  LiveTop top(folder_);
  top.await("pause or resume");
  top.resize(10, 12);
  top.await("q quit  s so\x1b[K");
  top.resize(24, 80);
  top.await("pause or resume");
  top.type("q");
  EXPECT_EQ(top.finish(), 0);
}

TEST_F(TopTerminal, PausesTheSelectedQueueAndResumesIt) {
  LiveTop top(folder_);
  top.await("orders");
  top.type("/ord\r");  // whichever is first while they are counted
  top.type("p");
  top.await("Pause queue orders on all hosts? [y/N]");
  top.type("y");
  top.await("queue orders is paused");
  EXPECT_THAT(folder_.run({"audit", "--output", "text"}).out, HasSubstr("pause queue orders"));
  top.type("p");
  top.await("Resume queue orders on all hosts? [y/N]");
  top.type("y");
  top.await("queue orders is resumed");
  top.type("q");
  EXPECT_EQ(top.finish(), 0);
}

TEST_F(TopTerminal, ObeysKeysBetweenTwoLooks) {
  LiveTop top(folder_, {"top", "--output", "text", "--interval", "1h"});
  top.await("q quit");
  top.type("\x04");  // a key that means nothing here
  top.type("?");
  top.await("select a queue");
  top.type("xq");
  EXPECT_EQ(top.finish(), 0);
}

TEST_F(TopTerminal, ADumbTerminalGetsOnePicture) {
  LiveTop top(folder_, {"top", "--output", "text"}, "dumb");
  EXPECT_EQ(top.finish(), 0);
  EXPECT_EQ(top.seen().find('\x1b'), std::string::npos);
  EXPECT_THAT(top.seen(), HasSubstr("orders"));
}

}  // namespace
}  // namespace sluice::test
