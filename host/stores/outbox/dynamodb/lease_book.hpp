#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/lease_locks.hpp"

namespace sluice::queue::outbox {

/// Leases as items beside the rows: one for each bucket of a space, written only when it changes hands, and one
/// heartbeat for each member. Marks are not heartbeats, and are not refused to whoever has lost his lease without
/// knowing it: he measures it himself.
class DynamoDbLeaseBook final : public LeaseBook {
 public:
  /// `place` must outlive it.
  explicit DynamoDbLeaseBook(OutboxPlace& place) : place_(place) {}

  void open(const LockSpace& space) override { space_ = space.name; }
  Result<void> announce(const LeaseMember& member, Deadline deadline) override;
  Result<std::vector<LeaseMember>> members(Deadline deadline) override;
  void bury(std::span<const LeaseMember> dead, Deadline deadline) override;
  Result<std::map<std::uint32_t, BucketLease>> buckets(Deadline deadline) override;
  Result<std::vector<std::uint32_t>> change_hands(std::span<const Handover> handovers, std::int64_t owner,
                                                  Deadline deadline) override;
  void leave(const LeaseMember& member, Deadline deadline) override;
  Result<std::vector<MarkStatus>> mark(std::span<const Mark> marks, const LeaseMember* member,
                                       Deadline deadline) override;
  bool marks_are_heartbeats() const override { return false; }

 private:
  Result<std::map<std::int64_t, dynamo::Item>> read(const std::string& partition, Deadline deadline);
  dynamo::PutItemRequest put_of(const Handover& handover, std::int64_t owner) const;
  std::string members_partition() const { return "member/" + space_; }
  std::string locks_partition() const { return "lock/" + space_; }

  OutboxPlace& place_;
  std::string space_;
};

}  // namespace sluice::queue::outbox
