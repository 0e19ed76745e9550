#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/isolation/runner.hpp"
#include "host/isolation/runner_spawner.hpp"
#include "host/isolation/runner_spec.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::isolation {

enum class RunnerStart {
  now,          ///< so that a handler that refuses is known
  when_needed,  ///< with the first message
};

/// A handler instance in a process of its own, for one worker: a new process takes over where one has ended. Where none
/// can be started messages are put off, and longer each time.
class RunnerInstance final : public plugin::HandlerInstance, private plugin::AttemptWatcher {
 public:
  /// Errors as Runner::start's, where that is now. `spawner` outlives the instance.
  static Result<std::unique_ptr<plugin::HandlerInstance>> create(RunnerSpec spec, RunnerSpawner& spawner,
                                                                 plugin::HandlerLog log,
                                                                 RunnerStart start = RunnerStart::now);

  plugin::Outcome handle(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts,
                         plugin::Attempt& attempt) override;

 private:
  RunnerInstance(RunnerSpec spec, RunnerSpawner& spawner, plugin::HandlerLog log);

  Result<void> start();
  /// Nothing once there is a process; otherwise what becomes of the message that waits for one.
  std::optional<plugin::Outcome> make_ready();
  void stop_requested(SteadyTime end, bool lease_lost) noexcept override { runner_->request_stop(end, lease_lost); }
  void extended(Duration) noexcept override {}  // It is the Runner that has asked for it.

  // Fixed after construction.
  const RunnerSpec spec_;
  RunnerSpawner& spawner_;
  const plugin::HandlerLog log_;
  const SystemClock clock_;
  // Touched only by its worker.
  std::unique_ptr<Runner> runner_;
  std::uint32_t failed_starts_ = 0;
  SteadyTime not_before_{};
  std::string why_not_;
};

}  // namespace sluice::isolation
