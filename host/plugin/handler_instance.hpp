#pragma once

#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <span>

#include "base/random.hpp"
#include "config/config.hpp"
#include "host/queue/effects.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/outcomes.hpp"
#include "sluice/abi.h"
#include "sluice/around.h"
#include "sluice/detail/around_pass.hpp"
#include "sluice/detail/bound_options.hpp"
#include "sluice/detail/staging.hpp"
#include "sluice/effects.h"

namespace sluice::plugin {

/// Options of one job, checked against the handler's declaration and completed with its defaults.
using OptionValues = std::vector<detail::BoundOption>;

/// Checks [job.options] against what the handler declares: unknown name (with the nearest known one), wrong type,
/// missing required option; every error with its place. For a handler with open options everything passes as it is.
config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const config::JobConfig& job);

/// The options that a file has for a handler. Borrows.
struct OptionsOf {
  const std::map<std::string, config::Option>& options;
  config::Place place;       ///< of the handler's name
  std::string_view section;  ///< "[job.options]"
};
config::Parsed<OptionValues> bind_options(const sluice_handler& handler, const OptionsOf& given);

using queue::core::OutcomeStatus;

using detail::Breach;

/// A value.
struct Outcome {
  OutcomeStatus status = OutcomeStatus::fault;
  std::optional<Duration> delay;  ///< for snooze always, for retry when the handler named one; never negative
  std::string reason;             ///< at most 4,096 bytes of valid UTF-8
  std::shared_ptr<const queue::Effects> effects{};  ///< with `done`: what it staged; null: nothing
  Breach breach = Breach::none;                     ///< with `fault`
};

/// Is told what happens to an attempt, under its lock: to be quick, and to call nothing of it. Thread-safe.
class AttemptWatcher : boost::noncopyable {
 public:
  virtual ~AttemptWatcher() = default;

  /// The handler has until `end`; said again when that comes earlier.
  virtual void stop_requested(SteadyTime end, bool lease_lost) noexcept = 0;
  /// The time-out is that far from now.
  virtual void extended(Duration duration) noexcept = 0;

 private:
  friend class Attempt;
  AttemptWatcher* next_ = nullptr;  ///< of those that watch the same attempt
};

/// Where an attempt stores progress with its message. Of the thread that runs the handler.
class CheckpointStore : boost::noncopyable {
 public:
  virtual ~CheckpointStore() = default;

  /// As queue::Source::checkpoint; errors name the queue.
  virtual queue::SettleResult checkpoint(std::string_view bytes, std::shared_ptr<const queue::Effects> effects) = 0;
};

/// Takes every checkpoint and stores none: for whoever tries a handler, and tests.
class NotedCheckpoints final : public CheckpointStore {
 public:
  struct Noted {
    std::string bytes;
    std::shared_ptr<const queue::Effects> effects;  ///< null: none
  };

  queue::SettleResult checkpoint(std::string_view bytes, std::shared_ptr<const queue::Effects> effects) override {
    noted_.push_back({std::string(bytes), std::move(effects)});
    return answer;
  }
  const std::vector<Noted>& noted() const { return noted_; }

  queue::SettleResult answer{};  ///< to each

 private:
  std::vector<Noted> noted_;
};

/// One attempt at a message, as the host steers it while the handler runs: its time-out and its stop.
///
/// Thread-safe. A resource that its worker owns and re-arms for each message; cheap to arm (no allocation, no lock).
class Attempt : boost::noncopyable {
 public:
  explicit Attempt(const Clock& clock) : clock_(clock) {}

  /// Begins an attempt that times out at `deadline` (SteadyTime::max(): never). Only between attempts.
  void arm(SteadyTime deadline) {
    first_result_.reset();
    checkpoints_ = nullptr;
    deadline_.store(deadline.time_since_epoch().count());
    end_.store(kNever.time_since_epoch().count());
    stop_.store(false);
    lost_.store(false);
  }
  /// The attempt's message is a duplicate of one that is done, whose handler gave this back. Between `arm` and the
  /// handler; null, and so from `arm` on: it is none.
  void set_first_result(std::shared_ptr<const std::string> result) { first_result_ = std::move(result); }
  /// For the thread that runs the handler.
  const std::shared_ptr<const std::string>& first_result() const { return first_result_; }

  /// Where progress is stored; null, and so from `arm` on: nowhere. Between `arm` and the handler.
  void set_checkpoints(CheckpointStore* store) { checkpoints_ = store; }
  /// For the thread that runs the handler.
  CheckpointStore* checkpoints() const { return checkpoints_; }

  /// Asks the handler to finish; it is waited for until `end`, which a later call may bring forward.
  void request_stop(SteadyTime end = SteadyTime::max());
  /// As request_stop with no time left, and `extend` fails from now on.
  void lose_lease() {
    lost_.store(true);
    request_stop(clock_.steady_now());
  }

  /// True once the stop was requested or the attempt has timed out.
  bool stop_requested() const { return stop_.load() || timed_out(); }
  bool timed_out() const {
    const SteadyTime at = deadline();
    return at != kNever && clock_.steady_now() >= at;
  }
  /// Waits for that, at most `timeout`.
  bool wait_for_stop(Duration timeout);
  /// Until the time-out or the end of the drain, whichever is earlier; zero once passed, Duration::max() without one.
  Duration time_left() const {
    const SteadyTime at = std::min(deadline(), drain_end());
    return at == kNever ? Duration::max() : std::max(Duration::zero(), Duration(at - clock_.steady_now()));
  }
  /// The time-out alone.
  SteadyTime deadline() const { return SteadyTime(Duration(deadline_.load())); }
  /// Moves the time-out to now + `duration`; false when the lease is lost.
  bool extend(Duration duration);

  /// Tells `watcher` from now on, also of a stop before, beside those that watch it already.
  void watch(AttemptWatcher& watcher);
  /// It is not called any more when this returns.
  void unwatch(AttemptWatcher& watcher);

 private:
  static constexpr SteadyTime kNever = SteadyTime::max();

  void wake() SLUICE_REQUIRES(mutex_) {
    if (stopped_) {
      stopped_->notify_all();
    }
  }
  SteadyTime drain_end() const { return SteadyTime(Duration(end_.load())); }

  const Clock& clock_;
  // Touched by whoever arms the attempt, and then by its worker.
  std::shared_ptr<const std::string> first_result_;
  CheckpointStore* checkpoints_ = nullptr;
  // Synchronise themselves.
  std::atomic<SteadyTime::rep> deadline_{SteadyTime::max().time_since_epoch().count()};
  std::atomic<SteadyTime::rep> end_{SteadyTime::max().time_since_epoch().count()};  // of the drain
  std::atomic<bool> stop_{false};
  std::atomic<bool> lost_{false};
  Mutex mutex_;
  // Guarded by mutex_.
  std::unique_ptr<Condition> stopped_ SLUICE_GUARDED_BY(mutex_);  ///< once somebody waits; of thousands few do
  AttemptWatcher* watchers_ SLUICE_GUARDED_BY(mutex_) = nullptr;
};

/// What the handlers of a job may have committed together with a message, and how it is kept. A value.
struct EffectRules {
  sluice_store store = SLUICE_STORE_NONE;  ///< of the job's queue; none: an outbox, which has none for effects
  bool keeps_key = false;                  ///< an idempotency record is written besides
  // For the ids of messages without one; both outlive whoever has the rules. Null: no effects.
  Random* random = nullptr;
  const Clock* clock = nullptr;

  // As detail::EffectStage asks for it.
  using Effects = queue::Effects;
  void keep(const sluice_effect_message& message, Effects& staged) const;
  void keep(const sluice_effect_item& item, Effects& staged) const;
  void keep(const sluice_effect_sql& sql, Effects& staged) const;
  void keep(sluice_string result, Effects& staged) const;
  static std::optional<queue::KeyRecord>& result_of(Effects& staged) { return staged.key; }
  static std::string words(const std::string& refusal);
};

/// What the handlers of a job can stage: by the store of its queue, and for an outbox messages alone.
inline sluice_store effect_store(const std::string& queue, config::StoreKind store) {
  return config::outbox_named(queue)            ? SLUICE_STORE_NONE
         : store == config::StoreKind::dynamodb ? SLUICE_STORE_DYNAMODB
                                                : SLUICE_STORE_SQLITE;
}

/// The rules for a job whose queue, unless it is an outbox, lies in such a store. `random` and `clock` outlive whoever
/// has them.
inline EffectRules effect_rules(const config::JobConfig& job, config::StoreKind store, Random& random,
                                const Clock& clock) {
  return {effect_store(job.queue, store), job.idempotency.has_value(), &random, &clock};
}

using StagedEffects = detail::EffectStage<EffectRules>;
using AttemptCheckpoints = detail::AttemptCheckpoints<EffectRules>;

/// What of a report is taken.
inline constexpr std::size_t kHealthNameLimit = 64;
inline constexpr std::size_t kHealthTextLimit = 512;
inline constexpr std::size_t kHealthParts = 16;  ///< of one instance

/// How something that handlers work with fares, such as their broker. A value.
struct PartHealth {
  std::string part;
  bool works = true;
  std::string text;  ///< one line
};

/// Where one instance of a handler says how what it works with fares. Thread-safe.
class HealthSeat {
 public:
  virtual ~HealthSeat() = default;

  /// Replaces what was said of the part. Bad names, and more parts than an instance may have, are not taken.
  virtual void report(std::string_view part, bool works, std::string_view text) noexcept = 0;
  /// Takes back everything that was said.
  virtual void clear() noexcept = 0;
};

/// What the instances of a job's handler say of what they work with. Thread-safe; seats may outlast it.
class HealthBoard {
 public:
  HealthBoard() : notes_(std::make_shared<Notes>()) {}

  /// For one instance; what it said is taken back with the seat.
  std::shared_ptr<HealthSeat> seat();
  /// By name. A part fails when an instance says so; where others say that it works, so many of them are told.
  std::vector<PartHealth> parts() const;

 private:
  class Seat;
  struct Note {
    bool works = true;
    std::string text;
  };
  struct Notes {
    Mutex mutex;
    std::map<std::string, std::map<const Seat*, Note>, std::less<>> by_part SLUICE_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Notes> notes_;
};

class MetricBoard;

/// Where a handler's log lines go. `message_id` is empty for lines that belong to no attempt. Thread-safe.
using HandlerLog = std::function<void(sluice_log_level level, std::string_view job, std::string_view message_id,
                                      std::string_view text)>;

class HandlerInstance;

/// An instance of a handler that goes around others. A value; who has it shares the instance.
struct Around {
  const sluice_around* table = nullptr;  ///< lives as long as the process
  void* object = nullptr;                ///< the plugin's own
  std::shared_ptr<HandlerInstance> instance;
};

/// What goes around the calls of one worker, the outermost first.
using AroundChain = std::vector<Around>;

/// What an instance meets of the host. Every member may be empty.
struct HandlerSurroundings {
  HandlerLog log;
  EffectRules effects{};
  std::shared_ptr<HealthSeat> health{};    ///< where it says how what it works with fares; null: nobody asks
  std::shared_ptr<MetricBoard> metrics{};  ///< of its job; null: nobody asks
  AroundChain around{};
};

/// One message for a handler. Borrows, for as long as the handler is at work on it.
struct Work {
  const queue::Message& message;
  std::string_view queue;
  std::uint32_t max_attempts = 0;  ///< 0: no limit
  Attempt& attempt;
  const AroundChain* arounds = nullptr;  ///< of the worker, where others share the instance; null: the instance's own
};

/// Is told what became of a message that a handler has begun with: once, by any thread, from inside `begin` too. The
/// message and its attempt are not touched any more then.
class Completer : boost::noncopyable {
 public:
  virtual ~Completer() = default;
  virtual void completed(Outcome&& outcome) noexcept = 0;
};

/// How a handler takes its messages.
enum class HandlerKind {
  plain,  ///< one in a call
  batch,  ///< several in a call
  async,  ///< begins with one, and ends it later
};

/// One instance of a handler, made for one job: `create` to `destroy` of the ABI. A resource. Whatever kind the handler
/// is of, `handle` works on one message; `handle_batch` and `begin` are for the kind they are named after.
///
/// Nothing that the plugin throws comes out of it: it becomes an Error or a fault.
class HandlerInstance {
 public:
  /// `handler` and what it points to outlive the instance. `invalid` with the plugin's own words when it refuses;
  /// `corrupt` when it refuses as the ABI forbids: by an exception, or without a word.
  static Result<std::unique_ptr<HandlerInstance>> create(HandlerSurroundings surroundings,
                                                         const sluice_handler& handler, std::string job,
                                                         const OptionValues& options);
  virtual ~HandlerInstance() = default;

  /// Works on one message. Concurrent calls only for concurrent handlers.
  virtual Outcome handle(const Work& work) = 0;
  /// Works on several messages in one call; `outcomes`, as many, says at the same place what became of each.
  virtual void handle_batch(std::span<const Work> batch, std::span<Outcome> outcomes) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
      outcomes[i] = handle(batch[i]);
    }
  }
  /// Begins with a message and returns; `completer`, which lives until then, is told of the end. One caller at a time.
  /// The instance outlives every message that it has begun with.
  virtual void begin(const Work& work, Completer& completer) { completer.completed(handle(work)); }

  /// What the plugin's `create` has made; null where that was in another process.
  virtual void* object() const { return nullptr; }
};

/// True when one instance may be shared by all workers of a job.
bool is_concurrent(const sluice_handler& handler);
/// True when all that the handler does is to send through its context.
bool only_sends(const sluice_handler& handler);
/// Asks the handler for the features that tell.
HandlerKind kind_of(const sluice_handler& handler);

/// Makes an instance for one worker, whose handler says at `health` how what it works with fares and has its metrics on
/// `metrics`; null: nobody asks.
using InstanceFactory = std::function<Result<std::unique_ptr<HandlerInstance>>(std::shared_ptr<HealthSeat> health,
                                                                               std::shared_ptr<MetricBoard> metrics)>;

/// Limits of what a plugin may hand over; the rest is cut off.
inline constexpr std::size_t kReasonLimit = 4096;
inline constexpr std::size_t kLogTextLimit = 16 * 1024;
/// No outcome delays a message for longer, so that a time plus a delay always is a time.
inline constexpr Duration kDelayLimit = std::chrono::hours(24 * 3650);

/// What the host makes of a reported outcome.
Outcome read_outcome(const sluice_outcome& reported);

/// Writes a line of a handler, cut to the limit. Never throws: a log that breaks is not the handler's affair.
void write_log(const HandlerLog& log, sluice_log_level level, std::string_view job, std::string_view message_id,
               sluice_string text) noexcept;

}  // namespace sluice::plugin
