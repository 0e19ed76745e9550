#include "host/runtime/host_events.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>

#include "base/guard.hpp"

namespace sluice::runtime {

void HostEvents::signal(int number) {
  if (number != SIGHUP) {
    terminate(Repeat::yes);
    return;
  }
  {
    const MutexLock lock(mutex_);
    reload_ = true;
  }
  wake();
}

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

SignalWatcher::SignalWatcher(HostEvents& events) : events_(events), signals_(open_signals()) {
  SLUICE_ASSERT(signals_.open() && wake_.descriptor() >= 0);
}

Result<void> SignalWatcher::start() {
  return thread_.start([this](const std::stop_token&) { watch(); });
}

void SignalWatcher::stop() {
  wake_.ring();
  thread_.stop();
}

void SignalWatcher::watch() {
  std::array<pollfd, 2> waits{pollfd{signals_.get(), POLLIN, 0}, pollfd{wake_.descriptor(), POLLIN, 0}};
  while (true) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if ((waits[1].revents & POLLIN) != 0) {
      return;
    }
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
      events_.signal(static_cast<int>(info.ssi_signo));
    }
  }
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
    events_.wake();
  }
}

void Errand::finish() {
  std::optional<Rest> rest;
  {
    const MutexLock lock(mutex_);
    rest = std::exchange(rest_, std::nullopt);
    under_way_ = under_way_ && !rest;
  }
  if (rest) {
    (*rest)();
  }
}

bool Errand::carry_out(Work work) {
  send(std::move(work));
  while (under_way() && !(events_.terminating() && SLUICE_GUARD(hung_errand_left))) {
    events_.wait_until(SteadyTime::max());
    finish();
  }
  finish();  // a signal came just as it ended
  return !under_way();
}

bool Watchdog::begin_last_words(int status) {
  const MutexLock lock(mutex_);
  if (due_) {
    return false;
  }
  said_by_host_ = true;
  status_ = status;
  return true;
}

void Watchdog::watch(const std::stop_token& stop) {
  int status = kUnknownStatus;
  {
    const MutexLock lock(mutex_);
    // Again after each wait, because the time may have been brought forward.
    while (!stop.stop_requested() && std::chrono::steady_clock::now() < end_) {
      const SteadyTime end = end_;
      watched_.wait_until(mutex_, stop, end, [this, end]() SLUICE_NO_TSA { return end_ != end; });
    }
    if (stop.stop_requested()) {
      return;
    }
    if (!said_by_host_) {
      due_ = true;
      spoken_to_.notify_all();
      watched_.wait_until(mutex_, stop, std::chrono::steady_clock::now() + kLastWordsTime,
                          [this]() SLUICE_NO_TSA { return said_; });
    }
    status = status_.value_or(kUnknownStatus);
  }
  if (SLUICE_GUARD(drain_bound)) {
    leave_(status);
  }
}

void Watchdog::speak(const std::stop_token& stop) {
  LastWords words;
  {
    const MutexLock lock(mutex_);
    if (!spoken_to_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return due_; })) {
      return;
    }
    words = words_;
  }
  try {
    const Ending ending = words ? words() : Ending();
    {
      const MutexLock lock(mutex_);
      status_ = ending.status;
    }
    if (ending.say) {
      ending.say();
    }
  } catch (const std::exception&) {
    // Without memory there are no words; the end comes all the same.
  }
  {
    const MutexLock lock(mutex_);
    said_ = true;
  }
  watched_.notify_all();
}

}  // namespace sluice::runtime
