#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "dynamo/client.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

/// What the item beside a queue's ownership items says; absent (empty), the configured number holds. ErrorCode::invalid
/// for a number that no queue can have, with the mend.
Result<Shards> shards_of(const dynamo::Item& item, const table::QueueTable& place, std::uint32_t configured);

/// A change of the number of shards. A value.
struct ShardChange {
  std::optional<Shards> before;  ///< nothing: no number stood there, or none that a queue can have
  Shards after;
  bool written = false;  ///< false: it stood there already
};
/// Writes down that a queue has `count` shards. What lies beyond stays known, so that owners drain it: the highest
/// number that there ever was is kept, or seen from what was owned. One write, conditional on what was read:
/// ErrorCode::conflict where somebody else was faster.
Result<ShardChange> change_shards(dynamo::Client& client, const table::QueueTable& place, std::uint32_t count,
                                  std::uint32_t configured, Deadline deadline);

/// Knows how many shards a queue has: the table says so, and the number may change while hosts and senders run. It is
/// read when it is first asked for and then every 30 s, half a read unit each. Thread-safe.
class ShardCount {
 public:
  static constexpr Duration kKeep = std::chrono::seconds(30);

  /// The references must outlive it.
  ShardCount(dynamo::Client& client, const Clock& clock, const table::QueueTable& place, std::uint32_t configured)
      : client_(client), clock_(clock), place_(place), configured_(configured) {}

  /// While the table cannot be read, what it said last; an error only where it has never said anything.
  Result<Shards> get(Deadline deadline);
  /// The same for who sends: where the table says nothing yet, the number that it then goes by is written down there,
  /// so that hosts find what it sends. One that may not write it goes on without.
  Result<Shards> settled(Deadline deadline);
  /// Asks the table now, as whoever changes the number, or an owner that sees it change, wants it. Consistent.
  Result<Shards> refresh(Deadline deadline);

 private:
  struct Reading {
    Shards shards;
    bool absent = false;  ///< the table says nothing
  };
  Result<Reading> read(bool consistent, Deadline deadline) const;
  Shards note(const Reading& reading);

  // Fixed after construction.
  dynamo::Client& client_;
  const Clock& clock_;
  const table::QueueTable& place_;
  const std::uint32_t configured_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::optional<Shards> known_ SLUICE_GUARDED_BY(mutex_);
  bool to_write_ SLUICE_GUARDED_BY(mutex_) = false;
  bool tried_ SLUICE_GUARDED_BY(mutex_) = false;  ///< to write it
  SteadyTime read_at_ SLUICE_GUARDED_BY(mutex_){};
};

}  // namespace sluice::queue::leased
