#include "host/isolation/runner_spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "base/guard.hpp"
#include "base/signal_block.hpp"
#include "host/isolation/state_folder.hpp"

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
  const int payload = ::fcntl(birth.payload, F_DUPFD, kAside);
  const int plugin = ::fcntl(birth.plugin_file, F_DUPFD, kAside);
  ::dup2(control, kControlDescriptor);
  ::dup2(payload, kPayloadDescriptor);
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

/// A handler's destructor may flush something.
constexpr Duration kRetireTime = std::chrono::seconds(5);
/// The same once the host itself ends, and its own time is running out.
constexpr Duration kLastTime = std::chrono::seconds(1);

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

RunnerSpawner::RunnerSpawner() : bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<void> RunnerSpawner::start() {
  if (bell_ < 0) {
    return state_file_error("no descriptor to look after handlers' processes", EMFILE);
  }
  const SignalBlock block;
  return thread_.start([this](const std::stop_token& stop) { attend(stop); });
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
