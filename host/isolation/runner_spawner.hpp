#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/isolation/runner_process.hpp"
#include "host/runtime/service.hpp"

namespace sluice::isolation {

/// Makes the Runners of a host and reaps them, on a thread of its own: the kernel ends a Runner with the thread that
/// made it, and workers come and go. Thread-safe. Outlives what it has made.
class RunnerSpawner final : public runtime::Service {
 public:
  RunnerSpawner();
  ~RunnerSpawner() override;

  Result<void> start() override;
  /// Ends what still lives: those that were told to end get a moment for it.
  void stop() override;

  Result<std::shared_ptr<RunnerProcess>> make(RunnerBirth birth);
  /// It has been told to end; it is killed when it takes long.
  void retire(const std::shared_ptr<RunnerProcess>& process);
  /// At a hard stop. Nothing is made any more.
  void kill_all();
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

  void attend(const std::stop_token& stop);
  void make_what_is_wanted();
  void reap_what_has_ended();
  /// Kills those whose time has come; when the next one's does.
  SteadyTime kill_overdue();
  void wait_for_something(SteadyTime until);
  void end_children();
  void ring() const;

  // Fixed after construction.
  const SystemClock clock_;
  const int bell_;
  // Synchronises itself; set under mutex_.
  std::atomic<bool> closed_{false};
  // Guarded by mutex_.
  Mutex mutex_;
  Condition answered_;
  std::vector<Request*> requests_ SLUICE_GUARDED_BY(mutex_);
  std::vector<Child> children_ SLUICE_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace sluice::isolation
