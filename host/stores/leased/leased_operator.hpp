#pragma once

#include <utility>

#include "host/queue/doorbell.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/leased/leased_changer.hpp"
#include "host/stores/leased/leased_inspector.hpp"

namespace sluice::queue::leased {

/// The operators' side of one queue.
class LeasedOperator final : public Operator {
 public:
  /// The references must outlive the operator.
  LeasedOperator(LeasedParts parts, LeasedQueue& queue, Doorbell& doorbell, LeasedChanger::FenceOf fence_of = {})
      : parts_(parts), queue_(queue), doorbell_(doorbell), fence_of_(std::move(fence_of)), inspector_(parts, queue) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override { return inspector_.get(id, deadline); }
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    return inspector_.list(request, deadline);
  }
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    return inspector_.stats(request, deadline);
  }
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    return inspector_.overview(request, deadline);
  }
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 private:
  /// Where a record is to lie that is put as it stands.
  Place place_of(const StoredMessage& record, std::uint32_t shards) const;

  LeasedParts parts_;
  LeasedQueue& queue_;
  Doorbell& doorbell_;
  const LeasedChanger::FenceOf fence_of_;
  const LeasedInspector inspector_;
};

}  // namespace sluice::queue::leased
