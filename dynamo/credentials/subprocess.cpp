#include "dynamo/credentials/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <system_error>

#include "base/descriptor.hpp"

extern char** environ;

namespace sluice::dynamo {
namespace {

Error failed(const std::string& program, const std::string& what) {
  return {ErrorKind::no_credentials, "the program " + program + " " + what};
}

std::string reason(int number) { return std::generic_category().message(number); }

/// How a program is started: in a process group of its own, with a clean signal mask, whatever the host's threads
/// block.
class SpawnAttributes {
 public:
  explicit SpawnAttributes(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t defaults;
    ::sigemptyset(&defaults);
    for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) {
      ::sigaddset(&defaults, signal);
    }
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
  }
  ~SpawnAttributes() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// True when `fd` has something to read, or its end, before the deadline.
bool wait_readable(int fd, const Clock& clock, Deadline deadline) {
  for (;;) {
    const Duration left = deadline.left(clock.steady_now());
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    pollfd waited{fd, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<long long>(ms, INT_MAX)));
    if (ready > 0) {
      return true;
    }
    if (ready < 0 && errno != EINTR) {
      return false;
    }
    if (ready == 0) {
      return false;
    }
  }
}

/// Reads to the end of the output. An Error when it is too long or does not end in time.
Result<std::string> read_output(int fd, const std::string& program, std::size_t max_output, const Clock& clock,
                                Deadline deadline) {
  std::string output;
  std::array<char, 4096> buffer{};
  while (wait_readable(fd, clock, deadline)) {
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return failed(program, "cannot be read from: " + reason(errno));
    }
    if (count == 0) {
      return output;
    }
    output.append(buffer.data(), static_cast<std::size_t>(count));
    if (output.size() > max_output) {
      return failed(program, "writes more than " + std::to_string(max_output) + " bytes");
    }
  }
  return failed(program, "takes too long");
}

/// Waits for the end. Where a host that runs as process 1 has reaped it already, only its output can be judged.
Result<void> wait_for_end(pid_t pid, const std::string& program, const Clock& clock, Deadline deadline) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.open() && !wait_readable(process.get(), clock, deadline)) {
    return failed(program, "takes too long");
  }
  int status = 0;
  pid_t ended = -1;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended == pid && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    return failed(program, WIFEXITED(status) ? "failed with exit code " + std::to_string(WEXITSTATUS(status))
                                             : "was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  return {};
}

void kill_group(pid_t pid) {
  ::kill(-pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

Result<std::vector<std::string>> split_command(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool more = i + 1 < text.size();
    if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) {
        out.push_back(std::move(word));
        word.clear();
      }
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && more && (quote == '\0' || (quote == '"' && (text[i + 1] == '"' || text[i + 1] == '\\')))) {
      word += text[++i];
    } else {
      word += c;
    }
  }
  if (quote != '\0') {
    return no_credentials("the command has a quote that does not end");
  }
  if (in_word) {
    out.push_back(std::move(word));
  }
  return out;
}

Result<std::string> run_program(const std::vector<std::string>& arguments, std::size_t max_output, const Clock& clock,
                                Deadline deadline) {
  if (arguments.empty()) {
    return no_credentials("the command is empty");
  }
  const std::string& program = arguments.front();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return failed(program, "cannot be started: " + reason(errno));
  }
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const auto& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const SpawnAttributes how(input.get());
  pid_t pid = -1;
  if (const int failure =
          ::posix_spawnp(&pid, program.c_str(), how.actions(), how.attributes(), argv.data(), environ)) {
    return failed(program, "cannot be started: " + reason(failure));
  }
  input.close();
  auto text = read_output(output.get(), program, max_output, clock, deadline);
  if (text) {
    const auto ended = wait_for_end(pid, program, clock, deadline);
    if (ended) {
      return text;
    }
    text = ended.error();
  }
  kill_group(pid);
  return text;
}

}  // namespace sluice::dynamo
