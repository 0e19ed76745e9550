#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
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
/// A message that a move has taken, with the time at which it would be seen by itself in the place of the one by which
/// it is hidden; nothing where that is over.
queue::StoredMessage before_it_was_taken(const queue::StoredMessage& taken, WallTime now);
/// The change that makes it seen again as it was, at its own time.
queue::Change showing(const queue::StoredMessage& as_it_was, std::int64_t version, WallTime now);

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
  /// A message that is as hidden in the target as a run before left it, and no longer in the source.
  static queue::Change showing_copy(const queue::StoredMessage& copy, WallTime now);

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
  using Went = std::function<void(Parcel& parcel)>;
  /// Changes all of one stage at that end; what fails stays where it is, and the worst of it is told.
  Result<void> change_each(Stage stage, queue::Operator& end, const ChangeOf& change_of, const Went& went,
                           Deadline deadline);
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

}  // namespace sluice::operate
