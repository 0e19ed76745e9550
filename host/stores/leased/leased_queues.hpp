#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/table/table_queues.hpp"

namespace sluice::queue::leased {

/// Where one queue lies, and how.
struct LeasedLocation {
  std::string table{kDefaultTableName};
  std::uint32_t shards = kDefaultShards;  ///< until the table says another number
  bool strict_fence = false;              ///< effects are committed only while their host still owns the shard
};

struct LeasedOptions : table::TableOptions {
  std::map<std::string, LeasedLocation> queues{};  ///< those that differ from the defaults
  /// This process as an owner, which differs from every other one; empty: made up of the host's name, a table at a
  /// time.
  std::string incarnation{};
  Duration lease = std::chrono::seconds(10);  ///< of what this host owns
  bool own_threads = true;                    ///< false: housekeeping is done by claims, as a simulation wants it
};

/// What leased sources can do, whether they own shards or claim directly.
inline constexpr SourceTraits kLeasedTraits{
    .groups = true, .sequence = true, .priorities = true, .transactions = true, .checkpoints = true};

/// Queues in tables of the leased layout, many in one if need be.
class LeasedQueues : public table::TableQueues {
 public:
  /// The owner of that incarnation has ended, as is known for certain: says so in the queue's table. Without a
  /// heartbeat there, nothing is to be said.
  virtual Result<void> owner_ended(const std::string& queue, const std::string& incarnation, bool settled,
                                   Deadline deadline) = 0;
  /// Asks the hosts for all shards of these halves, to carry their messages elsewhere. The queues outlive it.
  virtual std::unique_ptr<MoveOwnership> take_ownership(const std::string& queue, const std::vector<Half>& halves) = 0;

 protected:
  using TableQueues::TableQueues;
};
/// The references must outlive them.
std::unique_ptr<LeasedQueues> make_leased_queues(const LeasedOptions& options, dynamo::Client& client,
                                                 const Clock& clock, Random& random);

}  // namespace sluice::queue::leased
