#include "host/runtime/host_events.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

#include "base/assert.hpp"
#include "base/guard.hpp"

namespace sluice::runtime {

void HostEvents::signal(int number) {
  if (number != SIGHUP) {
    terminate(Repeat::yes);
    return;
  }
  {
    const MutexLock lock(mutex_);
    seen_ = false;
    reload_ = true;
  }
  changed_.notify_all();
}

bool HostEvents::ask_drain() { return terminate(Repeat::no); }

bool HostEvents::terminate(Repeat repeat) {
  std::function<void(int)> action;
  int nth = 0;
  {
    const MutexLock lock(mutex_);
    if (repeat == Repeat::no && terminations_ > 0) {
      return false;
    }
    seen_ = false;
    nth = ++terminations_;
    action = action_;
    ++acting_;
  }
  // First of all: it bounds the end, and whoever waits below may hang.
  if (action) {
    action(nth);
  }
  {
    const MutexLock lock(mutex_);
    --acting_;
  }
  changed_.notify_all();
  return true;
}

void HostEvents::on_termination(std::function<void(int nth)> action) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return acting_ == 0; });
  action_ = std::move(action);
}

void HostEvents::wake() {
  {
    const MutexLock lock(mutex_);
    seen_ = false;
  }
  changed_.notify_all();
}

void HostEvents::wait_until(SteadyTime time) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, time, [this]() SLUICE_NO_TSA { return !seen_; });
  seen_ = true;
}

bool HostEvents::terminating() const {
  const MutexLock lock(mutex_);
  return terminations_ > 0;
}

bool HostEvents::hard_stop_requested() const {
  const MutexLock lock(mutex_);
  return terminations_ > 1;
}

bool HostEvents::take_reload() {
  const MutexLock lock(mutex_);
  return std::exchange(reload_, false);
}

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
  SLUICE_ASSERT(signals_.open() && wake_.open());
}

SignalWatcher::~SignalWatcher() { stop(); }

Result<void> SignalWatcher::start() {
  return thread_.start([this](const std::stop_token&) { watch(); });
}

void SignalWatcher::stop() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof(one));
  thread_.stop();
}

void SignalWatcher::watch() {
  std::array<pollfd, 2> waits{pollfd{signals_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  while (true) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if ((waits[1].revents & POLLIN) != 0) {
      return;
    }
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      on_signal_(static_cast<int>(info.ssi_signo));
    }
  }
}

void Errand::send(Work work) {
  {
    const MutexLock lock(mutex_);
    SLUICE_ASSERT(!under_way_);
    under_way_ = true;
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool Errand::wait_for(Duration span) {
  const MutexLock lock(mutex_);
  changed_.wait_until(mutex_, stop_, std::chrono::steady_clock::now() + span, [] { return false; });
  return !stop_.stop_requested();
}

bool Errand::under_way() const {
  const MutexLock lock(mutex_);
  return under_way_;
}

std::optional<Errand::Rest> Errand::take() {
  const MutexLock lock(mutex_);
  if (!rest_) {
    return std::nullopt;
  }
  under_way_ = false;
  return std::exchange(rest_, std::nullopt);
}

void Errand::run(const std::stop_token& stop) {
  stop_ = stop;
  while (true) {
    Work work;
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return work_.has_value(); })) {
        return;
      }
      work = std::move(*work_);
      work_.reset();
    }
    Rest rest = work();
    {
      const MutexLock lock(mutex_);
      rest_ = std::move(rest);
    }
    done_();
  }
}

}  // namespace sluice::runtime
