#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamomq/times.hpp"

namespace sluice::queue::dynamomq {

/// What to read next from the index partition of a queue half.
struct ScanStep {
  enum class Kind {
    head,      ///< from the oldest record
    onward,    ///< where the last step ended
    tail,      ///< what is newer than the end last reached, with a margin
    unsorted,  ///< records whose sent_at is no timestamp and sorts behind every one
  };
  Kind kind = Kind::head;
  std::string from;    ///< lowest sort key, inclusive; empty: none
  std::string to;      ///< highest sort key, inclusive; empty: none
  dynamo::Item after;  ///< where to go on; empty: at `from`
  std::int64_t limit = 0;
  Moment at;
};

/// What a step found.
struct ScanFinding {
  std::size_t items = 0;
  std::size_t ready = 0;
  std::size_t invisible = 0;  ///< due by sent_at, but in flight or put off
  std::size_t future = 0;     ///< sorted behind this moment
  double read_units = 0;
  dynamo::Item last_key;               ///< empty: nothing more
  std::optional<WallTime> next_due;    ///< when the first of the invisible ones comes due
  std::optional<WallTime> future_due;  ///< the same of those behind this moment
};

/// Decides where to read, so that the in-flight records at the head are not read again for every claim.
///
/// A pass goes from the head to the end of what is due, a page at a time, as claims ask for more. Then the tail is read
/// for new arrivals. A sweep (a new pass from the head) finds what came due behind the cursor: expired leases of
/// others, their retries, late writers. It happens when the first record seen invisible comes due, and blindly every
/// kSweepInterval (jittered, longer where a sweep is dear); while the head is light it replaces reading the tail, so
/// that nothing is ever missed in a small queue. Step function: no clock, no thread, no I/O. Not thread-safe.
class HeadScanner {
 public:
  static constexpr Duration kSweepInterval = std::chrono::seconds(10);
  static constexpr Duration kLongestSweepInterval = std::chrono::seconds(60);
  static constexpr Duration kSweepGap = std::chrono::seconds(1);
  static constexpr double kBlindUnitsPerSecond = 5;                 ///< what blind sweeps may read, on average
  static constexpr double kDueUnitsPerSecond = 25;                  ///< what sweeps for a known due time may read
  static constexpr double kLightUnits = 2;                          ///< of in-flight records at the head
  static constexpr Duration kTailMargin = std::chrono::seconds(2);  ///< clock skew of senders, delay of the index
  static constexpr Duration kUnsortedInterval = std::chrono::seconds(60);
  static constexpr std::int64_t kSmallestPage = 25;
  static constexpr std::int64_t kLargestPage = 500;
  static constexpr std::int64_t kLargestLimit = 1'000;
  static constexpr Duration kQuickRefill = std::chrono::seconds(2);

  explicit HeadScanner(Random& random) : random_(random) {}

  /// The step that a claim of `want` messages needs.
  ScanStep next(Moment now, std::size_t want);
  /// The extra step for unsorted records, where passes do not cover them; nothing while it is not its time.
  std::optional<ScanStep> next_unsorted(Moment now);
  void absorb(const ScanStep& step, const ScanFinding& finding);

  /// True when the pass has seen all that is due.
  bool at_end() const { return position_ == Position::end; }
  /// How long until the first record that was seen hidden is looked for; nothing where none was.
  std::optional<Duration> next_due(Moment now) const;
  /// Something behind the cursor comes due then.
  void expect(WallTime due);
  /// Candidates from this sort key on were dropped unclaimed; read them again. They were too many.
  void rewind(std::string sort_key);
  /// Forgets all.
  void restart();

 private:
  enum class Position { begin, middle, end };

  bool sweep_due(Moment now) const;
  void begin_sweep(Moment now);
  std::int64_t limit(Moment now, std::size_t want, bool refill);
  void absorb_end(const ScanStep& step, const ScanFinding& finding);

  Random& random_;
  Position position_ = Position::begin;
  dynamo::Item resume_after_;
  std::string resume_from_;
  WallTime end_reached_{};

  bool sweeping_ = false;   // the pass began at the head
  double pass_weight_ = 0;  // read units spent on invisible records in this pass
  double head_weight_ = 0;  // the same, of a whole pass
  std::optional<WallTime> next_due_;
  std::optional<WallTime> future_due_;  // of what lies behind the end of the last pass
  SteadyTime blind_sweep_at_{};
  SteadyTime earliest_sweep_at_{};

  // While little lies in the future, steps have no upper bound and so cover unsorted records too.
  bool bounded_ = false;
  SteadyTime unsorted_at_{};

  std::int64_t page_ = kSmallestPage;
  double ready_share_ = 1;
  SteadyTime last_step_at_{};
};

/// The highest sort key of a message that is due at `now`: the end of its second, because a fraction may be trimmed.
std::string due_bound(WallTime now);

}  // namespace sluice::queue::dynamomq
