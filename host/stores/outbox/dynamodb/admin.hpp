#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace sluice::queue::outbox {

/// What operators see of the table and do to its rows. Counting reads all that is pending or dead.
class DynamoDbAdmin final : public AdminSession {
 public:
  /// `place` must outlive it.
  explicit DynamoDbAdmin(OutboxPlace& place) : place_(place) {}

  Result<std::vector<Finding>> inspect(Deadline deadline) override;
  Result<SourceId> source_id(Deadline deadline) override { return place_.source_id(deadline); }
  Result<StoredRow> get(const RowKey& key, Deadline deadline) override;
  Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) override;
  Result<TableCounts> count(const CountRequest& request, Deadline deadline) override;
  Result<std::vector<RowChanged>> change(std::span<const RowChange> changes, Deadline deadline) override;
  /// Rows that were sent are not there any more: none.
  Result<std::uint64_t> prune(const PruneRequest& request, Deadline deadline) override;

 private:
  Result<RowChanged> change_one(const RowChange& change, const dynamo::Item& item, Deadline deadline);
  Result<RowChanged> update_times(const RowChange& change, const StoredRow& stored, Deadline deadline);
  Result<RowChanged> remove(const RowChange& change, const Row& row, Deadline deadline);
  Result<void> each(const std::string& partition, const std::function<void(const dynamo::Item&)>& visit,
                    Deadline deadline);
  std::vector<std::uint32_t> all_buckets(Deadline deadline);
  void look_for_buckets(std::vector<Finding>& findings, const std::string& where, Deadline deadline);
  std::string partition_with(const Row& row) const {
    return row.dead ? dead_partition_of(row.part) : partition_of(row.part);
  }
  Result<RowChanged> outcome(const dynamo::Result<dynamo::ItemOutput>& written) const;

  OutboxPlace& place_;
};

}  // namespace sluice::queue::outbox
