#include "host/stores/outbox/postgres/lease_book.hpp"

#include <array>
#include <chrono>

#include "host/stores/outbox/postgres/mark_writer.hpp"

namespace sluice::queue::outbox::postgres {

Result<void> PostgresLeaseBook::announce(const LeaseMember& member, Deadline deadline) {
  if (member.counter == 1) {
    const std::array both{side_.announce_first(space_, member), side_.add_buckets(space_, member.buckets)};
    const auto joined = connection_->run_together(both, deadline);
    return joined ? Result<void>() : Result<void>(joined.error());
  }
  SLUICE_TRY(written, connection_->run(side_.announce(space_, member), deadline));
  return written->rows() == 1 ? Result<void>() : Result<void>(name_is_gone());
}

Result<std::vector<LeaseMember>> PostgresLeaseBook::members(Deadline deadline) {
  SLUICE_TRY(found, connection_->run(side_.members(space_), deadline));
  std::vector<LeaseMember> members;
  members.reserve(static_cast<std::size_t>(found->rows()));
  for (int row = 0; row < found->rows(); ++row) {
    members.push_back({.name = found->number(row, 0),
                       .counter = found->number(row, 1),
                       .lease = std::chrono::milliseconds(found->number(row, 2)),
                       .buckets = static_cast<std::uint32_t>(found->number(row, 3))});
  }
  return members;
}

void PostgresLeaseBook::bury(std::span<const LeaseMember> dead, Deadline deadline) {
  (void)connection_->run(side_.bury(space_, dead), deadline);
}

Result<std::map<std::uint32_t, BucketLease>> PostgresLeaseBook::buckets(Deadline deadline) {
  SLUICE_TRY(found, connection_->run(side_.buckets(space_), deadline));
  std::map<std::uint32_t, BucketLease> leases;
  for (int row = 0; row < found->rows(); ++row) {
    leases[static_cast<std::uint32_t>(found->number(row, 0))] = {.owner = found->number(row, 2),
                                                                 .epoch = found->number(row, 1)};
  }
  return leases;
}

Result<std::vector<std::uint32_t>> PostgresLeaseBook::change_hands(std::span<const Handover> handovers,
                                                                   std::int64_t owner, Deadline deadline) {
  std::vector<Statement> statements;
  if (owner != 0) {
    statements.push_back(side_.depose(space_, handovers));
  }
  statements.push_back(side_.change_hands(space_, handovers, owner));
  SLUICE_TRY(answers, connection_->run_together(statements, deadline));
  std::vector<std::uint32_t> changed;
  const Answer& numbers = answers->back();
  changed.reserve(static_cast<std::size_t>(numbers.rows()));
  for (int row = 0; row < numbers.rows(); ++row) {
    changed.push_back(static_cast<std::uint32_t>(numbers.number(row, 0)));
  }
  return changed;
}

void PostgresLeaseBook::leave(const LeaseMember& member, Deadline deadline) {
  const std::array both{side_.give_all_back(space_, member.name), side_.remove(space_, member.name)};
  (void)connection_->run_together(both, deadline);
}

Result<std::vector<MarkStatus>> PostgresLeaseBook::mark(std::span<const Mark> marks, const LeaseMember* member,
                                                        Deadline deadline) {
  if (member == nullptr) {
    return write_marks(*connection_, sql_, marks, nullptr, deadline);
  }
  const Fence fence{side_, space_, *member};
  return write_marks(*connection_, sql_, marks, &fence, deadline);
}

}  // namespace sluice::queue::outbox::postgres
