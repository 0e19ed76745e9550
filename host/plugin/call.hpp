#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "host/plugin/attempt.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/outcome.hpp"
#include "host/plugin/staged_effects.hpp"
#include "host/queue/message.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// Limits of what a plugin may hand over; the rest is cut off.
inline constexpr std::size_t kReasonLimit = 4096;
inline constexpr std::size_t kLogTextLimit = 16 * 1024;
/// No outcome delays a message for longer, so that a time plus a delay always is a time.
inline constexpr Duration kDelayLimit = std::chrono::hours(24 * 3650);

/// What the host makes of a reported outcome.
Outcome read_outcome(const sluice_outcome& reported);

/// A fault with this text as its reason.
Outcome make_fault(std::string_view text);

/// Writes a line of a handler, cut to the limit. Never throws: a log that breaks is not the handler's affair.
void write_log(const HandlerLog& log, sluice_log_level level, std::string_view job, std::string_view message_id,
               sluice_string text) noexcept;

/// Asks `features` for an id from a plugin; null when unknown. Never throws.
const void* find_feature(const FeatureQuery& features, const char* id) noexcept;

/// Whether a plugin asks for "sluice.effects/1".
bool is_effects(const char* id) noexcept;

/// What the calls of one instance have in common.
struct CallSetting {
  std::string job;
  HandlerSurroundings surroundings;
};

/// One call of a handler's `handle`: the C context it is given, and what it reports. Lives on the worker's stack for
/// that long; what the context offers is as thread-safe as abi.h says.
class Call {
 public:
  Call(const CallSetting& setting, const queue::Message& message, Attempt& attempt);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const sluice_context* context() const { return &context_; }
  /// What was reported last, with what was staged; a fault when nothing was, or when something of it was refused.
  Outcome take_outcome();
  /// A fault: what the handler threw.
  Outcome fail(std::string_view thrown);

 private:
  void drop_effects(const char* why) const;
  static Call& of(const sluice_context* context) { return *static_cast<Call*>(context->host); }
  static void report(const sluice_context* context, const sluice_outcome* outcome) noexcept;
  static void log(const sluice_context* context, sluice_log_level level, sluice_string text) noexcept;
  static std::int32_t stop_requested(const sluice_context* context) noexcept;
  static std::int32_t wait_for_stop(const sluice_context* context, std::int64_t timeout) noexcept;
  static std::int64_t time_left(const sluice_context* context) noexcept;
  static std::int32_t extend(const sluice_context* context, std::int64_t duration) noexcept;
  static const void* extension(const sluice_context* context, const char* id) noexcept;

  // Fixed after construction.
  const CallSetting& setting_;
  const queue::Message& message_;
  Attempt& attempt_;
  sluice_context context_;
  // Touched only by the worker.
  StagedEffects effects_;
  bool reported_ = false;
  Outcome outcome_;
};

}  // namespace sluice::plugin
