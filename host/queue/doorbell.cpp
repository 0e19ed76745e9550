#include "host/queue/doorbell.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "host/queue/effects.hpp"

namespace sluice::queue {

namespace {

/// True for what makes a message visible at once in whichever half it lies.
bool shows(const Change& change) {
  const bool timed = change.action == ChangeAction::set_visibility || change.action == ChangeAction::delay;
  return change.action == ChangeAction::move_to_front || (timed && change.after <= Duration::zero());
}

bool wakes_standard(const Change& change) {
  return shows(change) || change.action == ChangeAction::redrive || change.action == ChangeAction::reset;
}

/// Adds the queues that messages were sent to.
void add_emitted(const Effects& effects, std::set<std::string>& queues) {
  for (const EmittedMessage& emitted : effects.messages) {
    queues.insert(emitted.queue);
  }
}

bool wakes_dlq(const Change& change) { return shows(change) || change.action == ChangeAction::dead_letter; }

}  // namespace

void Doorbell::Subscription::end() {
  if (const auto gate = std::exchange(gate_, nullptr)) {
    gate->close();
  }
}

Doorbell::Subscription& Doorbell::Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    end();
    gate_ = std::move(other.gate_);
  }
  return *this;
}

Doorbell::Subscription Doorbell::subscribe(const QueueAddress& address, Listener listener) {
  auto gate = std::make_shared<EventGate>(SourceEvents{.on_ready = std::move(listener), .lost = {}});
  const MutexLock lock(mutex_);
  Gates& gates = gates_[address];
  // Ended subscriptions leave their place behind; here it is taken away.
  std::erase_if(gates, [](const auto& old) { return old.expired(); });
  gates.push_back(gate);
  return Subscription(std::move(gate));
}

void Doorbell::ring(const QueueAddress& address) {
  if (beyond_) {
    beyond_(address);
  }
  ring_here(address);
}

void Doorbell::ring_here(const QueueAddress& address) {
  std::vector<std::shared_ptr<EventGate>> listening;
  {
    const MutexLock lock(mutex_);
    const auto found = gates_.find(address);
    if (found == gates_.end()) {
      return;
    }
    for (const auto& gate : found->second) {
      if (auto open = gate.lock()) {
        listening.push_back(std::move(open));
      }
    }
  }
  for (const auto& gate : listening) {
    gate->ready();
  }
}

void Doorbell::ring_sent(const std::string& queue, std::span<const NewMessage> messages,
                         std::span<const SendResult> results) {
  for (std::size_t i = 0; i < std::min(results.size(), messages.size()); ++i) {
    if (results[i].status == SendStatus::sent && messages[i].delay <= Duration::zero()) {
      ring({queue, Half::standard});
      return;
    }
  }
}

void Doorbell::ring_settled(const QueueAddress& address, std::span<const Completion> completions,
                            std::span<const SettleResult> results) {
  bool here = false;
  bool dead = false;
  bool freed = false;
  std::set<std::string> sent_to;
  for (std::size_t i = 0; i < std::min(results.size(), completions.size()); ++i) {
    if (results[i].status != SettleStatus::applied) {
      continue;
    }
    const Completion& completion = completions[i];
    if (completion.effects) {
      add_emitted(*completion.effects, sent_to);
    }
    const bool back = completion.action == CompletionAction::retry || completion.action == CompletionAction::release;
    here = here || (back && completion.delay <= Duration::zero());
    dead = dead || completion.action == CompletionAction::dead_letter;
    freed = freed || results[i].frees_group;
  }
  // Of delayed ones, too, so that whoever waits learns when they come due.
  for (const std::string& queue : sent_to) {
    ring({queue, Half::standard});
  }
  if (here) {
    ring(address);
  }
  if (dead) {
    ring({address.queue, Half::dlq});
  }
  if (freed) {
    ring({address.queue, Half::standard});
  }
}

void Doorbell::ring_changed(const std::string& queue, std::span<const Change> changes,
                            std::span<const ChangeResult> results) {
  bool standard = false;
  bool dead = false;
  for (std::size_t i = 0; i < std::min(results.size(), changes.size()); ++i) {
    if (results[i].status == ChangeStatus::applied) {
      standard = standard || wakes_standard(changes[i]);
      dead = dead || wakes_dlq(changes[i]);
    }
  }
  if (standard) {
    ring({queue, Half::standard});
  }
  if (dead) {
    ring({queue, Half::dlq});
  }
}

void Doorbell::ring_put(const std::string& queue, std::span<const PutResult> results) {
  if (std::any_of(results.begin(), results.end(),
                  [](const PutResult& result) { return result.status == PutStatus::written; })) {
    ring({queue, Half::standard});
    ring({queue, Half::dlq});
  }
}

}  // namespace sluice::queue
