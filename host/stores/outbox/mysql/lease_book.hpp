#pragma once

#include <memory>
#include <string>

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/mysql/mark_writer.hpp"
#include "host/stores/outbox/mysql/rows_sql.hpp"
#include "host/stores/outbox/mysql/session.hpp"

namespace sluice::queue::outbox::mysql {

/// `TABLE_sluice`, beside the outbox, quoted.
std::string side_table_of(const TableSettings& settings);
/// What makes it.
std::string side_table_ddl(const TableSettings& settings);

/// Leases in a side table. Whoever takes a bucket of a dead member takes its name away in the same transaction, and
/// marks are written together with a heartbeat of their writer: one that is late by any amount writes nothing, on a
/// cluster whose nodes are all written to as well.
class MysqlLeaseBook final : public LeaseBook {
 public:
  MysqlLeaseBook(std::unique_ptr<Session> session, const TableSettings& table)
      : session_(std::move(session)), sql_(table), marks_(*session_, sql_), side_(side_table_of(table)) {}

  void open(const LockSpace& space) override;
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
  std::string rows_of(int kind) const;
  std::string heartbeat(const LeaseMember& member) const;
  Result<std::vector<std::uint32_t>> take(std::span<const Handover> handovers, std::int64_t owner, Deadline deadline);
  Result<std::vector<Cells>> lock_buckets(const std::string& numbers, bool skip, Deadline deadline);
  void roll_back(Deadline deadline);

  const std::unique_ptr<Session> session_;
  const RowsSql sql_;
  MarkWriter marks_;
  const std::string side_;
  std::string space_;  ///< as it stands in SQL
  bool skips_locked_ = true;
};

}  // namespace sluice::queue::outbox::mysql
