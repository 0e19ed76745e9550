#pragma once

#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// A session among the members of a space, as it stands in the book. A value.
struct LeaseMember {
  std::int64_t name = 0;     ///< never zero
  std::int64_t counter = 0;  ///< 1 is its first heartbeat
  Duration lease{};
  std::uint32_t buckets = 0;
};

/// The lease of a member that says so many milliseconds, whatever stands there: a day at most.
constexpr Duration lease_of(std::int64_t milliseconds) {
  return std::chrono::milliseconds(std::clamp<std::int64_t>(milliseconds, 0, 86'400'000));
}

/// Who has a bucket, as it stands in the book. A value.
struct BucketLease {
  std::int64_t owner = 0;  ///< 0: nobody, or somebody who is no member any more
  std::int64_t epoch = 0;  ///< grows whenever it changes hands
};
using BucketLeases = std::map<std::uint32_t, BucketLease>;  ///< by bucket

/// Where it is written down which sessions there are and who of them has which bucket: items beside the rows, or a side
/// table. It judges nothing. Not thread-safe; deadlines and errors as LockSession's.
class LeaseBook : public Resource {
 public:
  /// Which space is meant from now on. Once, before any other call but `mark`.
  virtual void open(const LockSpace& space) = 0;
  /// Writes a heartbeat. ErrorCode::unavailable when others have taken this member's name away.
  virtual Result<void> announce(const LeaseMember& member, Deadline deadline) = 0;
  virtual Result<std::vector<LeaseMember>> members(Deadline deadline) = 0;
  /// Takes the names of these members away, but for those that have beaten since: who has long been dead, or ends in
  /// peace. It does no harm when it fails.
  virtual void bury(std::span<const LeaseMember> members, Deadline deadline) = 0;
  /// What is absent, nobody has had yet.
  virtual Result<BucketLeases> buckets(Deadline deadline) = 0;
  /// Gives those that are still as they were `before` to `owner` (0: nobody); which they are. The owners before, who
  /// are dead, cannot write marks after that where the book can see to it. After an error some may have changed hands.
  virtual Result<std::vector<std::uint32_t>> change_hands(const BucketLeases& before, std::int64_t owner,
                                                          Deadline deadline) = 0;

  /// As LockSession::mark. `member`: null for a session that has not joined; otherwise it is written together with the
  /// marks, as another heartbeat, where `marks_are_heartbeats`, and nothing is written once its name is gone.
  virtual Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, const LeaseMember* member,
                                               Deadline deadline) = 0;
  virtual bool marks_are_heartbeats() const = 0;
};

/// What a book says to whoever's name is not in it any more.
Error name_is_gone();

/// Locks that are leases: each member writes heartbeats, and has what the book says that it has until its lease ends.
/// That it measures on its own monotonic clock, and what its machine has slept beside that; others take it for ended
/// only once they have seen no heartbeat for as long: no two machines' clocks are compared.
/// `beat_every`: while nothing changes hands. `clock` outlives it.
std::unique_ptr<LockSession> make_lease_locks(std::unique_ptr<LeaseBook> book, const Settings& settings,
                                              Duration beat_every, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox
