#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/queue/queues.hpp"

namespace sluice::queue {

struct SqliteOptions {
  std::string path;  ///< the file; it and its folder are made when absent
  /// True: what `send` and `settle` have answered survives a power cut. False: it survives the end of the process only.
  bool durable = true;
  std::uint64_t max_file_bytes = 0;  ///< beyond it writes fail with ErrorCode::full; 0: what the disk holds
  std::size_t max_body_bytes = 16 * 1024 * 1024;  ///< a larger body is ErrorCode::invalid
  /// Told, at most once a minute and from a thread of the store, what somebody should look at though all goes on. May
  /// be empty.
  std::function<void(const std::string& warning)> report = {};
};

/// The embedded store: any number of queues in one SQLite file (WAL), any number of processes of one machine on it.
///
/// Opening creates the file where there is none. It fails, in one line, for a folder or file that cannot be written, a
/// file that is not ours or is damaged, and one that a newer Sluice has made.
///
/// Where the contracts leave room: ids have 1 to 2,048 bytes; attributes and ids may hold any bytes; JSON bodies keep
/// their spelling; messages of one instant keep the order of sending. A claim returns fewer than `max` once it holds
/// kClaimBytes of bodies and checkpoints, or kClaimLimit messages. A settled message that goes back or waits counts as
/// delayed, not as in flight. Redrive forgets the failure. A lost power supply may forget a claim, which is then made
/// again; it never forgets a send or a settlement.
///
/// `clock` and `random` must outlive what is opened.
Result<std::unique_ptr<Queues>> open_sqlite_queues(const SqliteOptions& options, const Clock& clock, Random& random);

/// What sources of this store can do.
inline constexpr SourceTraits kSqliteTraits{
    .groups = true, .sequence = true, .priorities = true, .transactions = true, .checkpoints = true};

/// The limits of one claim: more would only lie in the memory of the process.
inline constexpr std::size_t kClaimLimit = 10'000;
inline constexpr std::size_t kClaimBytes = std::size_t{8} * 1024 * 1024;

}  // namespace sluice::queue
