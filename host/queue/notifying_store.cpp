#include "host/queue/notifying_store.hpp"

#include <algorithm>
#include <utility>

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

bool wakes_dlq(const Change& change) { return shows(change) || change.action == ChangeAction::dead_letter; }

}  // namespace

// Lets calls of the listener in until it is closed; closing waits for those inside.
class NotifyingStore::Subscription::Gate {
 public:
  explicit Gate(Listener listener) : listener_(std::move(listener)) {}

  void call() {
    {
      const MutexLock lock(mutex_);
      if (closed_) {
        return;
      }
      ++inside_;
    }
    listener_();
    const MutexLock lock(mutex_);
    --inside_;
    left_.notify_all();
  }

  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
    left_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return inside_ == 0; });
  }

 private:
  const Listener listener_;
  Mutex mutex_;
  Condition left_;
  bool closed_ SLUICE_GUARDED_BY(mutex_) = false;
  int inside_ SLUICE_GUARDED_BY(mutex_) = 0;
};

void NotifyingStore::Subscription::end() {
  if (const auto gate = std::exchange(gate_, nullptr)) {
    gate->close();
  }
}

NotifyingStore::Subscription& NotifyingStore::Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    end();
    gate_ = std::move(other.gate_);
  }
  return *this;
}

NotifyingStore::Subscription NotifyingStore::subscribe(const QueueAddress& address, Listener listener) {
  auto gate = std::make_shared<Subscription::Gate>(std::move(listener));
  const MutexLock lock(mutex_);
  Gates& gates = gates_[address];
  // Ended subscriptions leave their place behind; here it is taken away.
  std::erase_if(gates, [](const auto& old) { return old.expired(); });
  gates.push_back(gate);
  return Subscription(std::move(gate));
}

void NotifyingStore::notify(const QueueAddress& address) {
  std::vector<std::shared_ptr<Subscription::Gate>> listening;
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
    gate->call();
  }
}

void NotifyingStore::notify_both(const std::string& queue) {
  notify({queue, QueueType::standard});
  notify({queue, QueueType::dlq});
}

Result<std::vector<Claim>> NotifyingStore::claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                                 Deadline deadline) {
  return store_.claim(address, max, visibility, deadline);
}

std::vector<SettleResult> NotifyingStore::settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                                 Deadline deadline) {
  auto results = store_.settle(address, settlements, deadline);
  bool here = false;
  bool dead = false;
  for (std::size_t i = 0; i < std::min(results.size(), settlements.size()); ++i) {
    if (results[i].status != SettleStatus::applied) {
      continue;
    }
    const Settlement& settlement = settlements[i];
    const bool back = settlement.action == SettleAction::retry || settlement.action == SettleAction::release;
    here = here || (back && settlement.delay <= Duration::zero());
    dead = dead || settlement.action == SettleAction::dead_letter;
  }
  if (here) {
    notify(address);
  }
  if (dead) {
    notify({address.queue, QueueType::dlq});
  }
  return results;
}

std::vector<ExtendResult> NotifyingStore::extend(const QueueAddress& address, std::span<const Receipt> receipts,
                                                 Duration visibility, Deadline deadline) {
  return store_.extend(address, receipts, visibility, deadline);
}

std::vector<SendResult> NotifyingStore::send(const std::string& queue, std::span<const NewMessage> messages,
                                             Deadline deadline) {
  auto results = store_.send(queue, messages, deadline);
  for (std::size_t i = 0; i < std::min(results.size(), messages.size()); ++i) {
    if (results[i].status == SendStatus::sent && messages[i].delay <= Duration::zero()) {
      notify({queue, QueueType::standard});
      break;
    }
  }
  return results;
}

Result<StoredMessage> NotifyingStore::get(const std::string& queue, const std::string& id, Deadline deadline) {
  return store_.get(queue, id, deadline);
}

Result<ListPage> NotifyingStore::list(const ListRequest& request, Deadline deadline) {
  return store_.list(request, deadline);
}

Result<QueueStats> NotifyingStore::stats(const QueueAddress& address, Deadline deadline) {
  return store_.stats(address, deadline);
}

Result<QueueOverview> NotifyingStore::overview(const OverviewRequest& request, Deadline deadline) {
  return store_.overview(request, deadline);
}

std::vector<ChangeResult> NotifyingStore::change(const std::string& queue, std::span<const Change> changes,
                                                 Deadline deadline) {
  auto results = store_.change(queue, changes, deadline);
  bool standard = false;
  bool dead = false;
  for (std::size_t i = 0; i < std::min(results.size(), changes.size()); ++i) {
    if (results[i].status == ChangeStatus::applied) {
      standard = standard || wakes_standard(changes[i]);
      dead = dead || wakes_dlq(changes[i]);
    }
  }
  if (standard) {
    notify({queue, QueueType::standard});
  }
  if (dead) {
    notify({queue, QueueType::dlq});
  }
  return results;
}

Result<StoredMessage> NotifyingStore::edit(const std::string& queue, const std::string& id, std::int64_t version,
                                           std::span<const ContentEdit> edits, Deadline deadline) {
  return store_.edit(queue, id, version, edits, deadline);
}

std::vector<PutResult> NotifyingStore::put(const std::string& queue, std::span<const StoredMessage> records,
                                           PutMode mode, Deadline deadline) {
  auto results = store_.put(queue, records, mode, deadline);
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const PutResult& result) { return result.status == PutStatus::written; });
  if (any) {
    notify_both(queue);
  }
  return results;
}

}  // namespace sluice::queue
