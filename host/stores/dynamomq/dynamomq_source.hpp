#pragma once

#include <atomic>

#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/source.hpp"
#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// The source of one queue half. Each delivery has a lease of its own; suspects are known by what their records say of
/// the delivery before.
class DynamoMqSource final : public Source {
 public:
  /// The references must outlive the source.
  DynamoMqSource(table::StoreParts parts, QueueState& queue, Half half, Doorbell& doorbell)
      : parts_(parts), queue_(queue), address_{queue.place.queue, half}, doorbell_(doorbell) {}

  const SourceTraits& traits() const override;
  void start(SourceEvents events) override;
  void stop() override;
  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override;
  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override;
  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override;

 private:
  HalfState& state() { return queue_.state_of(address_.half); }

  // Fixed after construction.
  const table::StoreParts parts_;
  QueueState& queue_;
  const QueueAddress address_;
  Doorbell& doorbell_;

  std::atomic<bool> in_sequence_ = false;  ///< claims want one message after the other

  Mutex mutex_;
  // Guarded by mutex_.
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::dynamomq
