#include "host/runtime/recovery_plan.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/guard.hpp"
#include "host/plugin/call.hpp"
#include "host/work/disposition.hpp"

namespace sluice::runtime {
namespace {

using isolation::HeldMessage;
using isolation::LedgerContents;

config::JobConfig job_of(const HeldMessage& held, const std::vector<config::JobConfig>& jobs) {
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const config::JobConfig& job) { return job.name == held.job; });
  if (found != jobs.end()) {
    return *found;
  }
  config::JobConfig unknown;
  unknown.source = held.address.half == queue::Half::dlq ? config::Source::dlq : config::Source::standard;
  unknown.retry.max_attempts = std::numeric_limits<std::uint32_t>::max();
  return unknown;
}

std::string why_blamed(const HeldMessage& held, const LedgerContents& ledger) {
  if (held.committing == isolation::Committing::no) {
    return ledger.crash->failure_text(plugin::kReasonLimit);
  }
  return "its host ended while it committed the statements of this message, and of no other: " +
         (ledger.crash ? ledger.crash->failure_text(plugin::kReasonLimit / 2)
                       : std::string("nothing says why: killed, out of memory, or power lost"));
}

queue::Completion blame(const HeldMessage& held, const LedgerContents& ledger,
                        const std::vector<config::JobConfig>& jobs, Random& random, WallTime now) {
  work::FailurePolicy policy(job_of(held, jobs), ledger.host);
  if (held.blamed) {
    policy.handler = ledger.crash->handler;
  }
  work::Disposition disposition = work::dispose_crash(why_blamed(held, ledger), held.attempt, policy, random);
  return work::completion_of(held.receipt, std::move(disposition), now);
}

}  // namespace

std::vector<RecoveryStep> plan_recovery(const LedgerContents& ledger, const std::vector<config::JobConfig>& jobs,
                                        Random& random, WallTime now) {
  const bool known = ledger.crash && ledger.crash->blamed;
  std::map<queue::QueueAddress, RecoveryStep> steps;
  for (const HeldMessage& held : ledger.held) {
    RecoveryStep& step = steps.try_emplace(held.address, RecoveryStep{held.address, {}, {}}).first->second;
    if (held.finished && SLUICE_GUARD(finished_before_death_not_run_again)) {
      step.completions.push_back({.receipt = held.receipt, .action = queue::CompletionAction::remove});
      step.suspicions.push_back(Suspicion::finished);
      continue;
    }
    const bool alone = held.committing == isolation::Committing::alone && !known;
    const bool counts = alone || (SLUICE_GUARD(innocents_beside_a_bomb) ? held.blamed : known);
    if (counts) {
      step.completions.push_back(blame(held, ledger, jobs, random, now));
      step.suspicions.push_back(Suspicion::blamed);
      continue;
    }
    const bool accused = (held.running || held.committing != isolation::Committing::no) && !known;
    step.completions.push_back(work::completion_of(held.receipt, work::put_back(accused || held.suspect), now));
    step.suspicions.push_back(accused ? Suspicion::suspect : Suspicion::innocent);
  }
  std::vector<RecoveryStep> plan;
  plan.reserve(steps.size());
  for (auto& [address, step] : steps) {
    plan.push_back(std::move(step));
  }
  return plan;
}

}  // namespace sluice::runtime
