#include "host/isolation/trial_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/algorithm/string/split.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/text/visible.hpp"
#include "config/config.hpp"
#include "host/runtime/service.hpp"

namespace sluice::isolation {
namespace {

constexpr int kStepsDescriptor = 3;
constexpr int kLookMilliseconds = 20;
constexpr int kMostReads = 32;
/// What is kept of the child's stderr: its end.
constexpr std::size_t kSaidLimit = 4096;
constexpr std::size_t kQuoteLimit = 300;
/// What is tried is this very program.
constexpr const char* kProgram = "/proc/self/exe";
constexpr std::string_view kEnd = "end";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  boost::algorithm::split(lines, text, [](char c) { return c == '\n'; });
  return lines;
}

std::string last_line(const std::string& text) {
  return lines_of(text.substr(0, text.find_last_not_of("\n ") + 1)).back().substr(0, kQuoteLimit);
}

std::string cause_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "ended the process by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return "ended the process with exit code " + std::to_string(WEXITSTATUS(status));
}

/// The end of a pipe that is read, without waiting.
struct Listener {
  Descriptor descriptor;
  std::string text;

  void read() {
    std::array<char, 4096> buffer{};
    // As much as a pipe has at a time: one that is written to without end must not hold up the look at the time.
    for (int reads = 0; reads < kMostReads; ++reads) {
      const ssize_t got = ::read(descriptor.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        return;
      }
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
};

class Child {
 public:
  explicit Child(Trial trial) : trial_(std::move(trial)) {}

  std::optional<Error> start() {
    std::vector<std::string> words = trial_.words;
    words.insert(words.begin(), "sluice");
    words.insert(words.end(), {"--steps", std::to_string(kStepsDescriptor)});
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    std::array<int, 4> ends{-1, -1, -1, -1};
    const bool good = ::pipe2(ends.data(), O_CLOEXEC) == 0 && ::pipe2(ends.data() + 2, O_CLOEXEC) == 0;
    const Descriptor steps_writer(ends[1]);
    const Descriptor said_writer(ends[3]);
    steps_.descriptor = Descriptor(ends[0]);
    said_.descriptor = Descriptor(ends[2]);
    for (const Listener* listener : {&steps_, &said_}) {
      ::fcntl(listener->descriptor.get(), F_SETFL, O_NONBLOCK);
    }
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, said_writer.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, said_writer.get(), STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&files, steps_writer.get(), kStepsDescriptor);
    if (!trial_.folder.empty()) {
      posix_spawn_file_actions_addchdir_np(&files, trial_.folder.c_str());
    }
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    const int failed = good ? ::posix_spawn(&pid_, kProgram, &files, &attributes, arguments.data(), environ) : EMFILE;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0) {
      return Error(ErrorCode::unavailable, std::string("no process to try plugins in: ") + std::strerror(failed) +
                                               " (limits: " + runtime::thread_limits() + "); raise the limit");
    }
    return std::nullopt;
  }

  TrialEnd watch() {
    const SystemClock clock;
    std::size_t steps_seen = 0;
    SteadyTime deadline = clock.steady_now() + trial_.step_limit;
    int status = 0;
    while (true) {
      const bool ended = ::waitpid(pid_, &status, WNOHANG) == pid_;
      const bool interrupted = listen();
      if (steps_.text.size() > steps_seen) {
        steps_seen = steps_.text.size();
        deadline = clock.steady_now() + trial_.step_limit;
      }
      if (ended) {
        ::kill(-pid_, SIGKILL);  // What it may have started.
        return end_of(cause_of(status), false);
      }
      if (interrupted || clock.steady_now() >= deadline) {
        ::kill(-pid_, SIGKILL);
        ::waitpid(pid_, &status, 0);
        if (interrupted) {
          return {.step = {}, .cause = "was interrupted", .interrupted = true, .told = {}};
        }
        return end_of("did not return within " + config::format_duration(trial_.step_limit), true);
      }
    }
  }

 private:
  /// True once the interrupt has come.
  bool listen() {
    std::array<pollfd, 3> waits{pollfd{steps_.descriptor.get(), POLLIN, 0}, pollfd{said_.descriptor.get(), POLLIN, 0},
                                pollfd{trial_.interrupt, POLLIN, 0}};
    ::poll(waits.data(), waits.size(), kLookMilliseconds);
    steps_.read();
    said_.read();
    if (said_.text.size() > kSaidLimit) {
      said_.text.erase(0, said_.text.size() - kSaidLimit);
    }
    return waits[2].revents != 0;
  }

  TrialEnd end_of(std::string cause, bool timed_out) const {
    TrialEnd end;
    for (const std::string& line : lines_of(steps_.text)) {
      if (line.starts_with('\t')) {
        end.told.push_back(line.substr(1));
      } else if (!line.empty()) {
        end.step = line;
      }
    }
    if (end.step == kEnd) {
      end.step.clear();
      return end;
    }
    end.cause = std::move(cause);
    end.timed_out = timed_out;
    if (const std::string said = last_line(said_.text); !said.empty()) {
      end.cause += ", and said ";
      append_visible_json(end.cause, said);
    }
    return end;
  }

  const Trial trial_;
  Listener steps_;
  Listener said_;
  pid_t pid_ = -1;
};

}  // namespace

Result<TrialEnd> run_trial(Trial trial) {
  Child child(std::move(trial));
  if (auto failed = child.start()) {
    return *std::move(failed);
  }
  return child.watch();
}

TrialSteps::TrialSteps(int descriptor) : descriptor_(descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const struct rlimit no_core {};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // What a handler starts need not have it.
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
}

void TrialSteps::write(std::string_view begin, std::string_view rest) const {
  std::string line(begin);
  line.append(rest).append("\n");
  static_cast<void>(sluice::write_all(descriptor_, line));
}

void TrialSteps::end() const {
  next(kEnd);
  std::_Exit(0);
}

}  // namespace sluice::isolation
