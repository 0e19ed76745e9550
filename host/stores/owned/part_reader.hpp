#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/queue/message.hpp"
#include "host/queue/moment.hpp"

namespace sluice::queue::owned {

/// How far a part that goes in order has been read, as places in time: sort keys without their priority. A value.
struct Frontier {
  std::string settled;     ///< what lies up to there was read when nothing could come to lie there any more
  std::string passed;      ///< what lies up to there was read since the last pass began
  std::uint64_t pass = 0;  ///< the number of that pass

  /// Empty for no key.
  static std::string place_of(const std::string& sort) { return sort.empty() ? sort : sort.substr(1); }
};

/// One page to be read of a part: its keys from `from` to `to`, both included. A value.
struct ReadOrder {
  enum class Kind {
    all,      ///< of a part of which little is known to be there: all that is due, from its head
    forward,  ///< of one priority, from its cursor
    front,    ///< what was moved there
    sweep,    ///< what came to lie behind the cursors
    holds,    ///< no messages: which groups wait for an operator
  };
  Kind kind = Kind::all;
  Priority priority = Priority::normal;  ///< of `forward` and `sweep`
  std::string from;
  std::string to;
  bool consistent = false;
  std::size_t limit = 0;  ///< of items; 0: a whole page
  Moment began{};
  bool begins = false;  ///< a sweep begins with it
};

/// What came of it.
struct ReadAnswer {
  std::size_t fresh = 0;  ///< items that were due and not known
  std::size_t due = 0;    ///< items that were due
  std::size_t later = 0;
  std::optional<WallTime> next_due;  ///< of those that were not
  std::string stopped_at;            ///< the last key that was looked at; empty: read to the end
};

/// Decides what is read of a part, and when. Step functions. Not thread-safe.
///
/// Each priority has a cursor, which never passes what is not due. At the tail it goes back by a few seconds each time,
/// for writers that are slow or whose clocks are behind. What comes later still is found by a strongly consistent sweep
/// from the head up to the cursors, at a take-over and every half a minute. A part of which little is there is read
/// from its head anyway, with one request.
///
/// Where groups go in order, what has been read may go out only once nothing can be missing that was there before. A
/// put may come to lie before what has been read already, up to kLate after its time. So the part is read in passes,
/// all priorities alike in the order of time, each from where nothing could come any more when it was read; and what
/// one pass has found goes out once a later one, strongly consistent, has come past it.
class PartReader {
 public:
  static constexpr Duration kLook = std::chrono::seconds(1);    ///< between two looks at the tail
  static constexpr Duration kSweep = std::chrono::seconds(30);  ///< between two sweeps
  static constexpr Duration kLeastSweep = std::chrono::seconds(1);
  static constexpr Duration kTail = std::chrono::seconds(5);  ///< read again at each look
  static constexpr Duration kSettling = std::chrono::seconds(2);
  static constexpr Duration kLate = kTail + kSettling;                   ///< a put, and until every read shows it
  static constexpr Duration kRingPause = std::chrono::milliseconds(20);  ///< between looks that are rung for
  static constexpr Duration kVainRing = std::chrono::milliseconds(200);  ///< the same where there is never anything
  static constexpr int kVainRings = 10;                                  ///< so many may come at once all the same
  static constexpr Duration kFirstFailurePause = std::chrono::milliseconds(50);
  static constexpr Duration kMostFailurePause = std::chrono::seconds(2);
  static constexpr std::size_t kFewBytes = 12 * 1024;  ///< a part of so little is read from its head
  static constexpr std::size_t kFewDelayed = 32;
  /// The groups that wait are read again, less often where they are many.
  static constexpr Duration kHoldsAgain = std::chrono::seconds(1);
  static constexpr std::size_t kHoldsPage = 100;
  static constexpr Duration kKnown = std::chrono::seconds(10);  ///< what was seen is what there is, for so long

  /// `written_before`: somebody owned the part until now, and what he last wrote may not be seen by a read that is not
  /// strongly consistent.
  PartReader(SteadyTime now, bool written_before);

  /// What is known of the part in memory.
  struct Known {
    std::size_t bytes = 0;                           ///< of all its messages, those that are out included
    std::array<std::size_t, kPriorities> waiting{};  ///< that can be handed out, by priority
    std::size_t page = 100;                          ///< so many messages are to be read at once
    bool ordered = false;                            ///< groups go in order
    std::optional<std::size_t> held{};               ///< so many of them wait for an operator; nothing: none ever does
  };
  /// Nothing: there is nothing to be read now. Each order is answered before the next one is asked for.
  std::optional<ReadOrder> next(const Known& known, Moment now);
  void done(const ReadOrder& order, const ReadAnswer& answer, SteadyTime now);
  /// So many groups wait for an operator.
  void holds_read(std::size_t groups, SteadyTime now);
  /// It is tried again after a pause.
  void failed(SteadyTime now);

  /// The pass that an order belongs to; 0: none has begun.
  std::uint64_t pass() const { return pass_; }
  Frontier frontier() const;
  /// What the last pass has found waits for another one, which is made at once; what that one finds in turn waits for
  /// the next look.
  void confirm() { confirm_ = !passing_ && !confirms_; }
  bool pauses(SteadyTime now) const { return now < paused_until_; }

  /// Which groups wait for an operator is not known any more.
  void doubt_holds() { holds_known_ = false; }
  SteadyTime holds_at() const { return holds_at_; }
  /// Something may have come.
  void rung(SteadyTime now);
  /// Something behind the cursors is to be found by then, or a second after the sweep before.
  void sweep_by(SteadyTime time);
  void sweep_now(SteadyTime now) { sweep_at_ = std::min(sweep_at_, now); }

  /// When there may be something to read next, unless something happens before.
  SteadyTime wakes_at(SteadyTime now) const;
  /// There is more than has been read.
  bool behind() const;
  /// How many lie in it that are not due yet, as a look at all of it has found, and how long ago that was.
  struct Later {
    std::size_t records = 0;
    Duration seen_ago{};
  };
  /// Nothing: no look has come to its end, or all that there is has not been looked at for kKnown.
  std::optional<Later> later(SteadyTime now) const;
  /// The last sweep that has come to its end: when it began. What was in memory before and was not seen is gone.
  std::optional<SteadyTime> take_swept();
  /// The whole part was read consistently, what is not due included; there was nothing, and has been nothing since.
  bool found_empty() const { return empty_; }

 private:
  struct Cursor {
    std::string cursor;   ///< empty: before the first key
    bool more = false;    ///< there is more beyond the cursor
    std::string settled;  ///< nothing can come to lie up to there any more that has not been read
    std::string at;       ///< the pass has come to there
    bool read = false;    ///< by the pass
    bool ended = false;   ///< the pass has come to its end
  };
  struct Sweep {
    std::size_t priority = 0;
    std::string from;
    SteadyTime began{};
    std::array<std::string, kPriorities> to{};
  };

  ReadOrder all_order(const Known& known, Moment now, bool consistent);
  ReadOrder forward_order(std::size_t priority, const Known& known, Moment now) const;
  ReadOrder order_from(const std::string& from, std::size_t priority, const Known& known, Moment now) const;
  std::optional<ReadOrder> sweep_order(Moment now);
  std::optional<ReadOrder> look_order(const Known& known, Moment now);
  std::optional<ReadOrder> pass_order(const Known& known, Moment now);
  void begin_pass(WallTime now);
  void pass_done(const ReadOrder& order, const ReadAnswer& answer, SteadyTime now);
  void settle(Cursor& lane, const std::string& from, std::size_t priority, WallTime began) const;
  std::optional<std::size_t> lowest_lane() const;
  void all_done(const ReadOrder& order, const ReadAnswer& answer);
  void look_ended(bool found, SteadyTime now);
  SteadyTime ring_at(SteadyTime now) const;
  bool consistently(SteadyTime now) const { return first_ || now < settled_at_; }

  std::array<Cursor, kPriorities> lanes_;
  SteadyTime settled_at_;
  bool first_ = true;  ///< nothing has been read yet
  bool empty_ = false;
  std::size_t later_ = 0;
  SteadyTime all_seen_at_ = SteadyTime::min();  ///< when `later_` was counted

  SteadyTime look_at_;
  SteadyTime looked_at_ = SteadyTime::min();
  std::optional<std::size_t> looking_;  ///< the next priority of a look at the tails
  bool found_ = false;                  ///< the look has
  std::uint64_t pass_ = 0;
  bool passing_ = false;
  bool confirms_ = false;  ///< the pass, or the last one, was made for what the one before had found
  bool confirm_ = false;   ///< the next one is
  std::string found_to_;   ///< so far the pages of the pass go that brought something
  std::string target_;     ///< a pass that confirms ends there

  bool rung_ = false;
  SteadyTime rung_at_ = SteadyTime::min();
  SteadyTime asked_at_ = SteadyTime::min();      ///< what is rung for since is not seen by the look that is under way
  SteadyTime vain_until_ = SteadyTime::min();    ///< so much has been looked in vain
  SteadyTime narrow_until_ = SteadyTime::min();  ///< too much that is not due lies between

  SteadyTime front_at_;
  bool holds_known_ = false;
  SteadyTime holds_at_{};  ///< where any group waits
  SteadyTime sweep_at_;
  SteadyTime swept_at_ = SteadyTime::min();  ///< when the last one began
  std::optional<Sweep> sweep_;
  std::optional<SteadyTime> swept_;

  SteadyTime paused_until_ = SteadyTime::min();
  Duration pause_{};
};

}  // namespace sluice::queue::owned
