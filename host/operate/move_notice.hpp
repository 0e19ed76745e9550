#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "host/operate/move_mark.hpp"
#include "host/queue/notice_board.hpp"

namespace sluice::operate {

/// Who moves, as the notice of a move tells it. A value.
struct MoverName {
  std::string machine;
  std::int64_t pid = 0;
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

  /// Whether this process of this machine has ended, as far as anybody here can tell.
  using Ended = std::function<bool(const MoverName&)>;

  /// The references outlive it.
  MoveNotice(queue::NoticeBoard& board, const Clock& clock, MovePair pair, MoverName self, Ended ended);

  struct Entry {
    bool ours = false;
    bool found = false;  ///< ours: there was one already, so that something may be taken
    /// Not ours: another mover of the pair may be at work; ask again then.
    SteadyTime again{};
  };
  /// ErrorCode::conflict where the queue is being moved elsewhere, or somebody is at this very move; others of the
  /// board.
  Result<Entry> enter(Deadline deadline);
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
  const Ended ended_;
  std::int64_t version_ = 0;
  bool ours_ = false;
  SteadyTime told_at_{};
  std::optional<std::int64_t> seen_version_;  ///< of another mover's notice
  SteadyTime seen_since_{};
};

}  // namespace sluice::operate
