#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "host/queue/operator.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// Looks at one queue and changes what lies in it. What it sees is always what was written last.
class SqliteOperator final : public Operator {
 public:
  SqliteOperator(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override;
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override;
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override;
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override;
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) override;

 private:
  /// Nothing seen, a value without anything in it, of a queue that is not there.
  template <typename Seen>
  Result<Seen> look(std::function<Seen(RecordReader& reader, std::int64_t queue)> work, Deadline deadline);
  void put_batch(std::span<const StoredMessage> records, PutMode mode, std::span<PutResult> results, Deadline deadline);

  SharedStore& store_;
  const std::string queue_;
};

}  // namespace sluice::queue::sqlite
