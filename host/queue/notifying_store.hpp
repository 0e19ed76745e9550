#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/store.hpp"

namespace sluice::queue {

/// A Store that passes every call on to another one and, after those that make a message claimable at once, calls
/// whoever listens to that queue half: a send in this process starts a handler without waiting for the next poll.
///
/// Thread-safe. Listeners are called on the thread that made the call, without any lock; they must not block and must
/// not end their own subscription.
class NotifyingStore final : public Store {
 public:
  using Listener = std::function<void()>;

  /// Ends when it is destroyed; the listener is not called any more once that has returned.
  class Subscription {
   public:
    Subscription() = default;
    ~Subscription() { end(); }
    Subscription(Subscription&& other) noexcept = default;
    Subscription& operator=(Subscription&& other) noexcept;

    void end();

   private:
    friend class NotifyingStore;
    class Gate;
    explicit Subscription(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
    std::shared_ptr<Gate> gate_;
  };

  /// `store` outlives this one.
  explicit NotifyingStore(Store& store) : store_(store) {}

  [[nodiscard]] Subscription subscribe(const QueueAddress& address, Listener listener);

  Result<std::vector<Claim>> claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                   Deadline deadline) override;
  std::vector<SettleResult> settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                   Deadline deadline) override;
  std::vector<ExtendResult> extend(const QueueAddress& address, std::span<const Receipt> receipts, Duration visibility,
                                   Deadline deadline) override;
  std::vector<SendResult> send(const std::string& queue, std::span<const NewMessage> messages,
                               Deadline deadline) override;
  Result<StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) override;
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  Result<QueueStats> stats(const QueueAddress& address, Deadline deadline) override;
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<ChangeResult> change(const std::string& queue, std::span<const Change> changes,
                                   Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                             std::span<const ContentEdit> edits, Deadline deadline) override;
  std::vector<PutResult> put(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                             Deadline deadline) override;

 private:
  using Gates = std::vector<std::weak_ptr<Subscription::Gate>>;

  void notify(const QueueAddress& address);
  void notify_both(const std::string& queue);

  // Fixed after construction.
  Store& store_;

  Mutex mutex_;
  std::map<QueueAddress, Gates> gates_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue
