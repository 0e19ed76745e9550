#include "host/runtime/signal_watcher.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/guard.hpp"

namespace sluice::runtime {
namespace {

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&set, signal);
  }
  return set;
}

int open_signals() {
  const sigset_t set = watched_signals();
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

void SignalWatcher::block_signals() {
  const sigset_t set = watched_signals();
  const int blocked = pthread_sigmask(SIG_BLOCK, &set, nullptr);
  SLUICE_ASSERT(blocked == 0);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SLUICE_GUARD(file_size_signal) ? SIG_IGN : SIG_DFL);
}

SignalWatcher::SignalWatcher(OnSignal on_signal)
    : on_signal_(std::move(on_signal)), signals_(open_signals()), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLUICE_ASSERT(signals_ >= 0 && wake_ >= 0);
}

SignalWatcher::~SignalWatcher() {
  stop();
  close(signals_);
  close(wake_);
}

Result<void> SignalWatcher::start() {
  try {
    thread_ = std::jthread([this] { watch(); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, "cannot make a thread: " + error.code().message());
  }
  return {};
}

void SignalWatcher::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof(one));
  const MutexLock lock(stopping_);
  if (thread_.joinable()) {
    thread_.join();
  }
}

void SignalWatcher::watch() {
  pthread_setname_np(pthread_self(), "signals");
  std::array<pollfd, 2> waits{pollfd{signals_, POLLIN, 0}, pollfd{wake_, POLLIN, 0}};
  while (true) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if ((waits[1].revents & POLLIN) != 0) {
      return;
    }
    signalfd_siginfo info{};
    while (read(signals_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      on_signal_(static_cast<int>(info.ssi_signo));
    }
  }
}

}  // namespace sluice::runtime
