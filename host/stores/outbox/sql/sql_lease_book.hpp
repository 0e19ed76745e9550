#pragma once

#include <memory>
#include <string>
#include <utility>

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox::sql {

/// Leases in the side table that coordination = "table" has: a row for each bucket of a space and one for each member.
/// Whoever takes a bucket of a dead member takes its name away in the same transaction, and marks are written together
/// with a heartbeat of their writer: one that is late by any amount writes nothing, on a cluster whose nodes are all
/// written to as well.
class SqlLeaseBook final : public LeaseBook {
 public:
  /// `server` outlives it.
  SqlLeaseBook(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), connection_(std::move(connection)) {}

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
  Result<void> take(std::span<const Handover> handovers, std::int64_t owner, std::vector<std::uint32_t>& taken,
                    Deadline deadline);
  std::string sql(std::string_view pattern, std::initializer_list<std::string> values = {}) const;
  std::string heartbeat(const LeaseMember& member) const;

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  std::string bucket_rows_;  ///< conditions for the rows of the space
  std::string member_rows_;
  std::string space_;  ///< its name as it stands in SQL
};

}  // namespace sluice::queue::outbox::sql
