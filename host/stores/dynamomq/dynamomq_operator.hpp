#pragma once

#include "host/queue/doorbell.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/dynamomq/inspector.hpp"
#include "host/stores/dynamomq/queue_state.hpp"

namespace sluice::queue::dynamomq {

/// The operators' side of one queue. What it changes, the sources of this process know at once.
class DynamoMqOperator final : public Operator {
 public:
  /// The references must outlive the operator.
  DynamoMqOperator(table::StoreParts parts, QueueState& queue, Doorbell& doorbell)
      : parts_(parts), queue_(queue), doorbell_(doorbell), inspector_(parts, queue.place) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override;
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override;
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 private:
  const table::StoreParts parts_;
  QueueState& queue_;
  Doorbell& doorbell_;
  const Inspector inspector_;
};

}  // namespace sluice::queue::dynamomq
