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

/// What the heartbeats of a half's owners say of it, added up; nothing where they do not own all of its shards, or have
/// not read all that lies in them: then somebody has to count.
///
/// A heartbeat is as old as the time that it was written at (`z`) says; one that is older than its lease, by `now`, is
/// passed over, as its host may be dead, and so is that of a host that leaves, whose shards are others' by now. The
/// oldest one gives the age of the whole. In place of its own heartbeat a process takes what it knows now.
///
/// `shards`: those in use.
std::optional<QueueStats> announced_stats(std::span<const dynamo::Item> heartbeats, const std::string& half,
                                          std::uint32_t shards, WallTime now, const std::optional<OwnWord>& own = {});

/// How many of a half's shards somebody has to own: those that messages are sent to, and those beyond them that are not
/// drained yet. `rows`: of the half's owners.
std::uint32_t shards_in_use(const Shards& shards, const std::map<std::uint32_t, OwnershipRow>& rows);

}  // namespace sluice::queue::leased
