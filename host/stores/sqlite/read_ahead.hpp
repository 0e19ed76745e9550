#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/ready_rows.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

/// Reads heads, inside a transaction of its connection.
class ReadAhead {
 public:
  explicit ReadAhead(Connection& connection) : names_(connection), oldest_(connection, kOldest) {}

  /// Of one that is not there or keeps no order: none.
  std::vector<HeadRead> heads(const QueueAddress& address, const ClaimRequest& request, WallTime now);

 private:
  QueueNames names_;
  Statement oldest_;
};

/// When reading ahead is worth its while. Thread-safe.
class ReadAheadPolicy {
 public:
  /// `from`: as SqliteOptions::read_ahead_from.
  explicit ReadAheadPolicy(std::size_t from) : from_(from) {}

  /// Whether heads should be read for this claim: where the last one has found many, and others do not take them first.
  bool wanted(const ClaimRequest& request);
  /// A claim found so many; of these so many had been read ahead, if that was tried.
  void claimed(std::size_t found, const HeadsRead* read);

 private:
  // Claims for which nothing is read after one for which it was in vain: twice as many each time.
  static constexpr std::size_t kMostPassed = 64;

  const std::size_t from_;
  Mutex mutex_;
  std::size_t found_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< by the last claim
  std::size_t pass_ SLUICE_GUARDED_BY(mutex_) = 0;   ///< claims that are still to do without
  std::size_t passes_ SLUICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::queue::sqlite
