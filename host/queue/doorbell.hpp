#pragma once

#include <boost/core/noncopyable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/event_gate.hpp"
#include "host/queue/message.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue {

/// Wakes the sources of this process when something has been put into their half: a store rings it after what it wrote.
/// Thread-safe. A resource; it outlives its subscriptions.
class Doorbell : boost::noncopyable {
 public:
  using Listener = std::function<void()>;

  /// While it lives, its listener is called. Destruction waits for a call under way, so that nothing is called after
  /// it.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(Subscription&&) noexcept = default;
    Subscription& operator=(Subscription&& other) noexcept;
    ~Subscription() { end(); }

   private:
    friend class Doorbell;
    explicit Subscription(std::shared_ptr<EventGate> gate) : gate_(std::move(gate)) {}
    void end();
    std::shared_ptr<EventGate> gate_;
  };

  /// `beyond` is told each ring first, to carry it out of this process. May be empty.
  explicit Doorbell(std::function<void(const QueueAddress&)> beyond = {}) : beyond_(std::move(beyond)) {}

  /// The listener is called from whichever thread rings, and must return at once.
  [[nodiscard]] Subscription subscribe(const QueueAddress& address, Listener listener);

  void ring(const QueueAddress& address);
  /// Rings in this process only: for what came from beyond, or concerns nobody there.
  void ring_here(const QueueAddress& address);

  // Ring for what was written, if that makes anything claimable at once. Results belong to what was asked, in order.
  void ring_sent(const std::string& queue, std::span<const NewMessage> messages, std::span<const SendResult> results);
  void ring_settled(const QueueAddress& address, std::span<const Completion> completions,
                    std::span<const SettleResult> results);
  void ring_changed(const std::string& queue, std::span<const Change> changes, std::span<const ChangeResult> results);
  void ring_put(const std::string& queue, std::span<const PutResult> results);

 private:
  using Gates = std::vector<std::weak_ptr<EventGate>>;

  const std::function<void(const QueueAddress&)> beyond_;
  Mutex mutex_;
  std::map<QueueAddress, Gates> gates_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue
