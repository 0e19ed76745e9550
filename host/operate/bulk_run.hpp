#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "host/operate/filter.hpp"
#include "host/operate/table_tariff.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// One change for every message, whose id and version are filled in; or edits of the content.
using BulkWork = std::variant<queue::Change, std::vector<queue::ContentEdit>>;

/// Messages that handlers have at work, by half and id: the label of the host.
using AtWork = std::map<std::pair<queue::Half, std::string>, std::string>;

/// Why a message is left alone that somebody works on, by its record or as hosts tell; nothing: nobody does.
std::optional<Error> in_flight(const queue::StoredMessage& message, const AtWork& at_work, WallTime now);

struct BulkPlan {
  queue::Half half = queue::Half::standard;
  Filter filter;
  BulkWork work;
  /// Messages in flight too; otherwise they are left alone.
  bool force = false;
  /// For what removes everything: in whatever state, and whoever has changed it since it was listed, as long as it lies
  /// in that half.
  bool unconditional = false;
  bool dry_run = false;   ///< changes nothing, and says what would be changed and what that would cost
  std::size_t limit = 0;  ///< messages to be changed at most; 0: no limit
  double rate = 0;        ///< changes a second at most; 0: no limit
  std::size_t page = 250;
  std::size_t batch = 25;
  bool consistent = false;  ///< as ListRequest's: also what was written just now, where an index lags behind
  std::string cursor;       ///< the page to begin at; empty: the first one
  std::string after;        ///< of that page, what comes up to this message is done; empty: nothing
  /// These messages instead of those of a half, wherever they lie; one that is not there has failed.
  std::vector<std::string> ids;
  bool this_half_only = false;  ///< of `ids`: those of the other half are left alone
  /// For what is meant for messages in flight, or for whatever has become of one: nobody is spared, and no version is
  /// asked for.
  bool any_state = false;
  TableTariff tariff{};  ///< by which a dry run prices it
  /// Asks the hosts what is in flight, where no record tells; null: records do.
  std::function<AtWork()> at_work;

  /// A purge.
  static BulkPlan removal_of_all(queue::Half half);
  /// As `BulkRun::resume_token` of a run that was stopped says: its page, and what is left of its limit. `invalid` for
  /// one that says that nothing is left.
  Result<void> resume_at(const std::string& token);
};

/// Spreads the changes of a bulk run over time, at most so many a second. Not thread-safe: it is given the time.
class Pace {
 public:
  /// `rate` a second; 0 or less: no limit.
  explicit Pace(double rate) : rate_(rate) {}

  /// How large a batch may be so that it comes at least four times a second.
  std::size_t batch(std::size_t most) const {
    return rate_ <= 0 ? most : static_cast<std::size_t>(std::clamp(rate_ / 4, 1.0, static_cast<double>(most)));
  }
  /// When the next batch may begin.
  SteadyTime next() const { return next_; }
  /// So many were changed in a batch that began at `now`.
  void took(std::size_t count, SteadyTime now) {
    if (rate_ > 0) {
      const std::chrono::duration<double> seconds(static_cast<double>(count) / rate_);
      next_ = std::max(next_, now) + std::chrono::duration_cast<Duration>(seconds);
    }
  }

 private:
  double rate_;
  SteadyTime next_{};
};

/// What became of one message that the filter matched.
struct BulkOutcome {
  enum class Fate { done, planned, skipped, failed };
  std::string id;
  Fate fate = Fate::done;
  bool was_in_flight = false;  ///< whoever works on it has lost it, or would
  /// Why it was skipped (ErrorCode::not_found: it is not in the queue any more) or has failed, in one line.
  Error error;
};

struct BulkCount {
  std::uint64_t seen = 0;  ///< looked at
  std::uint64_t matched = 0;
  std::uint64_t done = 0;  ///< in a dry run: would be changed
  std::uint64_t skipped = 0;
  std::uint64_t failed = 0;
};

/// Changes the messages of one half of a queue that a filter matches and that were there when it began.
///
/// A step class: each `step` is one request to list, or one batch of changes, so that its caller can stop between two.
/// One thread. A message that somebody changes in between is skipped; failures of single messages are counted, while
/// one that hits a whole batch and is the store's (unreachable, denied, throttled ...) stops the run.
class BulkRun {
 public:
  struct Step {
    enum class State {
      more,      ///< call again
      wait,      ///< call again at `until`: the rate limit
      finished,  ///< there is no more, or the limit is reached
      failed,    ///< see `error`; calling again tries again
    };
    State state = State::more;
    SteadyTime until{};
    Error error;
    std::vector<BulkOutcome> outcomes;
  };

  /// The references outlive the run.
  BulkRun(queue::Operator& queue, const Clock& clock, BulkPlan plan);

  Step step();

  const BulkCount& count() const { return count_; }
  /// What the changes of a dry run would cost at DynamoDB.
  const cost::Spent& planned_cost() const { return planned_; }
  /// True when there is nothing more to be done.
  bool complete() const { return next_ == found_.size() && listed_all_; }
  /// With which a later run goes on: at the page that this one has not finished, with the rest of its limit. Empty: the
  /// same plan does.
  std::string resume_token() const;

 private:
  std::size_t page_size() const;
  Step list();
  Step find();
  Step apply();
  bool arrived_later(const queue::StoredMessage& message) const;
  /// The next messages in turn, without those that are left alone; their outcomes go into `step`.
  std::vector<const queue::StoredMessage*> take_batch(Step& step);
  std::vector<queue::ChangeResult> change(std::span<const queue::StoredMessage* const> batch);
  std::vector<queue::ChangeResult> edit(std::span<const queue::StoredMessage* const> batch);
  void put_down(Step& step, const queue::StoredMessage& message, const queue::ChangeResult& result);
  /// Counts what became of a message, and tells it.
  void tell(Step& step, std::string id, BulkOutcome::Fate fate, Error error, bool was_in_flight = false);
  bool is_at_work(const queue::StoredMessage& message) const;
  void learn_what_is_at_work(SteadyTime now);
  bool limit_reached() const { return plan_.limit > 0 && count_.done >= plan_.limit; }
  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(30)); }

  // Fixed after construction.
  queue::Operator& queue_;
  const Clock& clock_;
  const BulkPlan plan_;
  std::string after_;  ///< see BulkPlan::after; empty once its page has been listed
  const WallTime began_;

  Pace pace_;
  AtWork at_work_;  // as BulkPlan::at_work told last
  SteadyTime at_work_again_ = SteadyTime::min();
  BulkCount count_;
  cost::Spent planned_;
  std::string page_cursor_;  // of the page in `found_`
  std::string list_cursor_;  // of the page after it
  bool listed_all_ = false;
  std::vector<queue::StoredMessage> found_;  // what of the page is to be changed
  std::size_t next_ = 0;                     // in found_
  std::size_t next_id_ = 0;                  // in plan_.ids
};

}  // namespace sluice::operate
