#include "host/runtime/service.hpp"

#include <pthread.h>

#include <system_error>

#include "base/guard.hpp"

namespace sluice::runtime {

namespace {

constexpr std::size_t kMaxThreadName = 15;

}  // namespace

Result<void> ServiceThread::start(std::function<void(std::stop_token)> loop) {
  const MutexLock lock(mutex_);
  if (stopped_ || state_ != State::idle) {
    return {};
  }
  try {
    thread_ = std::jthread([this, run = std::move(loop)](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), name_.substr(0, kMaxThreadName).c_str());
      run(stop);
      const MutexLock ending(mutex_);
      state_ = State::ended;
      ended_.notify_all();
    });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, "no thread " + name_ + ": " + error.code().message());
  }
  state_ = State::running;
  return {};
}

bool ServiceThread::running() {
  const MutexLock lock(mutex_);
  return state_ == State::running;
}

bool ServiceThread::ended() {
  const MutexLock lock(mutex_);
  return state_ == State::ended;
}

void ServiceThread::request_stop() {
  // The callbacks of a stop token take locks of their own, so that it is requested outside of ours.
  std::stop_source source(std::nostopstate);
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    source = thread_.get_stop_source();
  }
  source.request_stop();
}

bool ServiceThread::stop_until(SteadyTime time) {
  request_stop();
  const SteadyTime limit = SLUICE_GUARD(hung_call_left) ? time : SteadyTime::max();
  std::jthread over;
  {
    const MutexLock lock(mutex_);
    const bool ended =
        ended_.wait_until(mutex_, limit, [this]() SLUICE_REQUIRES(mutex_) { return state_ != State::running; });
    if (!ended) {
      return false;
    }
    over = std::move(thread_);
  }
  // All that is left of it is its return.
  return true;
}

}  // namespace sluice::runtime
