#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue::table {

/// A write about a delivery, of which nobody knows whether it took effect.
struct DoubtfulWrite {
  std::string nonce;                       ///< that it would have left; a removal leaves none
  std::optional<CompletionAction> action;  ///< nothing: it prolongs the lease
};

/// What a store has written about deliveries of one half of a queue in earlier calls without learning what came of it,
/// so that later calls recognise their own doing. Within limits: what does not fit is forgotten, the oldest first.
/// Thread-safe.
class DoubtfulWrites {
 public:
  static constexpr std::size_t kMaxReceipts = 4'096;

  void remember(const Receipt& receipt, DoubtfulWrite write);
  /// Those about this receipt that have not been cleared up; in the order in which they were written.
  std::vector<DoubtfulWrite> about(const Receipt& receipt) const;
  /// What became of them is known.
  void clear(const Receipt& receipt);

 private:
  using Key = std::pair<std::string, std::int64_t>;  // of a receipt: id and version

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, std::vector<DoubtfulWrite>> writes_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Key> order_ SLUICE_GUARDED_BY(mutex_);  // keys that have been in writes_, each once for each entry
};

/// What the records of claimed messages said of attempts that had failed, so that whoever settles writes it again
/// beside the newest failure without having to read anything. Most messages never fail, and take no room here.
/// Thread-safe.
class FailureMemory {
 public:
  /// Beyond so many the record keeps its last failure alone.
  static constexpr std::size_t kCapacity = 10'000;

  /// The message was claimed, and its record said this.
  void note(const std::string& id, const Failure& failure);
  /// What is to be kept beside the next failure.
  std::vector<FailedAttempt> earlier(const std::string& id) const;
  void forget(const std::string& id);

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::vector<FailedAttempt>> by_id_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
