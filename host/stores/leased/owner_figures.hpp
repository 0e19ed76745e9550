#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace sluice::queue::leased {

/// What this process knows by itself of a half that it works on.
struct OwnWord {
  std::string host;  ///< its incarnation
  OwnerFigures figures;
};
/// The same of the halves of a queue.
using OwnWords = std::map<Half, OwnWord>;

/// What the owners of a half say of it, added up.
struct Announced {
  QueueStats stats;
  std::uint32_t held = 0;    ///< shards that this is of
  std::uint32_t in_use = 0;  ///< shards that somebody has to own; 0: nobody has told
};

/// From the heartbeats; nothing where none of them says anything, as where a mover has the half. Of dead letters that
/// no job works on, the owners of the queue's standard half tell. Nothing is told that was not counted: it is at least
/// so much where they have not read all that lies there, or do not own all shards.
///
/// A heartbeat is as old as the time that it was written at (`z`) says; one that is older than its lease by `now`, or
/// written a lease after it, is passed over, as its host may be dead, and so is that of a host that leaves, whose
/// shards are others' by now. The oldest one gives the age of the whole. In place of its own heartbeat a process takes
/// what it knows now.
std::optional<Announced> announced_stats(std::span<const dynamo::Item> heartbeats, const QueueAddress& address,
                                         WallTime now, const OwnWords& own = {});

}  // namespace sluice::queue::leased
