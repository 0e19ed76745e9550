#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
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

/// Queues in tables of the leased layout, many in one if need be. `machine`: this machine's clock, which outlives them.
table::TableQueues::Make in_leased_tables(const LeasedOptions& options, const Clock& machine);

/// All of them such. The references must outlive them.
inline std::unique_ptr<table::TableQueues> make_leased_queues(const LeasedOptions& options, dynamo::Client& client,
                                                              const Clock& clock, Random& random) {
  return std::make_unique<table::TableQueues>(options, client, clock, random, in_leased_tables(options, clock));
}

}  // namespace sluice::queue::leased
