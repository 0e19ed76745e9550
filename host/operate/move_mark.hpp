#pragma once

#include <string>

#include "base/clock.hpp"
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

}  // namespace sluice::operate
