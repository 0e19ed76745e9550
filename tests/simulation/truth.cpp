#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

using plugin::OutcomeStatus;
using queue::CompletionAction;

void Truth::granted(Host host, const queue::Receipt& receipt) {
  holder_[receipt.id] = {host, receipt.version};
  grants_[{receipt.id, receipt.version}] = host;
}

void Truth::delivered(const queue::Delivery& delivery) {
  Record& record = records_[delivery.message.id];
  record.unseen += record.suspect_claimed ? 1 : 0;
  record.suspect_claimed = delivery.suspect;
}

void Truth::written_with(Host host, const queue::Receipt& receipt) {
  const auto grant = grants_.find({receipt.id, receipt.version});
  if (grant == grants_.end() || grant->second != host) {
    violation("host " + std::to_string(host) + " writes " + receipt.id + " with a receipt it was never given");
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
  Record& record = records_[id];
  record.unseen += record.suspect_claimed ? 1 : 0;
  record.suspect_claimed = false;
  if (record.starts == 0 && !rules_.strangers && !rules_.turned_away) {
    const bool dead = completion.action == CompletionAction::dead_letter && record.unseen == 0;
    if (dead || completion.action == CompletionAction::remove) {
      violation(id + " was given up although nobody ever started it");
    }
  }
  if (completion.action == CompletionAction::dead_letter) {
    dead_.insert(id);
  }
  if (completion.action != CompletionAction::remove) {
    return;
  }
  removed_.emplace(id, Holder{host, completion.receipt.version});
  const auto& outcomes = outcomes_[{host, id}];
  const bool wanted = outcomes.contains(OutcomeStatus::done) || outcomes.contains(OutcomeStatus::discard);
  if (!wanted && !rules_.discards_when_used_up && !rules_.turned_away) {
    violation(id + " was removed although no handler was done with it");
  }
}

void Truth::started(Host host, const queue::Message& message) {
  ++handled_;
  if (removed_.contains(message.id) && !rules_.leases_end_unseen) {
    violation(message.id + " was started by host " + std::to_string(host) + " after it was removed");
  }
  Record& record = records_[message.id];
  if (message.attempt > record.starts + record.unseen + 1 && !rules_.strangers && !rules_.kept_at_door) {
    violation(message.id + " has lost an attempt that nobody made: it was started " + std::to_string(record.starts) +
              " times before, and this is attempt " + std::to_string(message.attempt));
  }
  ++record.starts;
  record.suspect_claimed = false;
  const auto& outcomes = outcomes_[{host, message.id}];
  if (!rules_.late_handlers && (outcomes.contains(OutcomeStatus::done) || outcomes.contains(OutcomeStatus::discard))) {
    violation(message.id + " was started again by host " + std::to_string(host) + ", which had finished it");
  }
  if (message.attempt > rules_.max_attempts || message.attempt == 0) {
    violation(message.id + " was started with attempt " + std::to_string(message.attempt));
  }
}

void Truth::finished(Host host, const std::string& id, OutcomeStatus outcome) { outcomes_[{host, id}].insert(outcome); }

void Truth::refused(Host host, const std::string& id) { outcomes_[{host, id}].erase(OutcomeStatus::done); }

void Truth::taken_out(const std::string& id) {
  dead_.erase(id);
  removed_.emplace(id, std::nullopt);
}

bool Truth::removed_by(Host host, const queue::Receipt& receipt) const {
  const auto found = removed_.find(receipt.id);
  return found != removed_.end() && found->second && found->second->host == host &&
         found->second->version == receipt.version;
}

bool Truth::removed_by_operator(const std::string& id) const {
  const auto found = removed_.find(id);
  return found != removed_.end() && !found->second;
}

}  // namespace sluice::simulation
