#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// What one of a job's queues grants. A value.
struct QueueLease {
  Duration visibility = std::chrono::seconds(30);
  Duration longest = std::chrono::hours(12);
};

/// When leases are extended, and until when they may be used. A value.
class LeaseTerms {
 public:
  /// No lease lasts longer than `longest` since its claim, however often it is extended.
  explicit LeaseTerms(Duration visibility, Duration longest = std::chrono::hours(12))
      : LeaseTerms(std::vector{QueueLease{visibility, longest}}) {}
  /// Of several queues, by the part that a receipt is of; at least one.
  explicit LeaseTerms(std::vector<QueueLease> queues);

  /// The shortest: by it all are extended in time.
  Duration visibility() const { return visibility_; }
  /// A lease that the source has granted until `ends_at`.
  Lease granted(queue::Receipt&& receipt, SteadyTime ends_at) const;
  /// One that was claimed at `now`, and that the source holds as long as it likes, ends for its handler all the same.
  void limit(Lease& lease, SteadyTime now) const;
  /// After an extension failed: soon again, jittered, several times before the lease ends.
  SteadyTime retry_at(SteadyTime now, Random& random) const;
  /// When a message must no longer be started or worked on: a little before its lease ends.
  SteadyTime usable_until(const Lease& lease) const;
  bool usable(const Lease& lease, SteadyTime now) const { return now < usable_until(lease); }
  /// An extension at `now` would go beyond what a lease may last.
  bool used_up(const Lease& lease, SteadyTime now) const {
    const QueueLease& queue = of(lease.receipt.part);
    return lease.begun_at != SteadyTime{} && now + queue.visibility > lease.begun_at + queue.longest;
  }
  /// How long one extend call may take, so that there is time for another.
  Duration call_timeout() const;

 private:
  const QueueLease& of(std::uint16_t part) const { return queues_[part < queues_.size() ? part : 0]; }

  std::vector<QueueLease> queues_;
  Duration visibility_;
};

}  // namespace sluice::work
