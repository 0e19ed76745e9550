#include "host/runtime/init_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace sluice::runtime {
namespace {

constexpr int kInternal = 70;
constexpr int kSignalled = 128;

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status); }

/// Reaps whatever has ended. True when the host is among it, with its status.
bool reap(pid_t host, int& host_status) {
  int status = 0;
  bool host_ended = false;
  for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended == host) {
      host_status = status;
      host_ended = true;
    }
  }
  return host_ended;
}

int attend(pid_t host, const sigset_t& signals) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) {
      return kInternal;
    }
    int status = 0;
    if (signal != SIGCHLD) {
      kill(host, signal);
    } else if (reap(host, status)) {
      return exit_code(status);
    }
  }
}

}  // namespace

int run_below_init(const std::function<int()>& body) {
  if (getpid() != 1) {
    return body();
  }
  sigset_t signals;
  sigset_t before;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, signal);
  }
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t host = fork();
  if (host < 0) {
    std::fprintf(stderr, "sluice: cannot start the host below process 1: %s\n", std::strerror(errno));
    return kInternal;
  }
  if (host == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return body();
  }
  return attend(host, signals);
}

}  // namespace sluice::runtime
