#pragma once

#include "host/stores/dynamomq/queue_state.hpp"
#include "host/stores/dynamomq/record_changes.hpp"
#include "host/stores/table/record_operator.hpp"

namespace sluice::queue::dynamomq {

/// The operators' side of one queue. What it changes, the sources of this process know at once.
///
/// A change whose version is given is written at once, conditional on it, without a look.
class DynamoMqOperator final : public table::RecordOperator {
 public:
  /// The references must outlive the operator.
  DynamoMqOperator(table::StoreParts parts, QueueState& queue, Doorbell& doorbell);

  /// From the index, oldest first; a consistent look reads the whole table, in no order.
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  /// Reads the whole partition once, or with a consistent look the whole table, both halves, at twice the price.
  /// DynamoDB bills whole items, however little of them it is asked to return.
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override;
  /// The same pass, and what else it can tell.
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 private:
  bool needs_look(const Change& change) const override;
  void write(const std::vector<Task*>& tasks, Deadline deadline) const override;
  void on_end(const Task& task) const override;
  Result<dynamo::Item> edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                              Deadline deadline) const override;

  void find_fronts(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const;
  table::RecordWrite write_of(Task& task, WallTime now) const;
  dynamo::QueryRequest partition_query(Half half) const;
  dynamo::ScanRequest table_scan(Half half) const;
  Result<ListPage> list_index(const ListRequest& request, Deadline deadline) const;
  Result<ListPage> list_table(const ListRequest& request, Deadline deadline) const;
  /// `next_page` answers with the page behind the key.
  template <typename NextPage>
  Result<QueueOverview> count(const OverviewRequest& request, NextPage next_page) const;

  QueueState& queue_;
  const WriteBuilder build_;
};

}  // namespace sluice::queue::dynamomq
