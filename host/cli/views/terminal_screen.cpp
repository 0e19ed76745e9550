#include "host/cli/views/terminal_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "base/assert.hpp"

namespace sluice::cli {

namespace {

// Another page than the one that is scrolled, and no cursor; and back.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J";
constexpr std::string_view kLeave = "\x1b[0m\x1b[?25h\x1b[?1049l";
constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};

sigset_t screen_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) {
    sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

ScreenSignals::ScreenSignals() {
  const sigset_t set = screen_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  SLUICE_ASSERT(descriptor_ >= 0);
}

ScreenSignals::~ScreenSignals() {
  while (take() != 0) {
    // What came too late concerns nobody any more.
  }
  ::close(descriptor_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int ScreenSignals::take() {
  signalfd_siginfo info{};
  return ::read(descriptor_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))
             ? static_cast<int>(info.ssi_signo)
             : 0;
}

bool TerminalScreen::possible(const Console& console) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && console.output_is_terminal() &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

TerminalScreen::TerminalScreen(Console& console, ScreenSignals& signals) : console_(console), signals_(signals) {
  ::tcgetattr(STDIN_FILENO, &before_);
  enter();
}

TerminalScreen::~TerminalScreen() { leave(); }

void TerminalScreen::enter() {
  termios raw = before_;
  // Ctrl-C and Ctrl-Z stay signals; Ctrl-\ would end the program without giving the terminal back.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VQUIT] = _POSIX_VDISABLE;
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  console_.out(kEnter);
  console_.flush();
}

void TerminalScreen::leave() {
  console_.out(kLeave);
  console_.flush();
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

void TerminalScreen::suspend() {
  leave();
  ::kill(::getpid(), SIGSTOP);
  // Here it goes on; SIGCONT tells to show everything again.
}

TerminalScreen::Size TerminalScreen::size() const {
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return {};
  }
  return {window.ws_col, window.ws_row};
}

bool TerminalScreen::show(const std::vector<std::string>& lines) {
  // In place, so that nothing flickers; what is left of the last picture goes line by line.
  console_.out("\x1b[H");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    console_.out(lines[i]);
    console_.out(i + 1 < lines.size() ? "\x1b[K\n" : "\x1b[K");
  }
  console_.out("\x1b[J");
  console_.flush();
  return console_.writable();
}

void TerminalScreen::take_signals(Woken& woken) {
  for (int signal = signals_.take(); signal != 0; signal = signals_.take()) {
    switch (signal) {
      case SIGTSTP:
        suspend();
        break;
      case SIGCONT:
        enter();
        woken.resized = true;
        break;
      case SIGWINCH:
        woken.resized = true;
        break;
      default:
        woken.ended = true;
        break;
    }
  }
}

TerminalScreen::Woken TerminalScreen::wait(int descriptor, Duration time) {
  const auto limit = std::min<Duration>(time, std::chrono::hours(1));
  const int milliseconds = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(limit).count());
  std::array<pollfd, 3> watched{
      {{STDIN_FILENO, POLLIN, 0}, {signals_.descriptor(), POLLIN, 0}, {descriptor, POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), milliseconds);
  Woken woken;
  if ((watched[0].revents & POLLIN) != 0) {
    std::array<char, 256> bytes;
    const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    woken.bytes.assign(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    woken.ended = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  } else if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
    woken.ended = true;
  }
  take_signals(woken);
  return woken;
}

}  // namespace sluice::cli
