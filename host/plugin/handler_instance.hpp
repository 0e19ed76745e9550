#pragma once

#include "host/plugin/attempt.hpp"
#include "host/plugin/option_values.hpp"
#include "host/plugin/staged_effects.hpp"

namespace sluice::plugin {

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

  /// Replaces what was said of the part. A name that is empty or too long, and more parts than an instance may have,
  /// are not taken.
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

/// Where a handler's log lines go. `message_id` is empty for lines that belong to no attempt. Thread-safe.
using HandlerLog = std::function<void(sluice_log_level level, std::string_view job, std::string_view message_id,
                                      std::string_view text)>;

/// What an instance meets of the host. Every member may be empty.
struct HandlerSurroundings {
  HandlerLog log;
  EffectRules effects{};
  std::shared_ptr<HealthSeat> health{};  ///< where it says how what it works with fares; null: nobody asks
};

/// One instance of a handler, made for one job: `create` to `destroy` of the ABI. A resource.
///
/// Nothing that the plugin throws comes out of it: it becomes an Error or a fault.
class HandlerInstance {
 public:
  /// `handler` and what it points to outlive the instance (plugins are never unloaded). An Error of code `invalid` with
  /// the plugin's own words when it refuses.
  static Result<std::unique_ptr<HandlerInstance>> create(HandlerSurroundings surroundings,
                                                         const sluice_handler& handler, std::string job,
                                                         const OptionValues& options);
  virtual ~HandlerInstance() = default;

  /// Works on one message. Concurrent calls only for concurrent handlers. `max_attempts` 0: no limit.
  virtual Outcome handle(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts,
                         Attempt& attempt) = 0;
};

/// True when one instance may be shared by all workers of a job.
bool is_concurrent(const sluice_handler& handler);

/// Makes an instance for one worker, whose handler says at `health` how what it works with fares; null: nobody asks.
using InstanceFactory = std::function<Result<std::unique_ptr<HandlerInstance>>(std::shared_ptr<HealthSeat> health)>;

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
