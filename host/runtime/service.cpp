#include "host/runtime/service.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <latch>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"
#include "base/guard.hpp"
#include "base/signal_block.hpp"
#include "base/text/joined.hpp"

namespace sluice::runtime {

namespace {

constexpr std::size_t kMaxThreadName = 15;

constexpr std::size_t kOwnThreads = 3;
constexpr rlim_t kMebibyte = 1024 * 1024;

/// The limit on processes and threads of the container that this process is in; empty without one.
std::string container_limit() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) {
      continue;
    }
    // A container with a namespace of its own sees its group as the root.
    std::ifstream file("/sys/fs/cgroup" + line.substr(3) + "/pids.max");
    std::string limit;
    return file >> limit && limit != "max" ? limit : "";
  }
  return "";
}

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
    return Error(ErrorCode::unavailable,
                 "no thread " + name_ + ": " + error.code().message() + " (limits: " + thread_limits() + ")");
  }
  state_ = State::running;
  return {};
}

bool ServiceThread::running() const {
  const MutexLock lock(mutex_);
  return state_ == State::running;
}

bool ServiceThread::ended() const {
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

Result<void> RepeatingService::start() {
  const SignalBlock block;
  return thread_.start([this](const std::stop_token& stop) { run(stop); });
}

void RepeatingService::begin_leave(SteadyTime limit) {
  end_by_ = std::min({end_by_.load(), limit, clock_.steady_now() + kFarewellTime});
  thread_.request_stop();
}

bool RepeatingService::leave(SteadyTime limit) {
  begin_leave(limit);
  return thread_.stop_until(limit);
}

void RepeatingService::wake() {
  const MutexLock lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void RepeatingService::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      const MutexLock lock(mutex_);
      woken_ = false;
    }
    const SteadyTime next = step(stop);
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.machine_time(next), [this]() SLUICE_REQUIRES(mutex_) { return woken_; });
  }
  end();
}

std::size_t threads_of(std::uint32_t concurrency) { return concurrency + kOwnThreads; }

Result<void> room_for_threads(std::size_t count) {
  if (count == 0 || !SLUICE_GUARD(thread_creation_failure)) {
    return {};
  }
  std::latch gate(1);
  std::vector<std::jthread> threads;
  threads.reserve(count);
  Result<void> room;
  try {
    while (threads.size() < count) {
      threads.emplace_back([&gate] { gate.wait(); });
    }
  } catch (const std::system_error& error) {
    room = Error(ErrorCode::invalid, "the system gives this process " + std::to_string(threads.size()) +
                                         " more threads, and " + std::to_string(count) + " are needed (" +
                                         error.code().message() + "; limits: " + thread_limits() +
                                         "): raise the limit, or lower concurrency");
  }
  gate.count_down();
  return room;
}

Result<void> room_for_descriptors(std::size_t count) {
  std::vector<Descriptor> opened;
  opened.reserve(count);
  while (opened.size() < count) {
    opened.emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (opened.back().open()) {
      continue;
    }
    const std::string why = std::generic_category().message(errno);
    struct rlimit limit {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return Error(ErrorCode::invalid, "the system gives this process " + std::to_string(opened.size() - 1) +
                                         " more descriptors, and " + std::to_string(count) + " are needed (" + why +
                                         "); raise the limit on open files (ulimit -n), which is " +
                                         std::to_string(limit.rlim_cur));
  }
  return {};
}

std::string thread_limits() {
  std::vector<std::string> limits;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    limits.push_back("address space " + std::to_string(limit.rlim_cur / kMebibyte) + " MiB (ulimit -v)");
  }
  // The stacks of threads are data too.
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    limits.push_back("data " + std::to_string(limit.rlim_cur / kMebibyte) + " MiB (ulimit -d)");
  }
  if (::getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    limits.push_back("processes and threads of this user " + std::to_string(limit.rlim_cur) + " (ulimit -u)");
  }
  if (const std::string container = container_limit(); !container.empty()) {
    limits.push_back("processes and threads of this container " + container + " (pids.max)");
  }
  return limits.empty() ? "none but the system's own" : joined(limits);
}

}  // namespace sluice::runtime
