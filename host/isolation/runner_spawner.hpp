#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "host/isolation/runner_memory.hpp"
#include "host/runtime/service.hpp"

namespace sluice::isolation {

/// What a new Runner is given.
struct RunnerBirth {
  std::shared_ptr<SharedMemory> control;
  int payload = -1;      ///< descriptor of the second piece of memory
  int plugin_file = -1;  ///< the plugin as the host has it, whatever lies under its name by now
  std::string job;       ///< for whoever looks at the machine's processes
};

/// Where a Runner finds what it was given.
inline constexpr int kControlDescriptor = 3;
inline constexpr int kPayloadDescriptor = 4;
inline constexpr int kPluginDescriptor = 5;
/// The word behind the program's name that makes a process a Runner.
inline constexpr const char* kRunnerWord = "runner";

/// A Runner as a process: this program once more, whatever file lies under its name by now. It ends when the thread
/// that made it does, holds no descriptor but those above and the first three, and is what the kernel ends first when
/// memory runs out. Thread-safe. A resource; whoever made it reaps it.
class RunnerProcess {
 public:
  static Result<std::shared_ptr<RunnerProcess>> make(const RunnerBirth& birth);
  ~RunnerProcess() { ::close(descriptor_); }
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Readable once it has ended.
  int descriptor() const { return descriptor_; }
  void signal(int number) const { ::syscall(SYS_pidfd_send_signal, descriptor_, number, nullptr, 0); }
  /// What all its threads have used; nothing once it has ended.
  std::optional<Duration> cpu_time() const;

  /// Takes its exit status when it has ended, and wakes the host's thread that waits for it. False: it lives.
  bool reap();
  /// As waitpid tells it; nothing while it lives, or where somebody else has taken it.
  std::optional<int> status() const {
    const int status = status_.load();
    return status < 0 ? std::nullopt : std::optional(status);
  }

 private:
  RunnerProcess(pid_t pid, int descriptor, std::shared_ptr<SharedMemory> control)
      : pid_(pid), descriptor_(descriptor), control_(std::move(control)) {}

  const pid_t pid_;
  const int descriptor_;
  const std::shared_ptr<SharedMemory> control_;
  std::atomic<int> status_{-1};
};

/// Makes the Runners of a host and reaps them, on a thread of its own: the kernel ends a Runner with the thread that
/// made it, and workers come and go. Thread-safe. Outlives what it has made.
class RunnerSpawner final : public runtime::Service {
 public:
  RunnerSpawner();
  ~RunnerSpawner() override {
    stop();
    ::close(bell_);
  }

  Result<void> start() override;
  /// Ends what still lives: those that were told to end get a moment for it.
  void stop() override {
    thread_.request_stop();
    ring();
    thread_.stop();
  }

  Result<std::shared_ptr<RunnerProcess>> make(RunnerBirth birth);
  /// It has been told to end; it is killed when it takes long.
  void retire(const std::shared_ptr<RunnerProcess>& process);
  /// At a hard stop. Nothing is made any more.
  void kill_all() {
    const MutexLock lock(mutex_);
    closed_ = true;
    for (const Child& child : children_) {
      child.process->signal(SIGKILL);
    }
  }
  /// That has happened, or it is stopped: what ends now has done nothing wrong.
  bool closed() const { return closed_.load(); }

 private:
  struct Request {
    RunnerBirth birth;
    std::optional<Result<std::shared_ptr<RunnerProcess>>> answer;
  };
  struct Child {
    std::shared_ptr<RunnerProcess> process;
    SteadyTime killed_at = SteadyTime::max();
  };

  void attend(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      make_what_is_wanted();
      reap_what_has_ended();
      wait_for_something(kill_overdue());
    }
    end_children();
  }
  void make_what_is_wanted();
  void reap_what_has_ended() {
    const MutexLock lock(mutex_);
    children_.erase(
        std::remove_if(children_.begin(), children_.end(), [](const Child& child) { return child.process->reap(); }),
        children_.end());
  }
  /// Kills those whose time has come; when the next one's does.
  SteadyTime kill_overdue();
  void wait_for_something(SteadyTime until);
  void end_children();
  void ring() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(bell_, &one, sizeof(one)) < 0);
  }

  const SystemClock clock_;
  const int bell_;
  // Synchronises itself; set under mutex_.
  std::atomic<bool> closed_{false};
  // Guarded by mutex_.
  Mutex mutex_;
  Condition answered_;
  std::vector<Request*> requests_ SLUICE_GUARDED_BY(mutex_);
  std::vector<Child> children_ SLUICE_GUARDED_BY(mutex_);

  runtime::ServiceThread thread_{"sluice-runners"};
};

}  // namespace sluice::isolation
