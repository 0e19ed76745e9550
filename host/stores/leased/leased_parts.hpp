#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/shard_count.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::leased {

/// The parts that all operations of a store share. The references outlive what is given them.
struct LeasedParts {
  const table::StoreParts& store;
  Random& random;
};

/// Makes the times and the sort keys of what one process sends to a queue. They follow each other, so that a batch
/// keeps its order, and a group its own, also where the clock goes back. Thread-safe.
class KeyOrder {
 public:
  /// A time that is wrong by more is not kept to.
  static constexpr Duration kMostBack = std::chrono::seconds(5);

  /// When that is sent which is sent now.
  WallTime stamp(WallTime now) {
    const MutexLock lock(mutex_);
    return time_of_millis(last_ = not_before(last_, now));
  }
  /// A time that nothing else is sent at, for ids that are made elsewhere.
  WallTime moment(WallTime now) {
    const MutexLock lock(mutex_);
    const std::int64_t moment = not_before(last_ + 1, now);
    last_ = moment + 1;
    return time_of_millis(moment);
  }
  std::string next(Priority priority, WallTime due, Random& random) {
    const MutexLock lock(mutex_);
    if (low_ == 0) {
      high_ = random.next();
      low_ = random.next() % kHalf;  // room for those that follow
    }
    return sort_key_of(priority, due, high_, ++low_);
  }

 private:
  static constexpr std::uint64_t kHalf = std::uint64_t{1} << 39U;  // of the 40 bits that a key has room for

  static std::int64_t not_before(std::int64_t last, WallTime now) {
    return millis_of(now + kMostBack) < last ? millis_of(now) : std::max(last, millis_of(now));
  }

  Mutex mutex_;
  // Guarded by mutex_.
  std::int64_t last_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t high_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t low_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// What is known of one queue: where it lies, and how many shards it has. All sides of the queue share it. Thread-safe.
class LeasedQueue {
 public:
  /// What this process knows by itself of a half; nothing where it does not work on it. Thread-safe.
  using OwnWordOf = std::function<std::optional<OwnWord>(Half half)>;

  LeasedQueue(table::QueueTable table, std::uint32_t configured_shards, const table::StoreParts& parts,
              OwnWordOf word = {})
      : place(std::move(table)),
        own_word(std::move(word)),
        shards(parts.client, parts.clock, place, configured_shards) {}

  const table::QueueTable place;
  const OwnWordOf own_word;  ///< may be empty
  ShardCount shards;
  KeyOrder keys;
};

/// The shard of a new message: all of a group in one, any other one anywhere.
inline std::uint32_t shard_of(std::string_view group, std::uint32_t shards, Random& random) {
  const std::uint64_t chosen = group.empty() ? random.next() : table::stable_hash(group);
  return static_cast<std::uint32_t>(chosen % shards);
}

}  // namespace sluice::queue::leased
