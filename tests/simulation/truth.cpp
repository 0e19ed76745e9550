#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

using plugin::OutcomeStatus;
using queue::CompletionAction;

void Truth::granted(Host host, const queue::Receipt& receipt, SteadyTime asked_at, Duration visibility) {
  holder_[receipt.id] = {host, receipt.version};
  grants_[{receipt.id, receipt.version}] = {host, asked_at + visibility};
}

void Truth::written_with(Host host, const queue::Receipt& receipt, SteadyTime now, const char* when) {
  const auto grant = grants_.find({receipt.id, receipt.version});
  if (grant == grants_.end() || grant->second.host != host) {
    violation("host " + std::to_string(host) + " writes " + receipt.id + " with a receipt it was never given");
  } else if (now >= grant->second.ends_at) {
    violation("host " + std::to_string(host) + " " + when + " a write of " + receipt.id + " with an expired lease");
  }
}

void Truth::settled(Host host, const queue::Completion& completion) {
  const std::string& id = completion.receipt.id;
  ++settlements_;
  const auto holder = holder_.find(id);
  if (holder == holder_.end() || holder->second.host != host || holder->second.version != completion.receipt.version) {
    violation("host " + std::to_string(host) + " settled " + id + ", which it no longer holds");
  }
  holder_.erase(id);
  if (completion.action != CompletionAction::remove) {
    return;
  }
  removed_.insert(id);
  const auto& outcomes = outcomes_[{host, id}];
  const bool wanted = outcomes.contains(OutcomeStatus::done) || outcomes.contains(OutcomeStatus::discard);
  if (!wanted && !rules_.discards_when_used_up) {
    violation(id + " was removed although no handler was done with it");
  }
}

void Truth::started(Host host, const queue::Message& message) {
  ++handled_;
  if (removed_.contains(message.id) && !rules_.leases_end_unseen) {
    violation(message.id + " was started by host " + std::to_string(host) + " after it was removed");
  }
  if (message.attempt > rules_.max_attempts || message.attempt == 0) {
    violation(message.id + " was started with attempt " + std::to_string(message.attempt));
  }
}

void Truth::finished(Host host, const std::string& id, OutcomeStatus outcome) { outcomes_[{host, id}].insert(outcome); }

}  // namespace sluice::simulation
