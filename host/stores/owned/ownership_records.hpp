#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "host/queue/message.hpp"
#include "host/stores/owned/membership.hpp"
#include "host/stores/owned/ownership.hpp"

namespace sluice::queue::owned {

/// How heartbeats and figures call a half: "orders", "orders!".
inline std::string half_name(const QueueAddress& address) {
  return address.queue + (address.half == Half::dlq ? "!" : "");
}

/// The same of what owners of a standard half tell of the dead letters in their shards.
inline std::string dead_letters_name(const std::string& queue) { return "!" + queue; }

/// Who has each shard of a half, as a consistent look has found it. A value.
struct OwnershipLook {
  std::vector<Ownership> shards;  ///< those that count, in their order
  std::uint32_t count = 0;        ///< messages are sent to so many; those beyond are to be drained
};

/// Where hosts write down that they live, and who of them has which shard. It judges nothing, and says itself what goes
/// wrong with it. Called by one at a time.
class OwnershipRecords : boost::noncopyable {
 public:
  virtual ~OwnershipRecords() = default;

  enum class Written {
    yes,
    no,
    marked,  ///< no: somebody has marked this host as one that has ended
  };
  /// Writes this host's heartbeat. `anew`: in place of one that has been marked.
  virtual Written write_beat(const Heartbeat& beat, bool anew, Deadline deadline) = 0;
  /// Those of all hosts; nothing: they could not be read.
  virtual std::optional<std::vector<Heartbeat>> read_beats(bool consistent, Deadline deadline) = 0;
  /// Takes that of a host away that is long dead, if its counter has not moved.
  virtual void remove_beat(const Heartbeat& beat, Deadline deadline) = 0;

  /// Nothing: it could not be read.
  virtual std::optional<OwnershipLook> look_at(const QueueAddress& half, Deadline deadline) = 0;
  /// Whether each was written, in their order: it is where all is as it was before.
  virtual std::vector<bool> move(const QueueAddress& half, std::span<const PartKeeper::Move> moves,
                                 Deadline deadline) = 0;
};

}  // namespace sluice::queue::owned
