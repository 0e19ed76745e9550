#include "host/isolation/runner_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/guard.hpp"
#include "host/isolation/futex.hpp"

namespace sluice::isolation {
namespace {

/// Above what the descriptors are moved to.
constexpr int kAside = 16;
constexpr int kCannotStart = 127;

/// Everything between fork and exec: only calls that are safe there.
[[noreturn]] void become_runner(const RunnerBirth& birth, char* const* arguments, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SLUICE_GUARD(runner_dies_with_host) ? SIGKILL : 0);
  if (::getppid() != parent) {
    ::_exit(kCannotStart);
  }
  const int adjust = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (adjust >= 0) {
    static_cast<void>(::write(adjust, "1000", 4) < 0);
  }
  const int control = ::fcntl(birth.control->descriptor(), F_DUPFD, kAside);
  const int parcel = ::fcntl(birth.parcel, F_DUPFD, kAside);
  const int plugin = ::fcntl(birth.plugin_file, F_DUPFD, kAside);
  ::dup2(control, kControlDescriptor);
  ::dup2(parcel, kParcelDescriptor);
  ::dup2(plugin, kPluginDescriptor);
  ::syscall(SYS_close_range, kPluginDescriptor + 1, ~0U, 0);
  // As handlers in the host have it: what ends the host by its own rules is not theirs to take.
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  ::execv("/proc/self/exe", arguments);
  ::_exit(kCannotStart);
}

}  // namespace

Result<std::shared_ptr<RunnerProcess>> RunnerProcess::make(const RunnerBirth& birth) {
  std::string name = "sluice";
  std::string word = kRunnerWord;
  std::string job = birth.job;
  const std::array<char*, 4> arguments{name.data(), word.data(), job.data(), nullptr};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    become_runner(birth, arguments.data(), parent);
  }
  const int descriptor = pid < 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  if (descriptor < 0) {
    const int code = errno;
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    return Error(ErrorCode::unavailable,
                 "no process for a handler of job '" + birth.job + "' can be made: " + std::strerror(code));
  }
  return std::shared_ptr<RunnerProcess>(new RunnerProcess(pid, descriptor, birth.control));
}

RunnerProcess::~RunnerProcess() { ::close(descriptor_); }

void RunnerProcess::signal(int number) const { ::syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0); }

std::optional<Duration> RunnerProcess::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return std::nullopt;
  }
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool RunnerProcess::reap() {
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0) {
    return false;
  }
  if (reaped == pid_) {
    status_.store(status);
  }
  auto& control = *reinterpret_cast<RunnerControl*>(control_->data());
  control.ended.store(1);
  control.events.fetch_add(1);
  futex_wake(control.events);
  return true;
}

std::optional<int> RunnerProcess::status() const {
  const int status = status_.load();
  return status < 0 ? std::nullopt : std::optional(status);
}

}  // namespace sluice::isolation
