#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "config/config.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/source.hpp"
#include "host/work/ledger.hpp"
#include "host/work/retry_policy.hpp"

namespace sluice::work {

/// What becomes of a message: what the store is asked to do, and the ledger's column once it has done so. A value.
struct Disposition {
  queue::CompletionAction action = queue::CompletionAction::release;
  Duration delay{};
  queue::Failure failure;
  Ending ending = Ending::released;
};

/// A job's rules for messages that did not work out. A value.
struct FailurePolicy {
  RetryPolicy retry;
  config::DeadLetterPolicy dead_letter = config::DeadLetterPolicy::move;
  std::string handler;
  std::string host;

  /// `source` dlq: there is nowhere further to move to, so that `move` is `keep` there.
  FailurePolicy(const config::JobConfig& config, std::string host_name);
};

/// Decides on a handler's outcome of attempt number `attempt`. Attempts that are used up, and rejected messages, follow
/// the dead-letter policy.
Disposition dispose(const plugin::Outcome& outcome, std::uint32_t attempt, const FailurePolicy& policy, Random& random);

/// Decides on a message that was claimed once too often: it never reaches the handler again.
Disposition dispose_exhausted(std::uint32_t attempt, const FailurePolicy& policy);

/// Puts a message back at once for anybody.
Disposition put_back();

/// The outcome's name in metrics.
std::string_view to_string(plugin::OutcomeStatus status);

}  // namespace sluice::work
