#include "host/cli/console.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/assert.hpp"
#include "host/observe/escape.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

/// 0, or errno of what stopped it.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void Console::out(std::string_view text) {
  if (failure_ != 0) {
    return;
  }
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) {
    flush();
  }
}

void Console::flush() {
  if (failure_ == 0) {
    failure_ = write_all(STDOUT_FILENO, buffer_);
  }
  buffer_.clear();
}

void Console::note(std::string_view line) {
  end_progress();
  std::string text;
  observe::append_visible(text, line);
  text += '\n';
  write_all(STDERR_FILENO, text);
}

void Console::progress(std::string_view line) {
  if (!error_is_terminal()) {
    return;
  }
  std::string text = "\r";
  text += line;
  if (line.size() < progress_width_) {
    text.append(progress_width_ - line.size(), ' ');
  }
  progress_width_ = line.size();
  write_all(STDERR_FILENO, text);
}

void Console::end_progress() {
  if (progress_width_ > 0) {
    write_all(STDERR_FILENO, "\n");
    progress_width_ = 0;
  }
}

bool Console::confirm(std::string_view question) {
  flush();
  write_all(STDERR_FILENO, std::string(question) + " [y/N] ");
  std::string answer;
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) == 1 && byte != '\n' && answer.size() < 16) {
    answer += byte;
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

bool Console::interactive() const { return ::isatty(STDIN_FILENO) == 1 && error_is_terminal(); }

bool Console::error_is_terminal() const { return ::isatty(STDERR_FILENO) == 1; }

namespace {

// What a signal handler may touch: a lock-free flag and a descriptor.
std::atomic<bool> raised_flag{false};
std::atomic<int> raised_event{-1};
constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};
std::array<struct sigaction, kSignals.size()> previous_actions;

extern "C" void on_interrupt(int) {
  const int saved = errno;
  raised_flag = true;
  const std::uint64_t one = 1;
  const auto ignored = ::write(raised_event, &one, sizeof(one));
  static_cast<void>(ignored);
  errno = saved;
}

}  // namespace

InterruptFlag::InterruptFlag() {
  SLUICE_ASSERT(raised_event == -1);
  raised_flag = false;
  raised_event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // Without SA_RESTART a blocking read ends; with SA_RESETHAND the second signal is the system's.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t index = 0; index < kSignals.size(); ++index) {
    ::sigaction(kSignals[index], &action, &previous_actions[index]);
  }
}

InterruptFlag::~InterruptFlag() {
  for (std::size_t index = 0; index < kSignals.size(); ++index) {
    ::sigaction(kSignals[index], &previous_actions[index], nullptr);
  }
  ::close(raised_event.exchange(-1));
}

bool InterruptFlag::raised() const { return raised_flag; }

int InterruptFlag::descriptor() const { return raised_event; }

}  // namespace sluice::cli
