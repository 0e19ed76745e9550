#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/postgres/connection.hpp"

namespace sluice::queue::outbox::postgres {

/// The SQL of the side table that coordination = "table" keeps leases in: a row for each bucket of a space and one for
/// each member. A value.
class SideTable {
 public:
  explicit SideTable(const TableSettings& settings);

  /// `TABLE_sluice`, beside the outbox, quoted.
  const std::string& name() const { return name_; }
  std::string ddl() const;

  Statement announce_first(const std::string& space, const LeaseMember& member) const;
  /// A row for each bucket that has none.
  Statement add_buckets(const std::string& space, std::uint32_t buckets) const;
  /// Gives the member's number back, or no row when its name is gone.
  Statement announce(const std::string& space, const LeaseMember& member) const;
  /// number, counter, lease_ms, buckets
  Statement members(const std::string& space) const;
  Statement bury(const std::string& space, std::span<const LeaseMember> dead) const;
  /// number, counter, owner (0 where it is no member)
  Statement buckets(const std::string& space) const;
  /// Takes the names of those away who had these buckets.
  Statement depose(const std::string& space, std::span<const Handover> handovers) const;
  /// Gives back the numbers of those that were changed.
  Statement change_hands(const std::string& space, std::span<const Handover> handovers, std::int64_t owner) const;
  Statement give_all_back(const std::string& space, std::int64_t member) const;
  Statement remove(const std::string& space, std::int64_t member) const;
  /// " AND ..." for a statement that is to do nothing once the member's name is gone.
  std::string while_member(const std::string& space, std::int64_t member, std::vector<Parameter>& parameters) const;

 private:
  std::string name_;
};

/// In whose name marks are written. A value.
struct Fence {
  const SideTable& side;
  const std::string& space;
  const LeaseMember& member;
};

}  // namespace sluice::queue::outbox::postgres
