#pragma once

#include <map>

#include "host/cost/cost_book.hpp"
#include "host/work/dispatcher.hpp"

namespace sluice::work {

/// The most completions in one call of the source.
inline constexpr std::size_t kMaxSettleBatch = 1000;
/// Under load completions wait this long for company; never when no more are about to come.
inline constexpr Duration kSettleLinger = std::chrono::milliseconds(2);

/// Tasks whose disposition is to be written, in batches: at once when nothing else is coming, larger under load, later
/// again when the source failed. One that settles alone takes turns with the others. Not thread-safe.
class SettleQueue {
 public:
  void add(Task& task) { of(task).push_back(&task); }
  /// Puts a task back that is not to be written before `at`.
  void add_again(Task& task, SteadyTime at) { again_.emplace(at, &task); }

  /// When the next batch should be written: at most `now` when it should be at once, SteadyTime::max() when there is
  /// nothing. `busy`: more is about to be added, waiting a moment for it is worth it.
  SteadyTime due(SteadyTime now, bool busy);
  /// Takes the batch that is due, oldest first, `most` of it.
  std::vector<Task*> take(SteadyTime now, std::size_t most = kMaxSettleBatch);
  /// Since when the oldest that is due has its disposition; `now` when nothing is.
  SteadyTime oldest(SteadyTime now) const {
    const auto& due = ready_.empty() ? alone_ : ready_;
    return due.empty() ? now : due.front()->finished_at;
  }

  /// Makes everything due at once, back-off or not.
  void hurry() { ripen(SteadyTime::max()); }
  /// Forgets a task.
  void remove(const Task& task) {
    std::erase(ready_, &task);
    std::erase(alone_, &task);
    std::erase_if(again_, [&task](const auto& entry) { return entry.second == &task; });
  }
  std::size_t size() const { return ready_.size() + alone_.size() + again_.size(); }

 private:
  void ripen(SteadyTime now);
  std::deque<Task*>& of(const Task& task) { return task.settles_alone() ? alone_ : ready_; }

  std::deque<Task*> ready_;
  std::deque<Task*> alone_;
  bool others_taken_ = false;                 ///< since one of those
  std::multimap<SteadyTime, Task*> again_{};  ///< by when they are due
};

/// The longest that a claim or a settle call may take.
inline constexpr Duration kSourceTimeout = std::chrono::seconds(10);
/// A settle call without an answer for so long is taken for a store that does not answer.
inline constexpr Duration kSilence = std::chrono::milliseconds(500);
/// The longest that a completion waits for a budget: then it is written on credit, well before its lease is given up.
inline constexpr Duration kLongestHold = std::chrono::minutes(1);

/// Decides when dispositions are written, and what becomes of those that could not be. Only the source's answer ends a
/// message: also after its lease has ended it is tried, since the receipt fences the write. Not thread-safe.
class Settler {
 public:
  struct Order {
    std::vector<Task*> tasks;  ///< empty: nothing to do before `wake`
    std::vector<queue::Completion> completions;
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return tasks.empty(); }
  };

  /// What the job's queues may cost; none: whatever it takes. They outlive the settler.
  using Budgets = std::vector<cost::UnitBudget*>;

  /// `policy` says what becomes of messages whose effects are refused.
  Settler(const FailurePolicy& policy, InFlightTable& in_flight, const Workforce& workforce, const ClaimSizer& sizer,
          Random& random, Budgets budgets = {})
      : policy_(policy),
        in_flight_(in_flight),
        workforce_(workforce),
        sizer_(sizer),
        random_(random),
        budgets_(std::move(budgets)) {}

  /// The task's disposition is to be written.
  void add(Task& task, Disposition&& disposition, SteadyTime now) {
    task.dispose(std::move(disposition), now);
    ++channel(task).pending;
    queue_.add(task);
  }
  /// It goes back at once, for anybody: its handler has not begun.
  void put_back(Task& task, SteadyTime now) { add(task, work::put_back(), now); }
  /// The same of a task whose handler has come to an end.
  void add_finished(Task& task, Disposition&& disposition, SteadyTime now) {
    add(task, std::move(disposition), now);
    FinishedWork::keep(task);
  }
  /// A handler has come to an end whose message was settled or lost meanwhile.
  void remember(const Task& task, Disposition&& disposition) { finished_.remember(task, std::move(disposition)); }
  /// What this host has made of a message that it could not settle, when it comes back.
  std::optional<FinishedWork::Remembered> recognise(const Task& task) { return finished_.recognise(task); }
  /// The receipt that a parked task waited for has come, or will not.
  void write_again(Task& task) { queue_.add(task); }
  /// Ends a task as lost that is not in a settle call.
  void lose(Task& task, StepEffects& effects) {
    if (task.stage() == TaskStage::disposed) {
      queue_.remove(task);
    }
    finish(task, true, effects);
  }

  /// What to write now. `wall` is written into failures. Each order with tasks is followed by `settled`.
  Order next(SteadyTime now, WallTime wall);
  /// Gives back what was for another try and this host has claimed again before it heard that this is written. It is
  /// to be admitted as whatever else is claimed. What is left of order and results is the caller's to free.
  std::vector<queue::Delivery> settled(Order&& order, std::vector<queue::SettleResult>&& results, SteadyTime now,
                                       StepEffects& effects);
  /// Calls the settler if there is something to write before it wakes by itself.
  void call(SteadyTime now, StepEffects& effects) {
    const SteadyTime due = std::max(queue_.due(now, more_is_coming()), held_until_);
    effects.settler = alarm_.set(due) || effects.settler;
  }

  /// From now on nothing waits for company, and back-offs are over. Calls end by `deadline`.
  void hurry(SteadyTime deadline) {
    hurried_ = true;
    held_until_ = SteadyTime::min();
    call_by_ = std::min(call_by_, deadline);
    for (Channel& one : channels_) {
      one.open_at = SteadyTime::min();
    }
    queue_.hurry();
  }
  /// Each completion is tried once more and not again.
  void try_once() { once_ = true; }
  /// Nothing more is written.
  void end() { ended_ = true; }

  /// Some completions cannot be written, or a call has long had no answer: nothing more should be claimed or started.
  bool blocked(SteadyTime now) const { return refused_anywhere() || (settling_ && now - called_at_ >= kSilence); }
  /// Of settle calls.
  const FailureRun& failures() const { return failures_; }
  /// Something waits, and nothing could be written for long.
  bool cut_off(SteadyTime now) const { return !idle() && failures_.lasts(now); }
  /// Nothing waits, and no call is under way.
  bool idle() const { return !settling_ && queue_.size() == 0; }
  bool under_way() const { return settling_; }

 private:
  // Whether completions of one action are written.
  struct Channel {
    std::uint32_t failures = 0;  ///< calls in a row that wrote none of them
    SteadyTime open_at = SteadyTime::min();
    std::size_t pending = 0;  ///< tasks that wait for it
  };
  // What one call came to for one action.
  struct Tally {
    std::size_t written = 0;
    std::size_t failed = 0;
  };
  using Tallies = std::array<Tally, 4>;

  bool refused_anywhere() const {
    return std::any_of(channels_.begin(), channels_.end(), [](const Channel& one) { return one.failures > 0; });
  }
  Channel& channel(const Task& task) { return channels_[static_cast<std::size_t>(task.disposition.action)]; }
  /// How many may be written now; 0: the budget has them wait until `held_until_`.
  std::size_t affordable(SteadyTime now);
  bool more_is_coming() const;
  bool ready_to_write(Task& task, SteadyTime now);
  void finish(Task& task, bool lost, StepEffects& effects);
  void written(Task& task, std::vector<queue::Delivery>& anew, StepEffects& effects) {
    const std::unique_ptr<queue::Delivery> newer = std::move(task.newer);
    finish(task, false, effects);
    if (newer != nullptr) {
      anew.push_back(std::move(*newer));
    }
  }
  void let_go(Task& task, bool lost) {
    Channel& one = channel(task);
    if (--one.pending == 0) {
      // Nothing is left to find out by whether it works again.
      one = {};
    }
    if (lost && task.finished_here) {
      finished_.remember(task, std::move(task.disposition));
    }
  }
  /// It is to be written yet, and nobody has looked at its lease while it was in a call.
  void not_written(Task& task, bool may_have_happened, StepEffects& effects) {
    task.settling_failed(may_have_happened);
    in_flight_.go_on(task, effects);
    effects.keeper = true;
  }
  void failed(Task& task, const Error& error, StepEffects& effects);
  // Nothing has been tried of it.
  void left(Task& task, std::optional<Duration> wait, SteadyTime now, StepEffects& effects) {
    not_written(task, false, effects);
    FinishedWork::shrink(task);
    --task.tries;
    wait ? queue_.add_again(task, now + *wait) : queue_.add(task);
  }
  void refused(Task& task, const queue::SettleResult& result, StepEffects& effects);
  void judge(const Tallies& tallies, SteadyTime now);
  void try_again(Task& task, SteadyTime now);

  const FailurePolicy& policy_;
  InFlightTable& in_flight_;
  const Workforce& workforce_;
  const ClaimSizer& sizer_;
  Random& random_;
  const Budgets budgets_;

  SettleQueue queue_;
  FinishedWork finished_;
  std::array<Channel, 4> channels_;
  FailureRun failures_;
  Alarm alarm_;
  SteadyTime call_by_ = SteadyTime::max();
  SteadyTime held_until_ = SteadyTime::min();  ///< by a budget
  bool settling_ = false;
  SteadyTime called_at_{};  ///< the call that is under way
  bool hurried_ = false;
  bool once_ = false;
  bool ended_ = false;
};

/// The most leases in one extend call.
inline constexpr std::size_t kMaxExtendBatch = 500;
/// What was finished and cannot be written keeps its lease this long; then others may have it.
inline constexpr Duration kSettlePatience = std::chrono::minutes(5);

/// Decides whose lease is extended: of what runs, and of what is finished and not written yet. What has waited for half
/// its lease is put back. Not thread-safe.
class LeaseKeeper {
 public:
  struct Order {
    std::vector<Task*> tasks;  ///< empty: nothing to do before `wake`
    std::vector<queue::Receipt> receipts;
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return tasks.empty(); }
  };

  LeaseKeeper(InFlightTable& in_flight, Dispatcher& dispatcher, Settler& settler, const Workforce& workforce,
              Random& random)
      : in_flight_(in_flight), dispatcher_(dispatcher), settler_(settler), workforce_(workforce), random_(random) {}

  /// What to extend now. Each order with tasks is followed by `extended`.
  Order next(SteadyTime now);
  void extended(Order order, std::vector<queue::ExtendResult> results, SteadyTime now, StepEffects& effects);
  /// A handler that runs stores progress with its message: a write like an extension, so that only one of them is under
  /// way. A loan that is `ours` is followed by `repaid`; one that is `busy` is asked for again once an extension has
  /// been answered.
  struct Loan {
    enum class State : std::uint8_t { ours, busy, lost };
    State state = State::lost;
    queue::Receipt receipt{};
    SteadyTime deadline{};  ///< of the call; of one that is busy: when it is no longer worth waiting
  };
  Loan lend(Task& task, SteadyTime now);
  /// `bytes`: what was to be stored.
  void repaid(Task& task, const queue::SettleResult& result, std::string_view bytes, SteadyTime now,
              StepEffects& effects);
  /// This host has claimed a message anew that is not as it was when it was claimed before: by another's change, or by
  /// a checkpoint whose answer never came. What it was running for has no lease any more, and is told.
  void overtaken_by(const queue::Delivery& delivery, StepEffects& effects);
  /// The source has taken these deliveries back.
  void taken_back(std::span<const queue::Receipt> receipts, StepEffects& effects);

  /// Somebody has receipts that may become others.
  bool under_way() const { return extending_ || lent_ > 0; }

 private:
  /// Of one that is due.
  bool wants_extension(Task& task, SteadyTime now);
  WorkerBatch& batch_of(const Task& task) const { return *workforce_.seats()[task.seat].batch; }
  // It has been held as long as anybody may. Its handler is told when the lease ends, and then others may have it.
  void let_lapse(Task& task, SteadyTime now);
  SteadyTime next_look(const Task& task) const {
    const bool waits = task.stage() == TaskStage::queued || task.stage() == TaskStage::dealt;
    const bool is_kept =
        task.stage() == TaskStage::disposed && task.lease.extend_at - task.finished_at < kSettlePatience;
    const bool extends = task.receipt_state() == ReceiptState::ours && (waits || is_kept);
    return extends ? task.lease.extend_at : SteadyTime::max();
  }
  SteadyTime retry_at(const Task& task, SteadyTime now);
  /// The call that had its receipt has been answered.
  void answered(Task& task, queue::ExtendResult&& result, SteadyTime now, StepEffects& effects);
  void lose(Task& task, StepEffects& effects);
  /// Ends all of these as lost; what is in a settle call is told by its answer.
  template <typename Which>
  void lose_all(Which which, StepEffects& effects);

  InFlightTable& in_flight_;
  Dispatcher& dispatcher_;
  Settler& settler_;
  const Workforce& workforce_;
  Random& random_;

  bool extending_ = false;
  std::size_t lent_ = 0;
  FailureRun failures_;
};

}  // namespace sluice::work
