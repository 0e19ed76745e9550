#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/effect_rules.hpp"
#include "host/plugin/health_board.hpp"
#include "host/plugin/option_values.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/message.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// Where a handler's log lines go. `message_id` is empty for lines that belong to no attempt. Thread-safe.
using HandlerLog = std::function<void(sluice_log_level level, std::string_view job, std::string_view message_id,
                                      std::string_view text)>;

/// Answers a plugin's question for a feature by its id, such as "sluice.metrics/1"; null when the host does not have
/// it. An answer lives as long as the instance. Thread-safe.
using FeatureQuery = std::function<const void*(std::string_view id)>;

/// What an instance meets of the host. Every member may be empty.
struct HandlerSurroundings {
  HandlerLog log;
  FeatureQuery features;          ///< of the host
  FeatureQuery attempt_features;  ///< of one attempt
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
  static Result<std::unique_ptr<HandlerInstance>> create(const sluice_handler& handler, std::string job,
                                                         const OptionValues& options, HandlerLog log);
  /// As create, for a host that also answers questions for features.
  static Result<std::unique_ptr<HandlerInstance>> create_in(HandlerSurroundings surroundings,
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

}  // namespace sluice::plugin
