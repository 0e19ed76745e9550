#pragma once

#include <memory>
#include <string>

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/postgres/connection.hpp"
#include "host/stores/outbox/postgres/side_table.hpp"
#include "host/stores/outbox/postgres/table_sql.hpp"

namespace sluice::queue::outbox::postgres {

/// Leases in a side table. Whoever takes a bucket of a dead member takes its name away in the same transaction, and
/// marks are written only while their writer's name is there: one that is late by any amount writes nothing.
class PostgresLeaseBook final : public LeaseBook {
 public:
  /// `sql` must outlive it.
  PostgresLeaseBook(std::unique_ptr<Connection> connection, const TableSql& sql)
      : connection_(std::move(connection)), sql_(sql), side_(sql.settings()) {}

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
  bool marks_are_heartbeats() const override { return true; }

 private:
  const std::unique_ptr<Connection> connection_;
  const TableSql& sql_;
  const SideTable side_;
  std::string space_;
};

}  // namespace sluice::queue::outbox::postgres
