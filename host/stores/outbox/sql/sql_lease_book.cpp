#include "host/stores/outbox/sql/sql_lease_book.hpp"

#include <array>
#include <chrono>

namespace sluice::queue::outbox::sql {

std::string SqlLeaseBook::sql(std::string_view pattern, std::initializer_list<std::string> values) const {
  return server_.table().sql(pattern, values);
}

// A row's kind: 1 of a bucket, 2 of a member.
void SqlLeaseBook::open(const LockSpace& space) {
  const SqlDialect& dialect = server_.table().dialect();
  space_ = sql(dialect.space, {dialect.exact_text(space.name)});
  bucket_rows_ = "space = " + space_ + " AND kind = 1";
  member_rows_ = "space = " + space_ + " AND kind = 2";
}

std::string SqlLeaseBook::heartbeat(const LeaseMember& member) const {
  return sql("UPDATE @SIDE SET counter = @1 WHERE @2 AND number = @3",
             {std::to_string(member.counter), member_rows_, std::to_string(member.name)});
}

Result<void> SqlLeaseBook::announce(const LeaseMember& member, Deadline deadline) {
  if (member.counter > 1) {
    SLUICE_TRY(written, connection_->run(heartbeat(member), deadline));
    return written->touched == 1 ? Result<void>() : Result<void>(name_is_gone());
  }
  const auto rows = [](const std::string& values) {
    return "(space, kind, number, owner, counter, lease_ms, buckets) VALUES " + values;
  };
  const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(member.lease).count();
  const std::string self = sql("(@1, 2, @2, 0, 1, @3, @4)", {space_, std::to_string(member.name), std::to_string(lease),
                                                             std::to_string(member.buckets)});
  std::string buckets;
  for (std::uint32_t bucket = 0; bucket < member.buckets; ++bucket) {
    buckets += (bucket == 0 ? "" : ", ") + sql("(@1, 1, @2, 0, 1, 0, 0)", {space_, std::to_string(bucket)});
  }
  const std::array both{sql("INSERT INTO @SIDE @1", {rows(self)}),
                        sql(server_.table().dialect().insert_new, {rows(buckets)})};
  SLUICE_PASS_ON(connection_->run_together(both, deadline));
  return {};
}

Result<std::vector<LeaseMember>> SqlLeaseBook::members(Deadline deadline) {
  SLUICE_TRY(
      found,
      connection_->run(sql("SELECT number, counter, lease_ms, buckets FROM @SIDE WHERE @1", {member_rows_}), deadline));
  std::vector<LeaseMember> members;
  members.reserve(found->rows.size());
  for (const Cells& row : found->rows) {
    members.push_back({.name = number_of(row[0]),
                       .counter = number_of(row[1]),
                       .lease = std::chrono::milliseconds(number_of(row[2])),
                       .buckets = static_cast<std::uint32_t>(number_of(row[3]))});
  }
  return members;
}

void SqlLeaseBook::bury(std::span<const LeaseMember> dead, Deadline deadline) {
  std::string which;
  for (const LeaseMember& member : dead) {
    which += (which.empty() ? "" : " OR ") +
             sql("(number = @1 AND counter = @2)", {std::to_string(member.name), std::to_string(member.counter)});
  }
  (void)connection_->run(sql("DELETE FROM @SIDE WHERE @1 AND (@2)", {member_rows_, which}), deadline);
}

Result<std::map<std::uint32_t, BucketLease>> SqlLeaseBook::buckets(Deadline deadline) {
  SLUICE_TRY(found, connection_->run(sql("SELECT b.number, b.counter, COALESCE(m.number, 0) FROM @SIDE b LEFT JOIN "
                                         "@SIDE m ON m.space = b.space AND m.kind = 2 AND m.number = b.owner "
                                         "WHERE b.space = @1 AND b.kind = 1",
                                         {space_}),
                                     deadline));
  std::map<std::uint32_t, BucketLease> leases;
  for (const Cells& row : found->rows) {
    leases[static_cast<std::uint32_t>(number_of(row[0]))] = {.owner = number_of(row[2]), .epoch = number_of(row[1])};
  }
  return leases;
}

Result<std::vector<std::uint32_t>> SqlLeaseBook::change_hands(std::span<const Handover> handovers, std::int64_t owner,
                                                              Deadline deadline) {
  std::vector<std::uint32_t> taken;
  SLUICE_PASS_ON(in_transaction(
      *connection_, [&] { return take(handovers, owner, taken, deadline); }, deadline));
  return taken;
}

// Rows are locked in the order of their numbers, as everybody does, so that nobody waits for somebody who waits for
// him.
Result<void> SqlLeaseBook::take(std::span<const Handover> handovers, std::int64_t owner,
                                std::vector<std::uint32_t>& taken, Deadline deadline) {
  std::map<std::int64_t, std::int64_t> epochs;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> deposed;
  for (const Handover& handover : handovers) {
    epochs[handover.bucket] = handover.before.epoch;
    numbers.push_back(handover.bucket);
    deposed.push_back(handover.before.owner);
  }
  if (owner != 0) {
    const std::string rows = sql("@SIDE WHERE @1 AND number IN (@2)", {member_rows_, list_of(deposed)});
    SLUICE_PASS_ON(connection_->lock_rows("SELECT number FROM " + rows + " ORDER BY number", false, deadline));
    SLUICE_PASS_ON(connection_->run("DELETE FROM " + rows, deadline));
  }
  // What somebody else is taking is not waited for. What is given back is: whoever was too late for it has it locked
  // for a moment, and a bucket that stayed in the name of somebody who does not work on it would be lost.
  SLUICE_TRY(locked, connection_->lock_rows(sql("SELECT number, counter FROM @SIDE WHERE @1 AND number IN (@2) "
                                                "ORDER BY number",
                                                {bucket_rows_, list_of(numbers)}),
                                            owner != 0, deadline));
  taken.clear();
  for (const Cells& row : locked->rows) {
    if (number_of(row[1]) == epochs[number_of(row[0])]) {
      taken.push_back(static_cast<std::uint32_t>(number_of(row[0])));
    }
  }
  if (!taken.empty()) {
    SLUICE_PASS_ON(
        connection_->run(sql("UPDATE @SIDE SET owner = @1, counter = counter + 1 WHERE @2 AND number IN (@3)",
                             {std::to_string(owner), bucket_rows_, list_of(taken)}),
                         deadline));
  }
  return {};
}

void SqlLeaseBook::leave(const LeaseMember& member, Deadline deadline) {
  const std::string name = std::to_string(member.name);
  const std::array both{
      sql("UPDATE @SIDE SET owner = 0, counter = counter + 1 WHERE @1 AND owner = @2", {bucket_rows_, name}),
      sql("DELETE FROM @SIDE WHERE @1 AND number = @2", {member_rows_, name})};
  (void)connection_->run_together(both, deadline);
}

Result<std::vector<MarkStatus>> SqlLeaseBook::mark(std::span<const Mark> marks, const LeaseMember* member,
                                                   Deadline deadline) {
  if (member == nullptr) {
    return write_marks(server_, *connection_, marks, nullptr, deadline);
  }
  const MarkFence fence{heartbeat(*member), sql(" AND EXISTS (SELECT 1 FROM @SIDE WHERE @1 AND number = @2)",
                                                {member_rows_, std::to_string(member->name)})};
  return write_marks(server_, *connection_, marks, &fence, deadline);
}

}  // namespace sluice::queue::outbox::sql
