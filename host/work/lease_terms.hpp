#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// When leases are extended, and until when they may be used. A value.
class LeaseTerms {
 public:
  explicit LeaseTerms(Duration visibility) : visibility_(visibility) {}

  Duration visibility() const { return visibility_; }
  /// A lease that the source has granted until `ends_at`.
  Lease granted(queue::Receipt&& receipt, SteadyTime ends_at) const;
  /// After an extension failed: soon again, jittered, several times before the lease ends.
  SteadyTime retry_at(SteadyTime now, Random& random) const;
  /// When a message must no longer be started or worked on: a little before its lease ends.
  SteadyTime usable_until(const Lease& lease) const;
  bool usable(const Lease& lease, SteadyTime now) const { return now < usable_until(lease); }
  /// How long one extend call may take, so that there is time for another.
  Duration call_timeout() const;

 private:
  Duration visibility_;
};

}  // namespace sluice::work
