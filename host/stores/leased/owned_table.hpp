#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/keeper_rounds.hpp"
#include "host/stores/leased/owned_half.hpp"
#include "host/stores/leased/owner_figures.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// Everything that this process owns of one table: one lease, one heartbeat, and the halves of queues that it works on.
/// Thread-safe. A resource; it outlives the sources of its halves.
class OwnedTable {
 public:
  struct Settings {
    OwnershipCoordinator::Settings keeping;
    /// Housekeeping has a thread of its own, so that it goes on while all others are busy. False: it is done by claims
    /// and settlements, as a simulation wants it.
    bool own_thread = true;
  };
  /// `machine` is this machine's clock; the references outlive it.
  OwnedTable(Settings settings, table::StoreParts parts, const Clock& machine, Random& random);
  ~OwnedTable();
  OwnedTable(const OwnedTable&) = delete;
  OwnedTable& operator=(const OwnedTable&) = delete;

  /// The half of that address; made with these settings when it is asked for first. It lives as long as the table.
  OwnedHalf& half(const OwnedHalf::Settings& settings, const table::QueueTable& place, const OwnerWriter& writer);

  /// A source begins to work on the half; and ends.
  std::uint32_t start(OwnedHalf& half, SourceEvents events);
  void stop(OwnedHalf& half, std::uint32_t source);
  /// Where there is no thread, does what is due.
  void tend(Deadline deadline);
  const OwnershipCoordinator& keeper() const { return keeper_; }
  /// What this process knows of a half now; nothing where no source works on it.
  std::optional<OwnWord> word_of(const QueueAddress& address);
  /// As OwnershipCoordinator's.
  bool listen_at(const std::string& bell, Deadline deadline) { return keeper_.listen_at(bell, deadline); }
  /// When `tend` is to be called again; nothing: a thread does so.
  std::optional<SteadyTime> due_at() const;

 private:
  /// Heartbeats wait for it, so that it is over in a tenth of the lease.
  void count_dead_letters();

  // Fixed after construction.
  const Settings settings_;
  const table::StoreParts parts_;
  const Clock& machine_;
  Random& random_;
  OwnershipCoordinator keeper_;  // synchronises itself
  KeeperRounds rounds_;

  Mutex mutex_;
  // Guarded by mutex_. Halves are never removed, so that references to them live as long as the table.
  std::map<QueueAddress, std::unique_ptr<OwnedHalf>> halves_ SLUICE_GUARDED_BY(mutex_);
  std::map<OwnedHalf*, int> working_ SLUICE_GUARDED_BY(mutex_);  ///< how many sources work on each
  std::jthread thread_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::leased
