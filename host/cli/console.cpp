#include "host/cli/console.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "base/assert.hpp"
#include "base/descriptor.hpp"
#include "base/text/visible.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << static_cast<unsigned>(signal); }

/// Of the progress line that stands on the process's terminal; 0: none does.
std::atomic<std::size_t> progress_width{0};

// What a signal handler may touch: lock-free flags, a bit for each signal, and a descriptor.
std::atomic<std::uint64_t> raised_signals{0};
std::atomic<int> raised_event{-1};

extern "C" void on_signal(int signal) {
  const int saved = errno;
  raised_signals |= bit_of(signal);
  const std::uint64_t one = 1;
  const auto ignored = ::write(raised_event, &one, sizeof(one));
  static_cast<void>(ignored);
  errno = saved;
}

/// False when the wait was interrupted.
bool wait_for_input(const InterruptFlag& interrupt) {
  std::array<pollfd, 2> events{{{STDIN_FILENO, POLLIN, 0}, {interrupt.descriptor(), POLLIN, 0}}};
  while (::poll(events.data(), events.size(), -1) < 0 && errno == EINTR) {
  }
  return events[1].revents == 0;
}

/// A line from standard input, without its break; empty when it does not come to one.
std::string read_answer(const InterruptFlag& interrupt) {
  constexpr std::size_t kLongest = 16;
  std::string answer;
  char byte = 0;
  while (wait_for_input(interrupt) && ::read(STDIN_FILENO, &byte, 1) == 1) {
    if (byte == '\n') {
      return answer;
    }
    if (answer.size() < kLongest) {
      answer += byte;
    }
  }
  return {};
}

}  // namespace

void Console::out(std::string_view text) {
  if (!writable()) {
    return;
  }
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void Console::flush() {
  if (failure_ == 0 && !write_all(STDOUT_FILENO, buffer_)) {
    failure_ = errno;
  }
  buffer_.clear();
}

void Console::note(std::string_view line) {
  end_progress();
  // Other lines may end in a command to be copied.
  const bool wraps = line.starts_with("warning: ") && error_is_terminal() && !wide_;
  const std::string text = visible(line) + "\n";
  write_all(STDERR_FILENO, wraps ? wrapped(text, {.columns = terminal_size(STDERR_FILENO).columns}) : text);
}

void Console::error_text(std::string_view text) {
  end_progress();
  std::string visible;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\n\t"), text.size());
    append_visible(visible, text.substr(0, end));
    if (end < text.size()) {
      visible += text[end];
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  write_all(STDERR_FILENO, visible);
}

void Console::progress(std::string_view line) {
  if (!error_is_terminal()) {
    return;
  }
  // In the last column the cursor would go on to the next line, and \r no further back than to its begin.
  const std::string shown = fit_line(visible(line), terminal_size(STDERR_FILENO).columns - 1);
  const std::size_t width = display_width(shown);
  const std::size_t before = progress_width.exchange(width);
  write_all(STDERR_FILENO, "\r" + shown + std::string(before - std::min(before, width), ' '));
}

void Console::end_progress() {
  if (const std::size_t width = progress_width.exchange(0); width > 0) {
    write_all(STDERR_FILENO, "\r" + std::string(width, ' ') + "\r");
  }
}

bool Console::confirm(std::string_view question) {
  flush();
  // Before the question is seen, so that no Ctrl-C is lost; whichever thread gets it, it ends the question, and is
  // handed on to whoever handles it otherwise.
  std::optional<InterruptFlag> interrupt(std::in_place);
  write_all(STDERR_FILENO, visible(question) + " [y/N] ");
  const std::string answer = read_answer(*interrupt);
  interrupt.reset();
  for (const int signal : {SIGINT, SIGTERM}) {
    if ((raised_signals & bit_of(signal)) != 0) {
      ::raise(signal);
    }
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

bool Console::interactive() const { return ::isatty(STDIN_FILENO) == 1 && error_is_terminal(); }

bool Console::error_is_terminal() const { return ::isatty(STDERR_FILENO) == 1; }

bool Console::output_is_terminal() const { return ::isatty(STDOUT_FILENO) == 1; }

bool Console::output_has_colour() const {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return output_is_terminal() && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

Screen Console::screen() const {
  return {output_has_colour(), output_is_terminal() && !wide_ ? terminal_size(STDOUT_FILENO).columns : 0};
}

TerminalSize terminal_size(int descriptor) {
  winsize window{};
  if (::ioctl(descriptor, TIOCGWINSZ, &window) != 0 || window.ws_col == 0 || window.ws_row == 0) {
    return {};
  }
  return {window.ws_col, window.ws_row};
}

SignalAction::SignalAction(int signal, void (*handler)(int), int flags) : signal_(signal) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, &before_);
}

InterruptFlag::InterruptFlag(std::initializer_list<int> others) {
  SLUICE_ASSERT(raised_event == -1);
  raised_signals = 0;
  raised_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // Without SA_RESTART a blocking read ends; with SA_RESETHAND the second signal is the system's.
  for (const int signal : {SIGINT, SIGTERM}) {
    actions_.emplace_back(signal, on_signal, static_cast<int>(SA_RESETHAND));
  }
  for (const int signal : others) {
    actions_.emplace_back(signal, on_signal);
  }
}

InterruptFlag::~InterruptFlag() {
  actions_.clear();
  ::close(raised_event.exchange(-1));
}

bool InterruptFlag::raised() const { return (raised_signals & (bit_of(SIGINT) | bit_of(SIGTERM))) != 0; }

bool InterruptFlag::take(int signal) const { return (raised_signals.fetch_and(~bit_of(signal)) & bit_of(signal)) != 0; }

void InterruptFlag::hush() const {
  std::uint64_t rings = 0;
  static_cast<void>(::read(raised_event, &rings, sizeof(rings)) < 0);
}

bool InterruptFlag::wait(Duration time) const {
  constexpr std::int64_t kLongest = 3'600'000;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(time).count();
  pollfd watched{descriptor(), POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, kLongest)));
  return !raised();
}

int InterruptFlag::descriptor() const { return raised_event; }

}  // namespace sluice::cli
