#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "host/isolation/event_ring.hpp"
#include "host/isolation/runner_spawner.hpp"
#include "host/isolation/runner_spec.hpp"
#include "host/isolation/spin.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/message.hpp"

namespace sluice::isolation {

/// Where the lines of a Runner go. Borrows.
struct RunnerLog {
  const plugin::HandlerLog& log;
  std::string_view job;
  std::string_view message;  ///< that is at work

  void write(bool of_message, std::int32_t level, std::string_view text) const;
};

/// One process with one handler in it, from its start to its end, which comes with the object at the latest. Of one
/// thread; only `request_stop` may come from others.
class Runner {
 public:
  /// Makes the process and waits until it has made the handler. `spec` and `spawner` outlive it. An Error with the
  /// handler's name: `invalid` when the handler refuses, or its process ends or hangs over making it; `unavailable`
  /// when there is no process to be had.
  static Result<std::unique_ptr<Runner>> start(const RunnerSpec& spec, RunnerSpawner& spawner, const RunnerLog& log);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// A message comes next: no stop was asked for it yet.
  void expect_message() noexcept { control().stop.fetch_and(~(RunnerControl::kStop | RunnerControl::kLost)); }
  /// Works on one message. `crashed` when the process ended, or had to be killed, over it.
  plugin::Outcome handle(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts,
                         plugin::Attempt& attempt, const RunnerLog& log);
  /// Of the message that is at work; it has until `end`. One caller at a time.
  void request_stop(SteadyTime end, bool lease_lost) noexcept;
  /// False once the process has ended, by whatever.
  bool alive() const { return control().ended.load() == 0; }
  /// How it ended, as one line. Once it is not alive.
  std::string last_words() const;

 private:
  /// What the events of one round came to.
  struct Heard {
    std::optional<plugin::Outcome> outcome;
    std::optional<std::string> refusal;
    bool ready = false;
    bool nonsense = false;
    bool more = false;  ///< there may be more to hear
  };
  /// When an attempt is looked at again, or why it is ended now.
  struct Bound {
    SteadyTime look_at = SteadyTime::max();
    std::string broken;
  };

  Runner(const RunnerSpec& spec, RunnerSpawner& spawner, std::shared_ptr<SharedMemory> control,
         std::unique_ptr<SharedMemory> parcel);

  RunnerControl& control() const { return *reinterpret_cast<RunnerControl*>(control_memory_->data()); }
  Result<void> put_parcel(std::size_t size);
  Result<void> await_handler(const RunnerLog& log);
  void give_order(RunnerOrder order);
  bool hear_health(const EventHead& head);
  bool hear_effects(std::int64_t total);
  bool hear_outcome(const EventHead& head, Heard& heard);
  /// The events that there are, of many the first, so that who says more than is heard holds up nobody.
  Heard hear(const RunnerLog& log, plugin::Attempt* attempt);
  void wait_for_event(std::uint32_t seen, SteadyTime until);
  plugin::Outcome attend(plugin::Attempt& attempt, const RunnerLog& log);
  Bound bound(const plugin::Attempt& attempt) const;
  /// Asks where its thread is, kills it, and waits for its end.
  void kill(std::string why);

  // Fixed after construction.
  const RunnerSpec& spec_;
  RunnerSpawner& spawner_;
  const SystemClock clock_;
  const std::shared_ptr<SharedMemory> control_memory_;
  const std::unique_ptr<SharedMemory> parcel_;
  std::shared_ptr<RunnerProcess> process_;
  // Touched only by its thread.
  EventReader reader_;
  std::string text_;
  std::string effects_;  // as far as they have been told
  SpinBudget spin_;
  Duration cpu_before_{};
  std::string killed_because_;
};

}  // namespace sluice::isolation
