#include "host/runtime/watchdog.hpp"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/guard.hpp"

namespace sluice::runtime {

Watchdog::Watchdog(Leave leave) : leave_(std::move(leave)) {}

Watchdog::~Watchdog() { stop(); }

Result<void> Watchdog::start() {
  SLUICE_PASS_ON(speaker_.start([this](const std::stop_token& stop) { speak(stop); }));
  return watcher_.start([this](const std::stop_token& stop) { watch(stop); });
}

void Watchdog::stop() {
  watcher_.stop();
  speaker_.stop();
}

void Watchdog::set_last_words(LastWords words) {
  const MutexLock lock(mutex_);
  words_ = std::move(words);
}

void Watchdog::end_by(SteadyTime time) {
  {
    const MutexLock lock(mutex_);
    end_ = std::min(end_, time);
  }
  watched_.notify_all();
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
