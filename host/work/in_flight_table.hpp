#pragma once

#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "host/isolation/crash_ledger.hpp"
#include "host/queue/idempotency.hpp"
#include "host/queue/source.hpp"
#include "host/work/account.hpp"
#include "host/work/lease_terms.hpp"
#include "host/work/step_effects.hpp"
#include "host/work/task.hpp"

namespace sluice::work {

/// What one job holds, and how each of it ended: the only place where tasks are made and end. Tells the crash ledger.
///
/// Owns the tasks; their addresses are stable. A task whose end was noted stays until `tidy`, so that those who point
/// to it can let go of it first. Not thread-safe.
class InFlightTable {
 public:
  /// `crash_ledger` may be null; it outlives the holdings.
  InFlightTable(const LeaseTerms& terms, isolation::JobLedger* crash_ledger);
  InFlightTable(const InFlightTable&) = delete;
  InFlightTable& operator=(const InFlightTable&) = delete;

  Task& admit(queue::Delivery&& delivery);
  /// The message has come back as it was before this host was done with it, because its lease had ended. It goes on
  /// under the new receipt, at once or when the call with the old one has been answered, and the old claim counts as
  /// lost. Null: it is not held.
  Task* resume(queue::Delivery& delivery, StepEffects& notes);
  /// The call with its receipt was answered: if this host has claimed it once more meanwhile, it goes on under that
  /// receipt. False: it has not.
  bool go_on(Task& task, StepEffects& notes);
  /// Counts deliveries that were claimed, admitted or not.
  void count_claimed(std::size_t count) { account_.claimed(count); }
  void renew(Task& task, queue::Receipt receipt, SteadyTime leased_until);
  /// What its end has this process run is under way, or has been answered.
  void committing(Task& task, isolation::Committing how);
  void end(Task& task, Ending ending);
  /// Ends it as lost: somebody else has the message now, or nobody.
  void lose(Task& task, StepEffects& notes);
  /// Gives the places back of a task that is over, and that nobody points to any more.
  void tidy(Task& task);
  /// Marks of idempotency keys whose messages have ended otherwise than done, to be released; without the job's name.
  const std::vector<KeyMark>& ended_marks() const { return ended_marks_; }
  std::vector<KeyMark> take_ended_marks() { return std::exchange(ended_marks_, {}); }
  void release_mark(KeyMark mark);
  /// Ends the account: whatever has not ended by now is stranded, and later ends no longer count.
  void close();

  const std::vector<Task*>& tasks() const { return active_; }
  std::size_t size() const { return active_.size(); }
  /// Claimed and not ended.
  std::uint64_t open() const { return account_.open(); }
  LedgerSnapshot account() const { return account_.snapshot(); }
  const LeaseTerms& terms() const { return terms_; }

 private:
  void wait_for_answer(Task& task, queue::Delivery&& delivery);
  void adopt(Task& task, queue::Delivery&& newer, StepEffects& notes);

  const LeaseTerms terms_;
  isolation::JobLedger* const crash_ledger_;
  Account account_;
  bool closed_ = false;
  std::deque<Task> storage_;
  std::vector<Task*> active_;
  std::vector<Task*> free_;
  std::vector<KeyMark> ended_marks_;
};

}  // namespace sluice::work
