#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/operate/table_tariff.hpp"
#include "host/queue/notice_board.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"

/// How a message that is on its way from one queue to another is told from all others. Pure functions and values.
///
/// On both sides it is hidden a hundred years beyond the time at which it would be seen by itself: nobody is handed it,
/// and the time can be had back. The copy in the target says besides which move it is of, in `updated_at`, which the
/// change that shows it writes anew.
namespace sluice::operate {

/// From where to where, as the notice boards of both sides name their places. A value.
struct MovePair {
  std::string from;
  std::string from_place;
  std::string to;
  std::string to_place;

  /// "orders in FILE", for people.
  std::string target() const { return to + " in " + to_place; }
  /// What a hidden copy of this move says in its `updated_at`. Two moves have another one each.
  WallTime stamp() const;
};

/// Whether it is the hidden copy of a message that this move carries.
bool is_copy_of(const queue::StoredMessage& record, const MovePair& pair);

/// Whether two times may be one: a leased table keeps whole milliseconds, and rounds down.
bool same_millisecond(WallTime one, WallTime other);

/// Until when a move hides a message that is found so, in the source or as the copy of what lies there.
WallTime moving_until(const queue::StoredMessage& found, WallTime now);

/// The two queues of a move, and the boards by whose clocks their records are dated. All outlive whoever has this.
struct MoveEnds {
  queue::Operator& from;
  queue::Operator& to;
  const queue::NoticeBoard& from_board;
  const queue::NoticeBoard& to_board;
  /// Of a source whose hosts hand out what they have read without asking again; `from` is then its operator. Null:
  /// whoever hands a message out there writes it.
  queue::MoveOwnership* ownership = nullptr;
};

/// Carries one batch of messages from one queue to another, in four writes, each of which may be repeated:
///
///   take    hide it in the source, if it still has the version that was listed: from here on no consumer gets it
///   put     write the whole record into the target, hidden as well, if the id is free there
///   remove  take it out of the source, if it still has the version that the taking gave it
///   show    make it seen in the target, if it still has the version that was put
///
/// Nobody can work on it in either queue before the last write, and it is never in neither, so that wherever a mover
/// ends, what it left says how to go on: taken and not in the target: put it; in both: remove it from the source; only
/// in the target and hidden: show it. What cannot be put is seen in the source again, as it was.
///
/// A step class; one thread.
class MoveBatch {
 public:
  enum class Fate {
    carried,
    left,     ///< it stays in the source, because somebody took or changed it first; another look will tell
    refused,  ///< the target does not take it; it is in the source again, as it was
  };
  struct Outcome {
    std::string id;
    std::string group;
    queue::Half half = queue::Half::standard;
    Fate fate = Fate::carried;
    bool doubtful = false;  ///< left, and it may be taken all the same: the answer was lost
    Error error;            ///< refused: why
  };

  MoveBatch(MoveEnds ends, MovePair pair) : ends_(ends), pair_(std::move(pair)) {}

  /// A message as it was listed, with its native form; `taken`: by a run before, or in one whose answer was lost.
  void add(queue::StoredMessage record, bool taken);
  bool empty() const { return parcels_.empty(); }
  std::size_t size() const { return parcels_.size(); }

  /// The next write, for all that are at it. True: the batch has come to its end. An error is the store's: nothing is
  /// lost by it, and calling again goes on.
  Result<bool> step(Deadline deadline);
  /// What became of them, once.
  std::vector<Outcome> take_outcomes();

 private:
  enum class Stage { found, unsure, taken, put, removed, withdrawn, returned, ended };
  struct Parcel {
    queue::StoredMessage record;  ///< as it was before anybody took it
    Stage stage = Stage::found;
    std::int64_t taken = 0;   ///< the source's version since it is taken
    std::int64_t copied = 0;  ///< the target's version since it is put
    bool made_here = false;   ///< this batch wrote the copy
    bool put_doubt = false;   ///< a put failed, and may have taken effect all the same
    bool gone_doubt = false;  ///< the same of a removal from the source
    bool held_back = false;   ///< it goes back, because one before it in its group stays
    Outcome outcome;
  };

  std::vector<Parcel*> at(Stage stage);
  Result<void> confirm(Deadline deadline);
  Result<void> take(Deadline deadline);
  std::vector<Parcel*> may_be_taken();
  Result<void> put(Deadline deadline);
  Result<void> meet(Parcel& parcel, Deadline deadline);
  Result<void> remove(Deadline deadline);
  using ChangeOf = std::function<queue::Change(const Parcel& parcel)>;
  using Went = std::function<void(Parcel& parcel, const queue::ChangeResult& result)>;
  static Went unless_failed(void (*went)(Parcel& parcel));
  /// Changes these at that end; what comes of each goes to `went`, and the worst of what failed is told.
  Result<void> change_each(const std::vector<Parcel*>& parcels, queue::Operator& end, const ChangeOf& change_of,
                           const Went& went, Deadline deadline);
  Result<void> show(Deadline deadline);
  Result<void> withdraw(Deadline deadline);
  Result<void> give_back(Deadline deadline);
  queue::StoredMessage copy_of(const Parcel& parcel) const;
  void refuse(Parcel& parcel, Error error);
  static void leave(Parcel& parcel);
  void keep_order(const Parcel& stays);

  const MoveEnds ends_;
  const MovePair pair_;
  std::vector<Parcel> parcels_;
};

/// Who moves, as the notice of a move tells it. A value.
struct MoverName {
  std::string machine;
  std::int64_t pid = 0;
  std::string process{};  ///< its process_mark: whoever is on the same machine sees whether it lives
};

/// The notice of a move on the board of the queue that is moved from: which move it is, so that no other one takes what
/// this one has taken; and whether somebody is at it, so that no two are.
///
/// It stands until the queue has nothing that is taken, beyond the life of whoever posted it: a mover that finds one of
/// its own pair takes up what the one before it has left. A step class; one thread.
class MoveNotice {
 public:
  /// A mover tells that often that it lives, and may rely on the last time for kRely.
  static constexpr Duration kEvery = std::chrono::seconds(5);
  static constexpr Duration kRely = std::chrono::seconds(10);
  /// Who has not told for so long has ended, or may rely on nothing.
  static constexpr Duration kSilent = std::chrono::seconds(15);

  /// The references outlive it.
  MoveNotice(queue::NoticeBoard& board, const Clock& clock, MovePair pair, MoverName self);

  struct Entry {
    bool ours = false;
    bool found = false;  ///< ours: there was one already, so that something may be taken
    /// Not ours: another mover of the pair may be at work; ask again then.
    SteadyTime again{};
  };
  /// ErrorCode::conflict where the queue is being moved elsewhere, or somebody is at this very move; others of the
  /// board.
  Result<Entry> enter(Deadline deadline);
  // Once it is ours.

  /// Tells that the mover lives, when it is time to. ErrorCode::conflict when somebody else has the move by now.
  Result<void> keep(Deadline deadline);
  SteadyTime tells_next() const { return told_at_ + kEvery; }
  /// Until when nobody else begins to move, and a write of this mover may be under way.
  SteadyTime relied_until() const { return told_at_ + kRely; }
  /// At the end: takes it down where nothing is taken any more, and otherwise leaves it for the next run.
  Result<void> leave(bool nothing_taken, Deadline deadline);

 private:
  struct Text;
  Result<void> post(bool at_work, Deadline deadline);
  std::string key() const { return "move/" + pair_.from; }

  queue::NoticeBoard& board_;
  const Clock& clock_;
  const MovePair pair_;
  const MoverName self_;
  std::int64_t version_ = 0;
  SteadyTime told_at_{};
  std::optional<std::int64_t> seen_version_;  ///< of another mover's notice
  SteadyTime seen_since_{};
};

/// What a move is to do. A value.
struct MovePlan {
  MovePair pair;
  std::vector<queue::Half> halves{queue::Half::standard, queue::Half::dlq};
  /// Something may be left of an earlier run: it is looked for in the target, and taken up in the source.
  bool resumed = false;
  bool follow = false;       ///< what is sent while it runs, too
  bool until_empty = false;  ///< to follow ends when nothing has come for `quiet`
  Duration quiet = std::chrono::seconds(10);
  bool dry_run = false;  ///< writes nothing
  double rate = 0;       ///< messages a second at most; 0: no limit
  std::size_t page = 250;
  std::size_t batch = 25;
  bool target_has_priorities = true;
  bool drop_priorities = false;  ///< where the target has none, messages come in with the normal one
  bool leave_groups = false;     ///< messages that belong to a group stay, because their order could be lost
  TableTariff from_tariff{};     ///< by which a dry run prices it
  TableTariff to_tariff{};
};

/// What one look at the source has left there. A value.
struct MoveLeft {
  std::uint64_t in_flight = 0;  ///< somebody works on them
  std::uint64_t waiting = 0;    ///< behind one of those in their group, or changed by somebody at that moment
  std::uint64_t grouped = 0;    ///< left because they belong to a group
  std::uint64_t behind = 0;     ///< behind one that was refused in their group
  std::uint64_t later = 0;      ///< sent after the run began, and not followed
  std::uint64_t elsewhere = 0;  ///< parts of the queue, not messages, that hosts have not handed over yet
};

struct MoveCount {
  std::uint64_t carried = 0;       ///< in a dry run: would be
  std::uint64_t dead_letters = 0;  ///< of those: of the dead-letter half
  std::uint64_t resumed = 0;       ///< of those: that an earlier run had left on the way
  std::uint64_t refused = 0;
  MoveLeft left;  ///< by the last whole look
};

/// Carries a live queue to another one: looks at the source again and again, hands what nobody works on to a MoveBatch,
/// and ends when there is nothing left to carry.
///
/// A step class: each `step` is one look, or one write of a batch, so that its caller can stop between two. One thread.
/// Messages that somebody works on are left alone until they are done or come back. A message of a group goes only
/// when no earlier one of its group is left behind in the source.
class Mover {
 public:
  struct Refusal {
    std::string id;
    Error error;
  };
  struct Step {
    using State = BulkRun::Step::State;  ///< it also waits where there is nothing to do but to look again later
    State state = State::more;
    SteadyTime until{};
    Error error{};
    std::vector<Refusal> refusals{};  ///< each message once
  };

  /// `notice` is null in a dry run; it has been entered otherwise. The references outlive the mover.
  Mover(MoveEnds ends, const Clock& clock, MoveNotice* notice, MovePlan plan);

  Step step();
  /// False while a batch is under way: who is to stop steps on until it is not.
  bool at_rest() const { return move_batch_.empty(); }
  const MoveCount& count() const { return count_; }
  /// Whether anything may be left taken, or hidden in the target, so that another run has to take it up.
  bool nothing_taken() const { return at_rest() && !recovering() && doubtful_.empty() && !resumed_unseen_; }
  /// What a dry run has found that the move would cost.
  const cost::Spent& planned_cost() const { return planned_; }

 private:
  bool recovering() const { return recover_half_ < 2 || !left_.empty(); }
  Step recover(Deadline deadline);
  Step show_left(Deadline deadline);
  Step carry(Deadline deadline);
  Step look(Deadline deadline);
  Step end_of_pass();
  void begin_pass(bool consistent);
  /// Whether it is to be carried now; `taken`: it has been taken already, by a move that this one goes on with.
  bool is_next(const queue::StoredMessage& record, bool taken, WallTime now, Step& step);
  /// It is taken, and not by this move as far as it knows: what it is, only the record itself can say.
  void look_closer(const queue::StoredMessage& record, Step& step);
  bool is_recent(const std::string& id) const;
  void fill_carriage();
  void put_down(Step& step);
  void refuse(const std::string& id, Error why, Step& step);
  void hold_group(queue::Half half, const std::string& group, bool for_good);
  Step waiting(SteadyTime until) const;
  /// How often a part of the queue has come or gone; with `elsewhere`, how many parts others have.
  std::uint64_t custody_changes(std::uint64_t& elsewhere) const;
  void plan_only(const queue::StoredMessage& record);
  Deadline deadline() const;

  // Fixed after construction.
  const MoveEnds ends_;
  const Clock& clock_;
  MoveNotice* const notice_;
  const MovePlan plan_;
  const WallTime began_;
  const std::vector<queue::Half> looked_halves_;

  Pace pace_;
  MoveCount count_;
  cost::Spent planned_;
  MoveBatch move_batch_;
  std::unordered_set<std::string> refused_;   ///< not to be tried again
  std::unordered_set<std::string> doubtful_;  ///< that may be taken, because an answer was lost
  /// Carried of late: an index may show them for a while yet.
  std::map<std::string, SteadyTime> recent_;
  SteadyTime forgets_next_{};

  // Of the look for what an earlier run has left in the target.
  bool resumed_unseen_ = false;   ///< the source has not been seen wholly since
  std::size_t recover_half_ = 2;  ///< of the two; 2: they have been looked at
  std::string recover_cursor_;
  std::vector<queue::StoredMessage> left_;

  // Of the pass over the source.
  MoveLeft left_behind_;
  std::size_t half_ = 0;
  std::string cursor_;
  bool consistent_ = false;
  bool any_carried_ = false;
  std::uint64_t custody_began_ = 0;
  std::deque<std::pair<queue::StoredMessage, bool>> found_;  ///< and whether it is taken already
  std::unordered_set<std::string> held_groups_;              ///< one of theirs stays behind; with the half before it
  std::unordered_set<std::string> stuck_groups_;             ///< the same, for as long as the move goes on
  SteadyTime quiet_since_{};
  Duration poll_{};
};

}  // namespace sluice::operate
