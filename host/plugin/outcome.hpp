#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/queue/source.hpp"

namespace sluice::plugin {

/// What a handler made of a message; the names are the ABI's, but for the last: the process that ran the handler has
/// ended or had to be killed, and `reason` says how.
enum class OutcomeStatus { done, retry, snooze, reject, discard, release, fault, crashed };
inline constexpr std::size_t kOutcomes = 8;

/// A value.
struct Outcome {
  OutcomeStatus status = OutcomeStatus::fault;
  std::optional<Duration> delay;  ///< for snooze always, for retry when the handler named one; never negative
  std::string reason;             ///< at most 4,096 bytes of valid UTF-8
  std::shared_ptr<const queue::Effects> effects{};  ///< with `done`: what it staged; null: nothing
};

}  // namespace sluice::plugin
