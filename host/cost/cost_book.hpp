#pragma once

#include <boost/core/noncopyable.hpp>

#include "base/mutex.hpp"
#include "host/cost/prices.hpp"
#include "host/queue/source.hpp"

namespace sluice::cost {

/// Keeps what this host spends on one queue below a number of units a second: a token bucket that holds a second's
/// worth. What DynamoDB's answers report is taken out afterwards; a debt is paid back by waiting. Settlements begin as
/// soon as there is no debt, claims while a quarter of the bucket is left; extensions do not wait. Thread-safe; is told
/// the time.
class UnitBudget {
 public:
  /// Units a second; 0: no limit.
  struct Limits {
    double write_units = 0;
    double read_units = 0;
  };
  UnitBudget(const Limits& limits, SteadyTime now);

  /// This was spent.
  void charge(const Spent& spent, SteadyTime now);

  /// A call that waits for it.
  enum class Call : std::uint8_t { claim, settlement };
  /// When one may begin; at most `now`: at once.
  SteadyTime ready_at(Call call, SteadyTime now);
  /// And for how many messages, by what those before have cost.
  std::size_t most(Call call, SteadyTime now) const;
  /// What one of so many messages has cost.
  void learn(Call call, std::size_t messages, const Spent& spent);

  const Limits& limits() const { return limits_; }
  /// Somebody waits for it at this moment.
  bool holds(SteadyTime now) const {
    const MutexLock lock(mutex_);
    return held_until_ > now;
  }
  /// How long somebody has waited for it, all in all.
  Duration waited(SteadyTime now) const {
    const MutexLock lock(mutex_);
    return waited_ - std::max(held_until_ - now, Duration::zero());
  }

 private:
  class Bucket {
   public:
    Bucket(double rate, SteadyTime now);
    void take(double units, SteadyTime now);
    /// When `share` of a full bucket is there.
    SteadyTime ready_at(double share, SteadyTime now) const;
    /// How many messages it has room for; 1 at least.
    double room(double per_message, SteadyTime now) const;

   private:
    double tokens(SteadyTime now) const;

    // Fixed after construction.
    double rate_;
    double capacity_;

    double tokens_;
    SteadyTime filled_at_;
  };
  /// What a message has cost of late; nothing: nobody knows yet.
  using PerMessage = std::optional<Spent>;

  // Fixed after construction.
  const Limits limits_;

  mutable Mutex mutex_;
  Bucket writes_ SLUICE_GUARDED_BY(mutex_);
  Bucket reads_ SLUICE_GUARDED_BY(mutex_);
  std::array<PerMessage, 2> costs_ SLUICE_GUARDED_BY(mutex_);  ///< by call
  SteadyTime held_until_ SLUICE_GUARDED_BY(mutex_){};
  Duration waited_ SLUICE_GUARDED_BY(mutex_){};
};

/// What was used in the last hour, by the minute. Not thread-safe: its owner's lock guards it.
class HourRing {
 public:
  void add(const Usage& usage, SteadyTime now);
  /// The minute that `now` lies in and the 59 before it.
  Usage sum(SteadyTime now) const;

 private:
  static constexpr std::size_t kMinutes = 60;
  struct Minute {
    std::int64_t number = -1;  ///< since the clock's epoch
    Usage usage;
  };

  std::array<Minute, kMinutes> minutes_{};
};

/// What the values of an attribute have used: the dearest ones, by the Space-Saving algorithm, one by one, the others
/// as one. What is told of a value is what it used since it is told one by one, so that each figure only grows; one
/// whose place another takes begins at nothing should it come back. Not thread-safe: its owner's lock guards it.
class TopValues {
 public:
  struct Named {
    std::string value;
    Usage usage;
  };
  struct View {
    std::vector<Named> values;  ///< the dearest first
    Usage other;                ///< of those that were not told one by one at the time
    Usage gone;                 ///< of those that were, and are not any more
  };

  /// At most `shown` are told one by one.
  explicit TopValues(std::size_t shown) : shown_(shown) {}

  /// `weight`: by what the dearest are found.
  void add(const std::string& value, const Usage& usage, double weight);
  View view() const;

 private:
  struct Entry {
    double rank = 0;
    bool shown = false;
    Usage usage;  ///< since it is shown
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Entry& entry_of(const std::string& value);
  bool takes_a_place(Entry& entry);
  Entries::iterator lowest(bool shown);

  // Fixed after construction.
  const std::size_t shown_;

  Entries entries_;
  std::size_t shown_now_ = 0;
  Usage other_;
  Usage gone_;
};

/// Told instead of an attribute's value: it has none; a claim found nothing; it is not told one by one.
inline constexpr std::string_view kNoValue = "(none)";
inline constexpr std::string_view kIdle = "(idle)";
inline constexpr std::string_view kOtherValues = "(other)";
/// What no job has caused by itself: notices of hosts, counting, schedules, commands.
inline constexpr std::string_view kShared = "(shared)";

/// What a host has spent, as it stands. A value.
struct CostView {
  struct Row {
    std::string queue;
    std::string job;  ///< kShared: of none
    Usage total;      ///< since the host's start
    Usage hour;       ///< of the last hour
  };
  struct Budget {
    std::string queue;
    UnitBudget::Limits limits;
    bool holds = false;
    Duration waited{};
  };

  std::vector<Row> rows;  ///< by queue and job
  std::string attribute;  ///< empty: none is told apart
  TopValues::View values;
  std::vector<Budget> budgets;
  Duration covered{};  ///< of the last hour: shorter in a host's first one
};

/// Who spends how much: written by the stores' observers, and by the sources of jobs, who know for which queue, job and
/// messages a call was made. Thread-safe. Lives longer than what it is told by.
class CostBook : boost::noncopyable {
 public:
  using Names = std::pair<std::string, std::string>;  ///< of queue and job

  CostBook(const config::HostConfig& host, const Clock& clock);

  /// A store's answer reported this, in a call about that queue; on the thread that made the call.
  void spent(const std::string& queue, const Spent& spent);

  /// A job has used this of a queue, and of it that for messages with this value of the attribute.
  void add(const Names& names, const Usage& usage);
  void add_value(const std::string& value, const Usage& usage);
  /// What its spending is held by; null where the host file has no limits of it.
  UnitBudget* budget(const std::string& queue) const;

  const Prices& prices() const { return prices_; }
  const std::string& attribute() const { return attribute_; }
  const Clock& clock() const { return clock_; }
  CostView view() const;

 private:
  struct Entry {
    Usage total;
    HourRing hour;
  };

  // Fixed after construction.
  const Prices prices_;
  const std::string attribute_;
  const Clock& clock_;
  const SteadyTime begun_;
  std::map<std::string, std::unique_ptr<UnitBudget>> budgets_;  // which synchronise themselves

  mutable Mutex mutex_;
  std::map<Names, Entry> entries_ SLUICE_GUARDED_BY(mutex_);
  TopValues values_ SLUICE_GUARDED_BY(mutex_);
};

/// The source of one job's queue, whose calls are put down to the job: each call's consumed capacity to its name and,
/// where an attribute is told apart, to the messages of the call by their size in begun KiB. A claim waits for the
/// queue's budget: it then finds nothing, and says when to ask again. `book` outlives the source.
std::unique_ptr<queue::Source> metered(std::unique_ptr<queue::Source> source, CostBook& book, std::string job,
                                       std::string queue);

}  // namespace sluice::cost
