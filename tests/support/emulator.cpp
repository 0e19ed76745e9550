#include "tests/support/emulator.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

constexpr int kStartAttempts = 5;  // another process may take the free port before the emulator does
constexpr std::chrono::seconds kStartLimit(20);
constexpr int kProbeIntervalMs = 5;

const std::string& built_in_path() {
#ifdef SLUICE_EMULATOR
  static const std::string path = SLUICE_EMULATOR;
#else
  static const std::string path = SLUICE_SOURCE_DIR "/build/emulator/node_modules/@dynoxide/linux-x64/dynoxide";
#endif
  return path;
}

pid_t spawn(const std::string& program, const Emulator::Options& options, int port) {
  const std::string port_text = std::to_string(port);
  std::vector<const char*> arguments = {program.c_str(), "--host", "127.0.0.1", "--port", port_text.c_str()};
  if (!options.database.empty()) {
    arguments.insert(arguments.end(), {"--db-path", options.database.c_str()});
  }
  arguments.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) {
    return pid;
  }
  // Only async-signal-safe calls here. A test that crashes must not leave its emulator behind.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  ::execv(program.c_str(), const_cast<char* const*>(arguments.data()));
  ::_exit(127);
}

/// True once the port answers; false when the process ended or the limit passed first.
bool wait_until_up(pid_t pid, int port) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const auto limit = std::chrono::steady_clock::now() + kStartLimit;
  while (std::chrono::steady_clock::now() < limit) {
    pollfd ended{process.get(), POLLIN, 0};
    if (::poll(&ended, 1, kProbeIntervalMs) > 0) {
      return false;
    }
    if (connect_to_loopback(port)) {
      return true;
    }
  }
  return false;
}

void end(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

}  // namespace

std::optional<std::string> Emulator::program() {
  const char* named = std::getenv("SLUICE_EMULATOR");
  const std::string path = named != nullptr && *named != '\0' ? named : built_in_path();
  return ::access(path.c_str(), X_OK) == 0 ? std::optional(path) : std::nullopt;
}

std::string Emulator::absence() {
  return "the DynamoDB emulator is not at " + built_in_path() + "; run ./dev deps, or name it in SLUICE_EMULATOR";
}

std::unique_ptr<Emulator> Emulator::start(const Options& options) {
  const auto path = program();
  if (!path) {
    return nullptr;
  }
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    const int port = free_loopback_port();
    const pid_t pid = spawn(*path, options, port);
    if (pid < 0) {
      throw std::runtime_error("cannot start a process for " + *path);
    }
    if (wait_until_up(pid, port)) {
      return std::unique_ptr<Emulator>(new Emulator(pid, port));
    }
    end(pid);
  }
  throw std::runtime_error(*path + " does not come up");
}

Emulator::Emulator(pid_t pid, int port)
    : pid_(pid), port_(port), endpoint_("http://127.0.0.1:" + std::to_string(port)) {}

Emulator::~Emulator() { kill(); }

void Emulator::kill() {
  if (pid_ > 0) {
    end(pid_);
    pid_ = -1;
  }
}

}  // namespace sluice::test
