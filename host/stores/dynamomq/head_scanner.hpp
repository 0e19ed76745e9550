#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.hpp"
#include "base/guard.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_clock.hpp"

namespace sluice::queue::dynamomq {

/// Makes it the earlier one of both, as far as there are such.
template <typename Time>
void sooner(std::optional<Time>& time, std::type_identity_t<std::optional<Time>> other) {
  if (other && (!time || *other < *time)) {
    time = other;
  }
}

/// Records that lie next to each other in the index, up to and with the sort key `to`.
struct Stretch {
  std::string to;
  double units = 0;             ///< that reading its hidden records takes
  std::optional<WallTime> due;  ///< when the first record that others hide comes due; nothing: none does
};

/// What a host knows of the records that it has passed, from the head of the index on: where they lie, what it takes to
/// read them again, and when that will be worth it. The stretches follow each other without a gap. A value; not
/// thread-safe.
class HeadMap {
 public:
  /// Where to read again.
  struct Place {
    std::string from;    ///< inclusive; empty: from the start
    std::string to;      ///< inclusive
    dynamo::Item after;  ///< where an earlier reading broke off; empty: at `from`
  };

  void clear() { stretches_.clear(); }
  bool empty() const { return stretches_.empty(); }
  /// That reading all hidden records takes.
  double units() const;

  /// Records behind all that are known, or with the key of the last one. Where they are read `again`, what is known of
  /// them only learns when it is due.
  void append(const Stretch& stretch, bool again, SteadyTime now);
  /// Nobody has read what lies between the last one known and this key.
  void append_unread(const std::string& to);
  /// The stretch up to that key was read, as far as `rest` (empty: to its end), and this was there.
  void replace(const std::string& to, const std::vector<Stretch>& found, const dynamo::Item& rest, table::Moment now);
  /// The record with that key comes due then; one behind the map is none of its business.
  void expect(std::string_view sort_key, WallTime due);
  /// Any record may be due.
  void expect_anywhere(WallTime due);

  /// When the first stretch is due; nothing: none is.
  std::optional<WallTime> first_due() const;
  /// The stretch that has been due longest; nothing: none is.
  std::optional<Place> due(WallTime now) const;
  /// The stretch that was not read for the longest time, and not since `time`; nothing: there is none.
  std::optional<Place> stale(SteadyTime time) const;

 private:
  struct Known {
    double units = 0;
    std::optional<WallTime> due;
    SteadyTime read_at{};  // the epoch: never
    dynamo::Item after{};
  };
  using Stretches = std::map<std::string, Known, std::less<>>;  // by their last key

  Place place_of(Stretches::const_iterator stretch) const;
  /// The one that is due first.
  Stretches::const_iterator first() const;

  Stretches stretches_;
};

/// What may be spent on reading that finds nothing to do. It fills with time, and may be overdrawn once. A value.
class ReadPurse {
 public:
  ReadPurse(double per_second, double most) : per_second_(per_second), most_(most), units_(most) {}

  /// Whether something may be spent.
  bool open(SteadyTime now) const { return held(now) > 0; }
  /// How long until it is.
  Duration wait(SteadyTime now) const;
  void spend(double units, SteadyTime now);

 private:
  double held(SteadyTime now) const;

  double per_second_;
  double most_;
  double units_;
  SteadyTime at_{};  // when something was spent last
};

/// What to read next from the index partition of a queue half.
struct ScanStep {
  enum class Kind {
    head,      ///< from the oldest record
    onward,    ///< where the last step ended
    tail,      ///< what is newer than the end last reached, with a margin
    due,       ///< a stretch behind the cursor in which something has come due
    blind,     ///< one in which something may have, that nobody could foresee
    leap,      ///< a few records far ahead, to find where the head ends
    front,     ///< the first few records, for what has come to lie before all that is known
    unsorted,  ///< records whose sent_at is no timestamp and sorts behind every one
  };
  Kind kind = Kind::head;
  std::string from{};    ///< lowest sort key, inclusive; empty: none
  std::string to{};      ///< highest sort key, inclusive; empty: none
  dynamo::Item after{};  ///< where to go on; empty: at `from`
  std::int64_t limit = 0;
  table::Moment at{};

  /// Whether it looks behind the cursor, and so tells nothing of what lies before it.
  bool looks_back() const { return kind == Kind::due || kind == Kind::blind; }
};

/// What a step found.
struct ScanFinding {
  std::size_t items = 0;
  std::size_t ready = 0;
  bool ends_fresh = false;  ///< the last record is ready, and nobody here knew of it
  std::size_t future = 0;   ///< sorted behind this moment
  double read_units = 0;
  dynamo::Item last_key;               ///< empty: nothing more
  std::vector<Stretch> stretches;      ///< what lies there and is not in the future, in order
  std::optional<WallTime> future_due;  ///< when the first of those behind this moment comes due
};

/// Decides where to read, so that the in-flight records at the head are not read again for every claim.
///
/// A pass goes from the head to the end of what is due, a page at a time, as claims ask for more. Then the tail is read
/// for new arrivals. While the head is light each claim begins a new pass instead, so that nothing is ever missed in a
/// small queue. A heavy one is remembered (HeadMap): a stretch of it is read again when a lease in it has run out, and
/// blindly, the one that was read longest ago first, for what nobody could foresee: retries of others, late writers,
/// operators. Each kind has its purse, so that the price of looking back does not grow with the head. A pass that meets
/// nothing but hidden records for too long leaps to where the first ready ones are, and leaves what it passed over to
/// the purse. Step function: no clock, no thread, no I/O. Not thread-safe.
class HeadScanner {
 public:
  // Units a second that looking back may read where it finds nothing, and what it may have saved up.
  static constexpr double kDueUnitsPerSecond = 3;
  static constexpr double kDueUnitsSaved = 550;
  static constexpr double kBlindUnitsPerSecond = 2;
  static constexpr double kBlindUnitsSaved = 50;
  static constexpr Duration kBlindInterval = std::chrono::seconds(10);  ///< after a stretch was read, at least
  static constexpr double kLightUnits = 2;                              ///< of in-flight records at the head
  static constexpr double kLeapAfterUnits = 50;  ///< of nothing but hidden records at the begin of a pass
  static constexpr int kMostLeaps = 48;          ///< in a row; they halve the time that is left
  static constexpr std::int64_t kLeapLimit = 10;
  static constexpr Duration kLeapPrecision = std::chrono::milliseconds(10);
  static constexpr Duration kTailMargin = std::chrono::seconds(2);  ///< clock skew of senders, delay of the index
  // While a pass is under way or a heavy head is passed over, the first records are looked at now and then all the
  // same.
  static constexpr Duration kFrontInterval = std::chrono::milliseconds(800);
  static constexpr std::int64_t kFrontLimit = 4;  ///< of at most 1 KB each they cost the least that is billed
  static constexpr Duration kUnsortedInterval = std::chrono::seconds(60);
  static constexpr std::int64_t kSmallestPage = 25;
  static constexpr std::int64_t kLargestPage = 500;
  static constexpr std::int64_t kLargestLimit = 1'000;
  static constexpr std::int64_t kBackLimit = 250;
  static constexpr Duration kQuickRefill = std::chrono::seconds(2);

  /// The step that a claim of `want` messages needs.
  ScanStep next(table::Moment now, std::size_t want);
  /// The extra step for unsorted records, where passes do not cover them; nothing while it is not its time.
  std::optional<ScanStep> next_unsorted(table::Moment now);
  /// The extra step for what was moved to the front or has an older `sent_at` than all that is known; nothing while it
  /// is not its time. As long as such a step ends with something new, the next one goes on at once where it ended.
  std::optional<ScanStep> next_front(table::Moment now);
  /// The next step of a claim reads from the oldest record on.
  bool begins_at_head() const {
    return position_ == Position::begin || (position_ == Position::end && (light() || !SLUICE_GUARD(head_remembered)));
  }
  void absorb(const ScanStep& step, const ScanFinding& finding);

  /// True when the pass has seen all that is due.
  bool at_end() const { return position_ == Position::end; }
  /// How long until the first record that was seen hidden is looked for; nothing where none was.
  std::optional<Duration> next_due(table::Moment now) const;
  /// The record with that sort key comes due then, behind the cursor.
  void expect(std::string_view sort_key, WallTime due) { map_.expect(sort_key, due); }
  /// Something behind the cursor comes due then; nobody knows where it lies.
  void expect(WallTime due) { sooner(anywhere_due_, due); }
  /// Candidates with these sort keys were dropped unclaimed; read them again. They were too many.
  void rewind(const std::vector<std::string>& sort_keys);
  /// Forgets all.
  void restart();

 private:
  enum class Position { begin, middle, end };

  /// The search for the end of the head, by time.
  struct Leap {
    std::string low;  ///< up to there nothing but hidden records was seen
    WallTime high{};  ///< there something ready was seen, or nothing
    int made = 0;
  };

  bool light() const { return map_.units() <= kLightUnits; }
  void begin_pass();
  std::optional<ScanStep> look_back(table::Moment now);
  void absorb_back(const ScanStep& step, const ScanFinding& finding);
  void absorb_front(const ScanStep& step, const ScanFinding& finding);
  void absorb_leap(const ScanStep& step, const ScanFinding& finding);
  std::int64_t limit(table::Moment now, std::size_t want, bool refill);

  Position position_ = Position::begin;
  dynamo::Item resume_after_;
  std::string resume_from_;
  WallTime end_reached_{};

  HeadMap map_;
  ReadPurse due_purse_{kDueUnitsPerSecond, kDueUnitsSaved};
  ReadPurse blind_purse_{kBlindUnitsPerSecond, kBlindUnitsSaved};
  bool looked_back_ = false;  // the last step did
  std::optional<WallTime> anywhere_due_;
  std::optional<WallTime> future_due_;  // of what lies behind the end of the last pass

  double fruitless_ = 0;  // units of this pass
  bool leaps_ = true;     // the pass is at its begin and has met nothing ready
  std::optional<Leap> leap_;

  // While little lies in the future, steps have no upper bound and so cover unsorted records too.
  bool bounded_ = false;
  SteadyTime unsorted_at_{};
  SteadyTime front_at_ = SteadyTime::min();
  std::int64_t front_limit_ = kFrontLimit;
  dynamo::Item front_after_;  // where the last look at the front broke off; empty: it did not

  std::int64_t page_ = kSmallestPage;
  double ready_share_ = 1;
  SteadyTime last_step_at_{};
};

/// The highest sort key of a message that is due at `now`: the end of its second, because a fraction may be trimmed.
std::string due_bound(WallTime now);

}  // namespace sluice::queue::dynamomq
