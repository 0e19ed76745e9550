#include "host/runtime/trial_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text/visible.hpp"
#include "host/runtime/thread_room.hpp"

extern char** environ;

namespace sluice::runtime {
namespace {

constexpr int kStepsDescriptor = 3;
constexpr int kLookMilliseconds = 20;
/// What is kept of the child's stderr: its end.
constexpr std::size_t kSaidLimit = 4096;
constexpr std::size_t kQuoteLimit = 300;

/// A pipe whose reading end does not block and whose ends are closed with it.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
      reader_ = Descriptor(ends[0]);
      writer_ = Descriptor(ends[1]);
      ::fcntl(reader(), F_SETFL, O_NONBLOCK);
    }
  }

  bool good() const { return reader_.open(); }
  int reader() const { return reader_.get(); }
  int writer() const { return writer_.get(); }
  void close_writer() { writer_.close(); }

  /// Appends what is there to `text`.
  void read_into(std::string& text) const {
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = ::read(reader(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

 private:
  Descriptor reader_;
  Descriptor writer_;
};

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  const std::size_t begin = text.rfind('\n');
  return std::string(text.substr(begin == std::string_view::npos ? 0 : begin + 1).substr(0, kQuoteLimit));
}

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "ended the process by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return "ended the process with exit code " + std::to_string(WEXITSTATUS(status));
}

/// The child while it runs. Nothing of it is left at the end of the scope.
class TrialChild {
 public:
  std::optional<Error> start(const std::string& program, std::vector<std::string> words);
  TrialEnd watch(Duration limit);

 private:
  void listen();
  void kill_all() const { ::kill(-pid_, SIGKILL); }

  Pipe steps_;
  Pipe said_;
  pid_t pid_ = -1;
  std::string step_text_;
  std::string said_text_;
};

std::optional<Error> TrialChild::start(const std::string& program, std::vector<std::string> words) {
  words.insert(words.begin(), "sluice");
  words.insert(words.end(), {"--steps", std::to_string(kStepsDescriptor)});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, said_.writer(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, said_.writer(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&files, steps_.writer(), kStepsDescriptor);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const int failed = steps_.good() && said_.good()
                         ? ::posix_spawn(&pid_, program.c_str(), &files, &attributes, arguments.data(), environ)
                         : EMFILE;
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  steps_.close_writer();
  said_.close_writer();
  if (failed != 0) {
    return Error(ErrorCode::unavailable, std::string("no process to try plugins in: ") + std::strerror(failed) +
                                             " (limits: " + thread_limits() + "); raise the limit");
  }
  return std::nullopt;
}

void TrialChild::listen() {
  std::array<pollfd, 2> waits{pollfd{steps_.reader(), POLLIN, 0}, pollfd{said_.reader(), POLLIN, 0}};
  ::poll(waits.data(), waits.size(), kLookMilliseconds);
  steps_.read_into(step_text_);
  said_.read_into(said_text_);
  if (said_text_.size() > kSaidLimit) {
    said_text_.erase(0, said_text_.size() - kSaidLimit);
  }
}

TrialEnd TrialChild::watch(Duration limit) {
  TrialEnd end;
  std::size_t steps_seen = 0;
  auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (true) {
    const bool ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
    listen();
    if (step_text_.size() > steps_seen) {
      steps_seen = step_text_.size();
      deadline = std::chrono::steady_clock::now() + limit;
    }
    if (ended) {
      kill_all();  // What it may have started.
      end.cause = cause_of(status);
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      kill_all();
      ::waitpid(pid_, &status, 0);
      end.cause = "did not return within " +
                  std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s";
      break;
    }
  }
  end.step = last_line(step_text_);
  if (end.step == "end") {
    return {};
  }
  if (const std::string said = last_line(said_text_); !said.empty()) {
    end.cause += ", and said ";
    append_visible_json(end.cause, said);
  }
  return end;
}

}  // namespace

Result<TrialEnd> run_trial_child(const std::string& program, const std::vector<std::string>& words, Duration limit) {
  TrialChild child;
  if (auto failed = child.start(program, words)) {
    return *failed;
  }
  return child.watch(limit);
}

}  // namespace sluice::runtime
