#include "tests/support/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

constexpr std::chrono::seconds kStartLimit(20);
constexpr int kProbeIntervalMs = 5;

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::runtime_error("cannot start a process for " + arguments.front());
  }
  if (pid_ == 0) {
    // Only async-signal-safe calls here.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, STDIN_FILENO);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
}

bool ChildProcess::wait_until_listening(int port) const {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
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

void ChildProcess::kill() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
}

}  // namespace sluice::test
