#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "config/config.hpp"
#include "host/plugin/outcome.hpp"
#include "host/queue/source.hpp"
#include "host/work/account.hpp"
#include "host/work/retry_policy.hpp"

namespace sluice::work {

/// What becomes of a message: what the source is asked to do, and the account's column once it has done so. A value.
struct Disposition {
  queue::CompletionAction action = queue::CompletionAction::release;
  Duration delay{};
  queue::Failure failure;
  Ending ending = Ending::released;
  bool suspect = false;                             ///< as Completion's
  std::shared_ptr<const queue::Effects> effects{};  ///< as Completion's
  bool hold_group = false;                          ///< as Completion's
};

/// A job's rules for messages that did not work out. A value.
struct FailurePolicy {
  RetryPolicy retry;
  config::DeadLetterPolicy dead_letter = config::DeadLetterPolicy::move;
  std::string handler;
  std::string host;
  bool in_dlq = false;
  bool hold = false;  ///< a dead letter keeps its group waiting

  /// `source` dlq: there is nowhere further to move to, so that `move` is `keep` there.
  FailurePolicy(const config::JobConfig& config, std::string host_name);
};

/// Decides on a handler's outcome of attempt number `attempt`. Attempts that are used up, and rejected messages, follow
/// the dead-letter policy.
Disposition dispose(const plugin::Outcome& outcome, std::uint32_t attempt, const FailurePolicy& policy, Random& random);

/// Decides on a message that was claimed once too often: it never reaches the handler again. Since no handler has told
/// us anything of it, it is never discarded: where the policy says so it goes to the DLQ, and in the DLQ it is kept.
Disposition dispose_exhausted(std::uint32_t attempt, const FailurePolicy& policy);

/// Decides on a message that is rejected before its handler has seen it. It has not cost the attempt that its claim
/// counted, is never discarded, and in the DLQ it is kept as it was.
Disposition dispose_unseen(std::string why, bool suspect, std::uint32_t attempt, const FailurePolicy& policy);

/// Decides on a message whose handler ended its process, or was never seen again, in attempt number `attempt`; `why`
/// says how. As a failed attempt, and a suspect from now on. Also for whoever finds the crash ledger of a dead host.
Disposition dispose_crash(std::string why, std::uint32_t attempt, const FailurePolicy& policy, Random& random);

/// Decides on a message whose handler was done in attempt number `attempt`, but whose effects the store refused for the
/// reason `why`: nothing is committed of them. `reject`: its author wants such a message rejected, not retried.
Disposition dispose_refused(const std::string& why, bool reject, std::uint32_t attempt, const FailurePolicy& policy,
                            Random& random);

/// Puts a message back at once for anybody; its handler has not begun. A suspect stays one.
Disposition put_back(bool suspect);

/// What the source is asked for. `now` is written into the failure, if there is one.
queue::Completion completion_of(queue::Receipt receipt, Disposition&& disposition, WallTime now);

/// The outcome's name in metrics.
std::string_view to_string(plugin::OutcomeStatus status);

}  // namespace sluice::work
