#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/queue/source.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// When leases are extended, and until when they may be used. A value.
class LeaseTerms {
 public:
  explicit LeaseTerms(Duration visibility) : visibility_(visibility) {}

  Duration visibility() const { return visibility_; }
  /// A lease that the source has granted until `ends_at`.
  Lease granted(queue::Receipt receipt, SteadyTime ends_at) const;
  /// After an extension failed: soon again, jittered, several times before the lease ends.
  SteadyTime retry_at(SteadyTime now, Random& random) const;
  /// When to stop writing with a lease: a little before it ends, so that a write begun in time also lands in time.
  SteadyTime usable_until(const Lease& lease) const { return lease.ends_at - margin(); }
  bool usable(const Lease& lease, SteadyTime now) const { return now < usable_until(lease); }
  /// How long one extend call may take, so that there is time for another.
  Duration call_timeout() const;

 private:
  Duration margin() const;
  Duration visibility_;
};

/// What one job holds. Owns the tasks; their addresses are stable. Not thread-safe.
class LeaseBook {
 public:
  LeaseBook() = default;
  LeaseBook(const LeaseBook&) = delete;
  LeaseBook& operator=(const LeaseBook&) = delete;

  Task& add(queue::Message message, Lease lease);
  /// Gives the task's place back if nothing needs it any more.
  void tidy(Task& task);

  const std::vector<Task*>& tasks() const { return active_; }
  std::size_t size() const { return active_.size(); }

 private:
  std::deque<Task> storage_;
  std::vector<Task*> active_;
  std::vector<Task*> free_;
};

}  // namespace sluice::work
