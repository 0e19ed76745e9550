#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/owned/ownership_records.hpp"
#include "host/stores/owned/remarks.hpp"

namespace sluice::queue::leased {

/// What a table's items say of who lives and who owns what: the records that a coordinator works with.
class TableOwnership final : public owned::OwnershipRecords {
 public:
  using QueueOf = std::function<LeasedQueue&(const std::string& queue)>;

  /// The queues, the remarks and what the parts refer to outlive it.
  TableOwnership(std::string table, const table::StoreParts& parts, owned::Remarks& remarks, QueueOf queue_of)
      : table_(std::move(table)),
        client_(parts.client),
        time_(parts.clock),
        remarks_(remarks),
        queue_of_(std::move(queue_of)) {}

  Written write_beat(const Heartbeat& beat, bool anew, Deadline deadline) override;
  std::optional<std::vector<Heartbeat>> read_beats(bool consistent, Deadline deadline) override;
  void remove_beat(const Heartbeat& beat, Deadline deadline) override;
  std::optional<owned::OwnershipLook> look_at(const QueueAddress& half, Deadline deadline) override;
  std::vector<bool> move(const QueueAddress& half, std::span<const owned::PartKeeper::Move> moves,
                         Deadline deadline) override;
  /// Why the last heartbeat could not be written, or what the table says of hosts and shards not be read.
  std::optional<dynamo::Error> trouble() const;

 private:
  void tell(const std::string& what, const dynamo::Error& error);
  std::optional<std::vector<dynamo::Item>> read(const std::string& partition, bool consistent, Deadline deadline);
  /// How many shards there are; nothing: it cannot be read, or somebody else has just written it.
  std::optional<Shards> numbers_of(const QueueAddress& half, const OwnershipPage& page, Deadline deadline);

  // Fixed after construction.
  const std::string table_;
  dynamo::Client& client_;
  table::TableClock& time_;
  owned::Remarks& remarks_;
  const QueueOf queue_of_;

  std::map<QueueAddress, std::uint32_t> counts_;  // of shards, as the last look has found; of the one that calls

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::optional<dynamo::Error> beat_trouble_ SLUICE_GUARDED_BY(mutex_);
  std::optional<dynamo::Error> look_trouble_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
