#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/stores/membership.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"

namespace sluice::queue::outbox {

/// Locks as items beside the rows: one for each bucket of a space, written only when it changes hands, and one
/// heartbeat for each member. What it holds ends with its lease, which it measures on its own monotonic clock, and
/// which others take for ended only once they have seen no heartbeat for as long.
class DynamoDbLocks final : public LockSession {
 public:
  /// `place` must outlive it.
  explicit DynamoDbLocks(OutboxPlace& place);
  /// Takes its heartbeat away, so that the others' shares grow at once. What it still holds goes with its lease.
  ~DynamoDbLocks() override;

  Result<Members> join(const LockSpace& space, Deadline deadline) override;
  Result<Members> beat(Deadline deadline) override;
  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override;
  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override;
  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, Deadline deadline) override;

 private:
  /// A bucket's item as it was read.
  struct Lock {
    std::int64_t owner = 0;  ///< 0: nobody
    std::int64_t epoch = 0;  ///< 0: there is no item
  };

  Result<void> announce(Deadline deadline);
  Result<Members> look(Deadline deadline);
  Result<std::map<std::int64_t, dynamo::Item>> read(const std::string& partition, Deadline deadline);
  void bury(const std::map<std::int64_t, dynamo::Item>& members, Deadline deadline);
  dynamo::PutItemRequest change_of_hands(std::uint32_t bucket, const Lock& before, std::int64_t owner) const;
  Result<void> still_ours() const;
  std::string members_partition() const { return "member/" + space_.name; }
  std::string locks_partition() const { return "lock/" + space_.name; }

  OutboxPlace& place_;
  const std::int64_t member_;  ///< this session among the members of the space
  LockSpace space_;
  std::int64_t counter_ = 0;
  OwnLease lease_;
  Membership members_;
  std::map<std::uint32_t, Lock> held_;
};

}  // namespace sluice::queue::outbox
