#include "host/isolation/runner_spawner.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/signal_block.hpp"
#include "host/isolation/state_file_error.hpp"

namespace sluice::isolation {
namespace {

/// A handler's destructor may flush something.
constexpr Duration kRetireTime = std::chrono::seconds(5);
/// The same once the host itself ends, and its own time is running out.
constexpr Duration kLastTime = std::chrono::seconds(1);

}  // namespace

RunnerSpawner::RunnerSpawner() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RunnerSpawner::~RunnerSpawner() {
  stop();
  ::close(bell_);
}

Result<void> RunnerSpawner::start() {
  if (bell_ < 0) {
    return state_file_error("no descriptor to look after handlers' processes", EMFILE);
  }
  try {
    const SignalBlock block;
    thread_ = std::jthread([this](const std::stop_token& stop) { attend(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, std::string("no thread to look after handlers' processes: ") + error.what());
  }
  return {};
}

void RunnerSpawner::stop() {
  thread_.request_stop();
  ring();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<std::shared_ptr<RunnerProcess>> RunnerSpawner::make(RunnerBirth birth) {
  Request request{std::move(birth), {}};
  MutexLock lock(mutex_);
  if (closed_) {
    return Error(ErrorCode::cancelled, "the host ends, and starts no process for a handler any more");
  }
  requests_.push_back(&request);
  ring();
  answered_.wait_until(mutex_, SteadyTime::max(), [&] { return request.answer.has_value(); });
  return *std::move(request.answer);
}

void RunnerSpawner::retire(const std::shared_ptr<RunnerProcess>& process) {
  {
    const MutexLock lock(mutex_);
    for (Child& child : children_) {
      if (child.process == process) {
        child.killed_at = clock_.steady_now() + kRetireTime;
      }
    }
  }
  ring();
}

void RunnerSpawner::kill_all() {
  const MutexLock lock(mutex_);
  closed_ = true;
  for (const Child& child : children_) {
    child.process->signal(SIGKILL);
  }
}

void RunnerSpawner::ring() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(bell_, &one, sizeof(one)) < 0);
}

void RunnerSpawner::attend(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    make_what_is_wanted();
    reap_what_has_ended();
    wait_for_something(kill_overdue());
  }
  end_children();
}

void RunnerSpawner::make_what_is_wanted() {
  MutexLock lock(mutex_);
  while (!requests_.empty()) {
    Request* const request = requests_.back();
    requests_.pop_back();
    lock.unlock();
    auto made = RunnerProcess::make(request->birth);
    lock.lock();
    if (made) {
      children_.push_back({*made});
    }
    if (made && closed_) {
      (*made)->signal(SIGKILL);
    }
    request->answer = std::move(made);
    answered_.notify_all();
  }
}

void RunnerSpawner::reap_what_has_ended() {
  const MutexLock lock(mutex_);
  children_.erase(
      std::remove_if(children_.begin(), children_.end(), [](const Child& child) { return child.process->reap(); }),
      children_.end());
}

SteadyTime RunnerSpawner::kill_overdue() {
  const SteadyTime now = clock_.steady_now();
  SteadyTime next = SteadyTime::max();
  const MutexLock lock(mutex_);
  for (Child& child : children_) {
    if (child.killed_at <= now) {
      child.process->signal(SIGKILL);
      child.killed_at = SteadyTime::max();
    }
    next = std::min(next, child.killed_at);
  }
  return next;
}

void RunnerSpawner::wait_for_something(SteadyTime until) {
  std::vector<pollfd> waits{{bell_, POLLIN, 0}};
  {
    const MutexLock lock(mutex_);
    for (const Child& child : children_) {
      waits.push_back({child.process->descriptor(), POLLIN, 0});
    }
  }
  int timeout = -1;
  if (until != SteadyTime::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.steady_now());
    timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }
  ::poll(waits.data(), waits.size(), timeout);
  std::uint64_t rung = 0;
  static_cast<void>(::read(bell_, &rung, sizeof(rung)) < 0);
}

void RunnerSpawner::end_children() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  make_what_is_wanted();  // Whoever asked a moment ago is answered.
  const SteadyTime last = clock_.steady_now() + kLastTime;
  while (true) {
    reap_what_has_ended();
    {
      const MutexLock lock(mutex_);
      if (children_.empty()) {
        return;
      }
      for (Child& child : children_) {
        // Those that nobody has told to end do not.
        child.killed_at = child.killed_at == SteadyTime::max() ? SteadyTime::min() : std::min(child.killed_at, last);
      }
    }
    wait_for_something(kill_overdue());
  }
}

}  // namespace sluice::isolation
