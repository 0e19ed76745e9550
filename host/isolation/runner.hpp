#pragma once

#include <csignal>

#include "host/isolation/runner_memory.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/service.hpp"

namespace sluice::isolation {

/// What a new Runner is given.
struct RunnerBirth {
  std::shared_ptr<SharedMemory> control;
  int payload = -1;  ///< descriptor of the second piece of memory
  /// The plugins as the host has them, whatever lies under their names by now: the handler's, and those around it.
  std::vector<int> plugin_files;
  std::string job;  ///< for whoever looks at the machine's processes
};

/// Where a Runner finds what it was given.
inline constexpr int kControlDescriptor = 3;
inline constexpr int kPayloadDescriptor = 4;
inline constexpr int kPluginDescriptor = 5;  ///< the first of them
/// The word behind the program's name that makes a process a Runner.
inline constexpr const char* kRunnerWord = "runner";

/// A Runner as a process: this program once more, whatever file lies under its name by now. It ends when the thread
/// that made it does, holds no descriptor but those above and the first three, and is what the kernel ends first when
/// memory runs out. Thread-safe. A resource; whoever made it reaps it.
class RunnerProcess : boost::noncopyable {
 public:
  static Result<std::shared_ptr<RunnerProcess>> make(const RunnerBirth& birth);

  pid_t pid() const { return pid_; }
  /// Readable once it has ended.
  int descriptor() const { return descriptor_.get(); }
  void signal(int number) const { ::syscall(SYS_pidfd_send_signal, descriptor_.get(), number, nullptr, 0); }
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
  RunnerProcess(pid_t pid, Descriptor descriptor, std::shared_ptr<SharedMemory> control)
      : pid_(pid), descriptor_(std::move(descriptor)), control_(std::move(control)) {}

  const pid_t pid_;
  const Descriptor descriptor_;
  const std::shared_ptr<SharedMemory> control_;
  std::atomic<int> status_{-1};
};

/// Makes the Runners of a host and reaps them, on a thread of its own: the kernel ends a Runner with the thread that
/// made it, and workers come and go. Thread-safe. Outlives what it has made.
class RunnerSpawner final : public runtime::Service {
 public:
  RunnerSpawner();
  ~RunnerSpawner() override;

  Result<void> start() override;
  /// Ends what still lives: those that were told to end get a moment for it.
  void stop() override;

  Result<std::shared_ptr<RunnerProcess>> make(const RunnerBirth& birth);
  /// It has been told to end; it is killed when it takes long.
  void retire(std::shared_ptr<RunnerProcess> process);
  /// At a hard stop. Nothing is made any more.
  void kill_all();
  /// That has happened, or it is stopped: what ends now has done nothing wrong.
  bool closed() const { return closed_.load(); }

 private:
  class Nursery;

  const std::unique_ptr<Nursery> nursery_;
  Mutex mutex_;                      ///< held while it is closed, and while something is asked for
  std::atomic<bool> closed_{false};  // Synchronises itself.
  // Last, so that it ends before what it uses.
  runtime::ServiceThread thread_{"sluice-runners"};
};

/// What a Runner may use. A value.
struct RunnerLimits {
  std::uint64_t memory = 0;                       ///< bytes of writable private memory (RLIMIT_DATA); 0: no limit
  Duration cpu{};                                 ///< of all its threads, for one attempt; zero: no limit
  Duration start = std::chrono::seconds(30);      ///< until the handler is made
  Duration kill_grace = std::chrono::seconds(5);  ///< from an attempt's time-out to the end of the process
};

/// A plugin's file kept open, so that it is the same one whatever comes to lie under its name.
using OpenPlugin = std::shared_ptr<const Descriptor>;
Result<OpenPlugin> open_plugin(const std::string& file);
/// The very bytes that this process loaded, when a job pinned them; otherwise the file of that name.
Result<OpenPlugin> open_plugin(const plugin::LoadedPlugin& loaded);

/// A handler that goes around a Runner's. A value.
struct RunnerAround : AroundFacts {
  OpenPlugin file;  ///< of `plugin`
};

/// Which handler a Runner runs, and how. A value.
struct RunnerSpec : HandlerFacts {
  plugin::OptionValues options;
  RunnerLimits limits;
  OpenPlugin file;  ///< of `plugin`
  plugin::EffectRules effects{};
  std::shared_ptr<plugin::HealthSeat> health{};    ///< where it tells how what it works with fares; may be null
  std::shared_ptr<plugin::MetricBoard> metrics{};  ///< of its job; may be null
  std::vector<RunnerAround> arounds{};             ///< the outermost first
};

/// One process with one handler in it, from its start to its end, which comes with the object at the latest. Of one
/// thread; only `request_stop` may come from others.
class Runner : boost::noncopyable {
 public:
  /// Makes the process and waits until it has made the handler. `spec`, `spawner` and `log` outlive it. `invalid` when
  /// the handler refuses, or its process ends or hangs over making it; `unavailable` when there is no process to be
  /// had.
  static Result<std::unique_ptr<Runner>> start(const RunnerSpec& spec, RunnerSpawner& spawner,
                                               const plugin::HandlerLog& log);
  ~Runner();

  /// Messages come next: no stop was asked for any of them yet.
  void expect_messages(std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      control().stops[i].store(0);
    }
  }
  /// Works on as many messages as the Runner's handler takes in one call, at most RunnerControl::kMostMessages; what
  /// became of each. `crashed` when the process ended, or had to be killed, over them, of those that it had said
  /// nothing of.
  void handle(std::span<const plugin::Work> batch, std::span<plugin::Outcome> outcomes);
  /// Of the message at this place of those at work; it has until `end`. One caller at a time for each.
  void request_stop(std::size_t message, SteadyTime end, bool lease_lost) noexcept {
    // What is lost has no time left, and all of a batch have one end.
    if (!lease_lost) {
      control().stop_end.store(end.time_since_epoch().count());
    }
    const std::uint8_t asked = RunnerControl::kStop | (lease_lost ? RunnerControl::kLost : 0);
    control().stops[message].fetch_or(asked);
    control().stop.fetch_add(1);
    futex_wake(control().stop);
  }
  /// False once the process has ended, by whatever.
  bool alive() const { return control().ended.load() == 0; }
  /// It has taken up the messages that came last. Once it is not alive.
  bool has_begun() const { return control().begun.load() == control().orders.load(); }
  /// How it ended, as one line. Once it is not alive.
  std::string last_words() const;

 private:
  /// What the events of one round came to.
  enum class Heard {
    all,       ///< nothing more for now
    some,      ///< there may be more
    nonsense,  ///< what cannot have been said
  };
  /// When what the process is at is looked at again, or why it is ended now.
  struct Bound {
    SteadyTime look_at = SteadyTime::max();
    std::string broken;
  };

  Runner(const RunnerSpec& spec, RunnerSpawner& spawner, const plugin::HandlerLog& log,
         std::shared_ptr<SharedMemory> control_memory, std::unique_ptr<SharedMemory> payload)
      : spec_(spec),
        spawner_(spawner),
        log_(log),
        control_memory_(std::move(control_memory)),
        payload_(std::move(payload)),
        events_(control()) {}

  RunnerControl& control() const { return *reinterpret_cast<RunnerControl*>(control_memory_->data()); }
  Result<void> put_payload(std::size_t size);
  void give_order(RunnerOrder order) {
    control().order = order;
    control().orders.fetch_add(1);
    if (control().runner_sleeps.load() != 0) {
      futex_wake(control().orders);
    }
  }
  bool hear_health(const EventHead& head);
  bool hear_metrics();
  bool hear_effects(std::int64_t total);
  bool hear_checkpoint(const EventHead& head);
  bool hear_outcome(const EventHead& head);
  /// What is said of a message: which one. Null: there is none of that number.
  const plugin::Work* work_of(const EventHead& head) const {
    return head.message < batch_.size() ? &batch_[head.message] : nullptr;
  }
  bool hear_one(const EventHead& head);
  /// The events that there are, of many the first, so that who says more than is heard holds up nobody.
  Heard hear();
  void wait_for_event(std::uint32_t seen, SteadyTime until);
  /// Until the handler is made, or each message has its outcome, or the process has ended.
  void attend();
  Bound bound() const;
  /// The plugins that it was given.
  OpenModules open_modules() const;
  /// Asks where its thread is, kills it, and waits for its end.
  void kill(std::string why);

  // Fixed after construction.
  const RunnerSpec& spec_;
  RunnerSpawner& spawner_;
  const plugin::HandlerLog& log_;
  const SystemClock clock_;
  const std::shared_ptr<SharedMemory> control_memory_;
  const std::unique_ptr<SharedMemory> payload_;
  std::shared_ptr<RunnerProcess> process_;
  // Touched only by its thread.
  EventRing events_;
  std::string text_;
  std::string effects_;  // as far as they have been told
  std::span<const plugin::Work> batch_;
  std::vector<std::optional<plugin::Outcome>> outcomes_;
  std::size_t open_ = 1;                    // messages without one; at first, whether there is a handler
  SteadyTime made_until_{};                 // or there is none
  std::optional<std::string> refusal_;      // why there is none
  std::vector<plugin::ToldSeries> series_;  // of its handler's metrics, by their numbers there
  SpinBudget spin_;
  Duration cpu_before_{};
  std::string killed_because_;
};

enum class RunnerStart {
  now,          ///< so that a handler that refuses is known
  when_needed,  ///< with the first message
};

/// A handler instance in a process of its own, for one worker: a new process takes over where one has ended. Where none
/// can be started messages are put off, and longer each time.
class RunnerInstance final : public plugin::HandlerInstance {
 public:
  /// Errors as Runner::start's, where that is now. `spawner` outlives the instance.
  static Result<std::unique_ptr<plugin::HandlerInstance>> create(RunnerSpec spec, RunnerSpawner& spawner,
                                                                 plugin::HandlerLog log,
                                                                 RunnerStart start = RunnerStart::now) {
    auto instance = std::unique_ptr<RunnerInstance>(new RunnerInstance(std::move(spec), spawner, std::move(log)));
    if (start == RunnerStart::now) {
      SLUICE_PASS_ON(instance->start());
    }
    return std::unique_ptr<plugin::HandlerInstance>(std::move(instance));
  }

  plugin::Outcome handle(const plugin::Work& work) override {
    plugin::Outcome outcome;
    handle_batch({&work, 1}, {&outcome, 1});
    return outcome;
  }
  void handle_batch(std::span<const plugin::Work> batch, std::span<plugin::Outcome> outcomes) override;

 private:
  /// Carries the stop of one message to the process.
  class StopCarrier;

  RunnerInstance(RunnerSpec spec, RunnerSpawner& spawner, plugin::HandlerLog log)
      : spec_(std::move(spec)), spawner_(spawner), log_(std::move(log)) {}

  Result<void> start() {
    SLUICE_TRY(runner, Runner::start(spec_, spawner_, log_));
    runner_ = std::move(*runner);
    return {};
  }
  /// It has ended, over no message.
  void forget_runner();
  /// Nothing once there is a process; otherwise what becomes of the messages that wait for one.
  std::optional<plugin::Outcome> make_ready();

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

/// True when the program was started as a Runner, by a host.
bool is_runner(int argc, char** argv);

/// The whole life of a Runner: makes the handler that it is told of, runs it over one message after the other, and
/// returns the process's exit status when it is told to end. To be called before anything else of the program.
int run_runner();

}  // namespace sluice::isolation
