#pragma once

#include <deque>
#include <map>

#include "base/assert.hpp"
#include "base/guard.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/work/account.hpp"

namespace sluice::work {

/// No message is put off for longer, whatever a handler asks for: every store can keep such a time.
inline constexpr Duration kMaxDelay = std::chrono::hours(24 * 366);

/// When a failed message is tried again. A value.
class RetryPolicy {
 public:
  explicit RetryPolicy(const config::RetryConfig& config) : config_(config) {}

  /// The wait after attempt number `attempt` (from 1) failed: grows as configured up to its maximum, then jittered.
  Duration delay(std::uint32_t attempt, Random& random) const;
  /// The longest wait, for messages that are kept although their attempts are used up.
  Duration longest() const { return config_.max; }

  /// True when attempt number `attempt` was the last one. A maximum of 0 means no limit.
  bool used_up(std::uint32_t attempt) const { return config_.max_attempts != 0 && attempt >= config_.max_attempts; }
  /// True when attempt number `attempt` must not begin any more: earlier ones ended without a word, with their process.
  bool exhausted(std::uint32_t attempt) const { return config_.max_attempts != 0 && attempt > config_.max_attempts; }
  std::uint32_t max_attempts() const { return config_.max_attempts; }

 private:
  Duration grown(std::uint32_t attempt) const;

  config::RetryConfig config_;
};

/// What becomes of a message: what the source is asked to do, and the account's column once it has done so. A value.
struct Disposition {
  queue::CompletionAction action = queue::CompletionAction::release;
  Duration delay{};
  std::unique_ptr<queue::Failure> failure{};  ///< null: what the record says stays; most messages have none
  Ending ending = Ending::released;
  std::optional<queue::Marks> marks = 0;            ///< as Completion's
  std::shared_ptr<const queue::Effects> effects{};  ///< as Completion's
  bool hold_group = false;                          ///< as Completion's

  /// It has this process run statements of its handler's.
  bool commits_statements() const;
};

/// A job's rules for messages that did not work out. A value.
struct FailurePolicy {
  RetryPolicy retry;
  config::DeadLetterPolicy dead_letter = config::DeadLetterPolicy::move;
  std::string handler;
  std::string host;
  bool in_dlq = false;
  bool hold = false;  ///< a dead letter keeps its group waiting

  /// `source` dlq: there is nowhere further to move to, so that `move` is `keep` there.
  FailurePolicy(const config::JobConfig& config, std::string host_name);
};

/// Decides on a handler's outcome. Attempts that are used up and rejected messages follow the dead-letter policy.
Disposition dispose(const plugin::Outcome& outcome, std::uint32_t attempt, const FailurePolicy& policy, Random& random);

/// Decides on a message that was claimed once too often: it never reaches the handler again. Since no handler has told
/// us anything of it, it is never discarded: where the policy says so it goes to the DLQ, and in the DLQ it is kept.
Disposition dispose_exhausted(std::uint32_t attempt, const FailurePolicy& policy);

/// Decides on a message that is rejected before its handler has seen it. It has not cost the attempt that its claim
/// counted, is never discarded, and in the DLQ it is kept as it was.
Disposition dispose_unseen(std::string why, std::uint32_t attempt, const FailurePolicy& policy);

/// Decides on a message whose handler ended its process, or was never seen again, in attempt number `attempt`; `why`
/// says how. As a failed attempt, and a suspect from now on. Also for whoever finds the crash ledger of a dead host.
Disposition dispose_crash(std::string why, std::uint32_t attempt, const FailurePolicy& policy, Random& random);

/// Puts a message back at once for anybody; its handler has not begun, so that whatever its record says of it stays.
Disposition put_back();

/// What the source is asked for. `now` is written into the failure, if there is one.
queue::Completion completion_of(queue::Receipt receipt, Disposition&& disposition, WallTime now);

/// The right to work on a message until a time, on this process's own monotonic clock, as the source has granted it.
struct Lease {
  queue::Receipt receipt;
  SteadyTime ends_at{};
  SteadyTime extend_at{};
};

enum class TaskStage {
  queued,    ///< waits for a worker
  dealt,     ///< with a worker: about to be started, running, or finished and not collected yet
  disposed,  ///< its disposition waits to be written
  parked,    ///< the same, and waits for the receipt that an extension under way will bring
  settling,  ///< in a settle call
  ended,     ///< its ending is in the account
};

enum class ReceiptState {
  ours,
  extending,  ///< in an extend call: void once that has taken effect
  unsure,     ///< a settle call may have taken effect: to be repeated before anything else touches it
};

/// A claim of an idempotency key, and whose: the part of the source that its message is of.
struct KeyMark {
  queue::KeyClaim claim;
  std::uint16_t part = 0;
};

/// What a message holds of its idempotency key, once it was let in: a record is due when it is done.
struct KeyHold {
  std::string key{};       ///< empty where it is the message's own id, of which nothing is marked
  std::int64_t fence = 0;  ///< of the mark
  SteadyTime renew_at = SteadyTime::max();
};

/// One claimed message on its way through a job. Lives in the job's InFlightTable. Its stage changes only as the
/// methods below say; anything else is a defect and ends the process. Thousands may be at work at once: what few have
/// is made when they have it.
class Task {
 public:
  // Read by the worker that has it; nobody writes them meanwhile, but the worker what its handler has stored.
  queue::Message message;
  isolation::HeldSlot slot = 0;  ///< in the crash ledger
  bool suspect = false;
  std::uint16_t part = 0;  ///< of the source, as Receipt's

  Lease lease;
  Disposition disposition;
  SteadyTime claimed_at{};         ///< however often its lease has been extended since
  std::uint32_t seat = 0;          ///< of the worker that has or had it
  std::uint32_t run = 0;           ///< its place in that one's batch, while it is at work; guarded by the batch
  std::uint32_t tries = 0;         ///< settle calls that failed
  SteadyTime finished_at{};        ///< when it got its disposition
  bool finished_here = false;      ///< its disposition is what its handler came to
  bool not_run = false;            ///< this attempt was not made: the disposition is of one before
  std::uint64_t fingerprint = 0;   ///< of its content, once that is no longer kept
  std::size_t place = 0;           ///< in the table
  std::unique_ptr<KeyHold> key{};  ///< null: it holds none
  bool asked = false;              ///< for its key: until it is answered its place and its message stay
  std::shared_ptr<const std::string> first_result{};  ///< what the message's duplicate gave back; null: it is none
  /// What is told of its end, where somebody watches. Null: nobody does, or its handler has not come to its end.
  std::unique_ptr<AttemptEnd> watched{};
  /// This host has claimed the message once more while a call with the receipt before was under way. Null: it has not.
  std::unique_ptr<queue::Delivery> newer{};

  TaskStage stage() const { return stage_; }
  ReceiptState receipt_state() const { return receipt_state_; }
  bool open() const { return stage_ != TaskStage::ended; }
  /// A worker has it, whatever has become of it otherwise.
  bool with_worker() const { return with_worker_; }
  /// It was lost while its handler ran, and that has not come to an end yet.
  bool runs_on() const { return runs_on_ && with_worker_; }
  /// What may have ended a host before, and may end this one, is written when nothing else can be lost by it.
  bool settles_alone() const { return suspect && disposition.commits_statements(); }
  /// Its place may be used again.
  bool over() const { return !open() && !with_worker_ && !asked && receipt_state_ != ReceiptState::extending; }

  /// queued -> dealt
  void deal(std::uint32_t to_seat) {
    SLUICE_ASSERT(!with_worker_);
    go(TaskStage::queued, TaskStage::dealt);
    with_worker_ = true;
    seat = to_seat;
  }
  /// dealt, not started -> queued
  void recall() {
    SLUICE_ASSERT(with_worker_);
    go(TaskStage::dealt, TaskStage::queued);
    with_worker_ = false;
  }
  /// its worker has given it back
  void leave_worker() {
    SLUICE_ASSERT(with_worker_);
    with_worker_ = false;
  }
  /// queued or dealt -> disposed
  void dispose(Disposition&& what, SteadyTime now) {
    SLUICE_ASSERT(stage_ == TaskStage::queued || stage_ == TaskStage::dealt);
    stage_ = TaskStage::disposed;
    disposition = std::move(what);
    finished_at = now;
  }
  /// disposed -> parked
  void park() {
    SLUICE_ASSERT(receipt_state_ == ReceiptState::extending);
    go(TaskStage::disposed, TaskStage::parked);
  }
  /// disposed -> settling
  void begin_settling() {
    SLUICE_ASSERT(receipt_state_ != ReceiptState::extending);
    go(TaskStage::disposed, TaskStage::settling);
  }
  /// settling -> disposed
  void settling_failed(bool may_have_happened) {
    go(TaskStage::settling, TaskStage::disposed);
    ++tries;
    receipt_state_ = may_have_happened ? ReceiptState::unsure : ReceiptState::ours;
  }
  void begin_extending() {
    SLUICE_ASSERT(stage_ == TaskStage::dealt || stage_ == TaskStage::disposed);
    SLUICE_ASSERT(receipt_state_ == ReceiptState::ours);
    receipt_state_ = ReceiptState::extending;
  }
  /// parked -> disposed, or any other stage as it is. True: it was parked, and is to be written now.
  bool end_extending() {
    SLUICE_ASSERT(receipt_state_ == ReceiptState::extending);
    receipt_state_ = ReceiptState::ours;
    const bool parked = stage_ == TaskStage::parked;
    stage_ = parked ? TaskStage::disposed : stage_;
    return parked;
  }
  /// The receipt is a newer one, under which nothing has been tried: settling -> disposed, or any other stage as it is.
  void go_on() {
    SLUICE_ASSERT(open() && receipt_state_ != ReceiptState::extending);
    if (stage_ == TaskStage::settling) {
      stage_ = TaskStage::disposed;
    }
    receipt_state_ = ReceiptState::ours;
  }
  /// any but ended -> ended. `lost`: where its handler runs on it may be taken up again.
  void end(bool lost) {
    SLUICE_ASSERT(stage_ != TaskStage::ended);
    runs_on_ = lost && stage_ == TaskStage::dealt && with_worker_;
    stage_ = TaskStage::ended;
  }
  /// ended, and runs on -> dealt
  void take_up() {
    SLUICE_ASSERT(runs_on() && receipt_state_ == ReceiptState::ours);
    go(TaskStage::ended, TaskStage::dealt);
    runs_on_ = false;
  }
  void write_off() { runs_on_ = false; }  ///< its handler is not waited for any more

 private:
  void go(TaskStage from, TaskStage to) {
    SLUICE_ASSERT(stage_ == from);
    stage_ = to;
  }

  TaskStage stage_ = TaskStage::queued;
  ReceiptState receipt_state_ = ReceiptState::ours;
  bool with_worker_ = false;
  bool runs_on_ = false;
};

/// It has a mark of its key, which is to be renewed, and released unless it becomes the record.
inline bool has_mark(const Task& task) { return task.key != nullptr && !task.key->key.empty(); }
/// As far as the store has counted them; at least one.
inline std::uint32_t attempts_made(const Task& task) { return task.message.attempt - (task.not_run ? 1 : 0); }

/// What one of a job's queues grants. A value.
struct QueueLease {
  Duration visibility = std::chrono::seconds(30);
  Duration longest = std::chrono::hours(12);  ///< since the claim, however often it is extended
};

/// When leases are extended, and until when they may be used. A value.
class LeaseTerms {
 public:
  /// Of a job's queues, by the part that a receipt is of; at least one.
  explicit LeaseTerms(std::vector<QueueLease> queues)
      : queues_(std::move(queues)),
        visibility_(std::min_element(queues_.begin(), queues_.end(), [](const auto& one, const auto& other) {
                      return one.visibility < other.visibility;
                    })->visibility) {}

  /// Of one of the queues.
  const QueueLease& of(std::uint16_t part) const { return queues_[part < queues_.size() ? part : 0]; }
  /// The shortest: by it all are extended in time.
  Duration visibility() const { return visibility_; }
  /// A lease that the source has granted until `ends_at`.
  Lease granted(queue::Receipt&& receipt, SteadyTime ends_at) const {
    return {std::move(receipt), ends_at, ends_at == SteadyTime::max() ? ends_at : ends_at - visibility_ / 2};
  }
  /// One that was claimed at `now`, and that the source holds as long as it likes, ends for its handler all the same.
  void limit(Lease& lease, SteadyTime now) const {
    if (lease.ends_at == SteadyTime::max()) {
      lease.extend_at = now + of(lease.receipt.part).longest;
    }
  }
  /// After an extension failed: soon again, jittered, several times before the lease ends.
  SteadyTime retry_at(SteadyTime now, Random& random) const { return now + jittered(visibility_ / 10, random); }
  /// When a message must no longer be started or worked on: a little before its lease ends.
  SteadyTime usable_until(const Lease& lease) const;
  bool usable(const Lease& lease, SteadyTime now) const { return now < usable_until(lease); }
  /// An extension at `now` would go beyond what a lease may last.
  bool used_up(const Task& task, SteadyTime now) const {
    return now + of(task.part).visibility > task.claimed_at + of(task.part).longest;
  }
  /// How long one extend call may take, so that there is time for another.
  Duration call_timeout() const;
  /// When a call at `now` with this lease's receipt must be over: while it can be used, before it cannot.
  SteadyTime call_by(const Lease& lease, SteadyTime now) const {
    const SteadyTime longest = now + call_timeout();
    return usable(lease, now) ? std::min(longest, usable_until(lease)) : longest;
  }

 private:
  std::vector<QueueLease> queues_;
  Duration visibility_;
};

/// What one job holds, and how each of it ended. Owns the tasks, whose addresses are stable; one that has ended stays
/// until `tidy`, so that those who point to it can let go of it first. Tells the crash ledger. Not thread-safe.
class InFlightTable : boost::noncopyable {
 public:
  /// `crash_ledger` outlives the table.
  InFlightTable(const LeaseTerms& terms, isolation::JobLedger& crash_ledger)
      : terms_(terms), crash_ledger_(crash_ledger) {}

  Task& admit(queue::Delivery&& delivery);
  /// The message has come back as it was, since its lease had ended. It goes on under the new receipt, at once or once
  /// the call with the old one is answered, and the old claim counts as lost. Null: it is not held.
  Task* resume(queue::Delivery& delivery, StepEffects& effects);
  /// The call with its receipt was answered: it goes on under a newer claim of this host. False: there is none.
  bool go_on(Task& task, StepEffects& effects) {
    if (task.newer == nullptr || closed_) {
      return false;
    }
    const std::unique_ptr<queue::Delivery> newer = std::move(task.newer);
    task.go_on();
    account_.end(Ending::lost);
    adopt(task, std::move(*newer), effects);
    return true;
  }
  /// Counts deliveries that were claimed, admitted or not.
  void count_claimed(std::size_t count) { account_.claimed += count; }
  void renew(Task& task, queue::Receipt receipt, SteadyTime leased_until) {
    const Lease before = std::exchange(task.lease, terms_.granted(std::move(receipt), leased_until));
    if (leased_until == SteadyTime::max()) {
      task.lease.extend_at = before.extend_at;  // nothing is extended: it is when its handler is told
    }
    crash_ledger_.renew(task.slot, task.lease.receipt);
  }
  /// What its end has this process run is under way, or has been answered.
  void committing(Task& task, isolation::Committing how) {
    if (SLUICE_GUARD(commits_in_ledger)) {
      crash_ledger_.committing(task.slot, how);
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
  std::uint64_t open() const { return account_.in_flight(); }
  LedgerSnapshot account() const { return account_; }
  const LeaseTerms& terms() const { return terms_; }

 private:
  void wait_for_answer(Task& task, queue::Delivery&& delivery) {
    if (task.newer != nullptr) {
      account_.end(Ending::lost);
    }
    task.newer = std::make_unique<queue::Delivery>(std::move(delivery));
    // Nothing else can be written any more, whatever the answer is.
    crash_ledger_.renew(task.slot, task.newer->receipt);
  }
  void adopt(Task& task, queue::Delivery&& newer, StepEffects& effects) {
    effects.about(observe::LogLevel::warn, "the lease had ended and the message came back; this host goes on with it",
                  task.message);
    renew(task, std::move(newer.receipt), newer.leased_until);
    if (newer.leased_until != SteadyTime::max()) {
      task.claimed_at = newer.leased_until - terms_.of(task.part).visibility;
    }
  }

  const LeaseTerms terms_;
  isolation::JobLedger& crash_ledger_;
  LedgerSnapshot account_;
  bool closed_ = false;
  std::deque<Task> storage_;
  std::vector<Task*> active_;
  std::vector<Task*> free_;
  std::vector<KeyMark> ended_marks_;
};

/// The most messages whose end is remembered although it could not be written.
inline constexpr std::size_t kMaxRemembered = 4096;
/// Of a message with a longer body whose end could not be written at once only a fingerprint is kept.
inline constexpr std::size_t kKeptBody = 4096;

/// What handlers have finished here for good, until it is written. What another holder took away meanwhile is
/// remembered, so that it is not run a second time when it comes back to this host as it was. Not thread-safe.
class FinishedWork {
 public:
  /// Its handler has come to an end, and has its disposition.
  static void keep(Task& task);
  /// Its end could not be written at once.
  static void shrink(Task& task);
  /// Its message is no longer ours, now or already when its handler came to an end. It may come back.
  void remember(const Task& task, Disposition&& disposition);
  struct Remembered {
    WallTime sent_at{};
    std::uint32_t attempt = 0;
    std::uint64_t fingerprint = 0;
    Disposition disposition;
  };
  /// What this host has made of the task's message, unless anybody has changed it since. Forgets it.
  std::optional<Remembered> recognise(const Task& task);

 private:
  using Name = std::pair<std::uint16_t, std::string>;  ///< the part of the source, and the id
  static Name name_of(const Task& task) { return {task.part, task.message.id}; }

  std::map<Name, Remembered> remembered_;
  std::deque<Name> order_;  ///< of remembering, oldest first
};

}  // namespace sluice::work
