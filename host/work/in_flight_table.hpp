#pragma once

#include <deque>
#include <unordered_map>

#include "base/guard.hpp"
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
  explicit LeaseTerms(std::vector<QueueLease> queues)
      : queues_(std::move(queues)),
        visibility_(std::min_element(queues_.begin(), queues_.end(), [](const auto& one, const auto& other) {
                      return one.visibility < other.visibility;
                    })->visibility) {}

  /// The shortest: by it all are extended in time.
  Duration visibility() const { return visibility_; }
  /// A lease that the source has granted until `ends_at`.
  Lease granted(queue::Receipt&& receipt, SteadyTime ends_at) const {
    const bool endless = ends_at == SteadyTime::max();
    const Duration granted_for = of(receipt.part).visibility;
    return {std::move(receipt), ends_at, endless ? ends_at : ends_at - visibility_ / 2,
            endless ? SteadyTime{} : ends_at - granted_for};
  }
  /// One that was claimed at `now`, and that the source holds as long as it likes, ends for its handler all the same.
  void limit(Lease& lease, SteadyTime now) const {
    if (lease.ends_at == SteadyTime::max()) {
      lease.begun_at = now;
      lease.extend_at = now + of(lease.receipt.part).longest;
    }
  }
  /// After an extension failed: soon again, jittered, several times before the lease ends.
  SteadyTime retry_at(SteadyTime now, Random& random) const {
    const Duration wait = visibility_ / 20;
    return now + wait + Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * random.unit()));
  }
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

/// What one job holds, and how each of it ended: the only place where tasks are made and end. Tells the crash ledger.
///
/// Owns the tasks; their addresses are stable. A task whose end was noted stays until `tidy`, so that those who point
/// to it can let go of it first. Not thread-safe.
class InFlightTable {
 public:
  /// `crash_ledger` may be null; it outlives the table.
  InFlightTable(const LeaseTerms& terms, isolation::JobLedger* crash_ledger)
      : terms_(terms), crash_ledger_(crash_ledger) {}
  InFlightTable(const InFlightTable&) = delete;
  InFlightTable& operator=(const InFlightTable&) = delete;

  Task& admit(queue::Delivery&& delivery);
  /// The message has come back as it was before this host was done with it, because its lease had ended. It goes on
  /// under the new receipt, at once or when the call with the old one has been answered, and the old claim counts as
  /// lost. Null: it is not held.
  Task* resume(queue::Delivery& delivery, StepEffects& effects);
  /// The call with its receipt was answered: if this host has claimed it once more meanwhile, it goes on under that
  /// receipt. False: it has not.
  bool go_on(Task& task, StepEffects& effects) {
    if (task.newer == nullptr || closed_) {
      return false;
    }
    const std::unique_ptr<queue::Delivery> newer = std::move(task.newer);
    task.go_on();
    account_.ended(Ending::lost);
    adopt(task, std::move(*newer), effects);
    return true;
  }
  /// Counts deliveries that were claimed, admitted or not.
  void count_claimed(std::size_t count) { account_.claimed(count); }
  void renew(Task& task, queue::Receipt receipt, SteadyTime leased_until) {
    const Lease before = std::exchange(task.lease, terms_.granted(std::move(receipt), leased_until));
    task.lease.begun_at = before.begun_at;
    if (leased_until == SteadyTime::max()) {
      task.lease.extend_at = before.extend_at;  // nothing is extended: it is when its handler is told
    }
    if (crash_ledger_ != nullptr) {
      crash_ledger_->renew(task.slot, task.lease.receipt);
    }
  }
  /// What its end has this process run is under way, or has been answered.
  void committing(Task& task, isolation::Committing how) {
    if (crash_ledger_ != nullptr && SLUICE_GUARD(commits_in_ledger)) {
      crash_ledger_->committing(task.slot, how);
    }
  }
  void end(Task& task, Ending ending);
  /// Ends it as lost: somebody else has the message now, or nobody.
  void lose(Task& task, StepEffects& effects) {
    if (!closed_) {
      effects.lose(task.message);
    }
    end(task, Ending::lost);
  }
  /// Gives the places back of a task that is over, and that nobody points to any more.
  void tidy(Task& task);
  /// Marks of idempotency keys whose messages have ended otherwise than done, to be released; without the job's name.
  const std::vector<KeyMark>& ended_marks() const { return ended_marks_; }
  std::vector<KeyMark> take_ended_marks() { return std::exchange(ended_marks_, {}); }
  void release_mark(KeyMark mark) {
    if (!closed_ && SLUICE_GUARD(key_mark_released)) {
      ended_marks_.push_back(std::move(mark));
    }
  }
  /// Ends the account: whatever has not ended by now is stranded, and later ends no longer count.
  void close() {
    closed_ = true;
    ended_marks_.clear();
    account_.close();
  }

  const std::vector<Task*>& tasks() const { return active_; }
  std::size_t size() const { return active_.size(); }
  /// Claimed and not ended.
  std::uint64_t open() const { return account_.open(); }
  LedgerSnapshot account() const { return account_.snapshot(); }
  const LeaseTerms& terms() const { return terms_; }

 private:
  void wait_for_answer(Task& task, queue::Delivery&& delivery) {
    if (task.newer != nullptr) {
      account_.ended(Ending::lost);
    }
    task.newer = std::make_unique<queue::Delivery>(std::move(delivery));
    // Nothing else can be written any more, whatever the answer is.
    if (crash_ledger_ != nullptr) {
      crash_ledger_->renew(task.slot, task.newer->receipt);
    }
  }
  void adopt(Task& task, queue::Delivery&& newer, StepEffects& effects) {
    effects.about(observe::LogLevel::warn, "the lease had ended and the message came back; this host goes on with it",
                  task.message);
    renew(task, std::move(newer.receipt), newer.leased_until);
    if (newer.leased_until != SteadyTime::max()) {
      task.lease.begun_at = terms_.granted({}, newer.leased_until).begun_at;
    }
  }

  const LeaseTerms terms_;
  isolation::JobLedger* const crash_ledger_;
  Account account_;
  bool closed_ = false;
  std::deque<Task> storage_;
  std::vector<Task*> active_;
  std::vector<Task*> free_;
  std::vector<KeyMark> ended_marks_;
};

/// The most messages whose end is remembered although it could not be written.
inline constexpr std::size_t kMaxRemembered = 4096;
/// Bodies of finished messages that are kept until their end is written, in bytes; beyond it only a fingerprint is.
inline constexpr std::size_t kKeptBytes = 16U << 20U;

/// Whether nobody has changed the message since it became this task's, or sent another one under its id.
bool is_unchanged(const Task& task, const queue::Message& message);

/// What handlers have finished here for good, until it is written. What another holder took away meanwhile is
/// remembered, so that it is not run a second time when it comes back to this host as it was. Not thread-safe.
class FinishedWork {
 public:
  /// Its handler has come to an end.
  void keep(Task& task);
  /// What becomes of it is something else now.
  void changed(Task& task);
  /// It could not be written; its body is not needed any more.
  void not_written(Task& task);
  /// It is written, or its receipt is no longer ours. `lost`: it may come back.
  void leave(Task& task, bool lost);
  /// A handler has come to an end when its message was no longer its own.
  void remember(const Task& task, Disposition&& disposition);
  /// What this host has made of the message, unless anybody has changed it since. Forgets it.
  std::optional<Disposition> recognise(const queue::Message& message);

 private:
  struct Remembered {
    WallTime sent_at{};
    std::uint32_t attempt = 0;
    std::uint64_t fingerprint = 0;
    Disposition disposition;
  };

  std::size_t kept_bytes_ = 0;
  std::unordered_map<std::string, Remembered> remembered_;
  std::deque<std::string> order_;  ///< of remembering, oldest first
};

}  // namespace sluice::work
