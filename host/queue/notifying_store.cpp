#include "host/queue/notifying_store.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue {

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

Result<StoredMessage> NotifyingStore::edit(const std::string& queue, const StoredMessage& expected,
                                           const NewMessage& content, Deadline deadline) {
  return store_.edit(queue, expected, content, deadline);
}

Result<void> NotifyingStore::remove(const std::string& queue, const std::string& id, Deadline deadline) {
  return store_.remove(queue, id, deadline);
}

Result<BulkResult> NotifyingStore::purge(const QueueAddress& address, const BulkProgress& progress, Deadline deadline) {
  return store_.purge(address, progress, deadline);
}

Result<void> NotifyingStore::dead_letter(const std::string& queue, const std::string& id, const Failure& failure,
                                         Deadline deadline) {
  auto result = store_.dead_letter(queue, id, failure, deadline);
  if (result) {
    notify({queue, QueueType::dlq});
  }
  return result;
}

Result<void> NotifyingStore::redrive(const std::string& queue, const std::string& id, Deadline deadline) {
  auto result = store_.redrive(queue, id, deadline);
  if (result) {
    notify({queue, QueueType::standard});
  }
  return result;
}

}  // namespace sluice::queue
