#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/option_values.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/message.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// Where a handler's log lines go. `message_id` is empty for lines that belong to no attempt. Thread-safe.
using HandlerLog =
    std::function<void(sluice_log_level level, std::string_view job, std::string_view message_id, std::string_view text)>;

/// One instance of a handler, made for one job: `create` to `destroy` of the ABI. A resource.
///
/// Nothing that the plugin throws comes out of it: it becomes an Error or a fault.
class HandlerInstance {
 public:
  /// `handler` and what it points to outlive the instance (plugins are never unloaded). An Error of code `invalid` with
  /// the plugin's own words when it refuses.
  static Result<std::unique_ptr<HandlerInstance>> create(const sluice_handler& handler, std::string job,
                                                         const OptionValues& options, HandlerLog log);
  virtual ~HandlerInstance() = default;

  /// Works on one message. Concurrent calls only for concurrent handlers. `max_attempts` 0: no limit.
  virtual Outcome handle(const queue::Message& message, std::string_view queue, std::uint32_t max_attempts,
                         Attempt& attempt) = 0;
};

/// True when one instance may be shared by all workers of a job.
bool is_concurrent(const sluice_handler& handler);

}  // namespace sluice::plugin
