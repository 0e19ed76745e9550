#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/leased/leased_layout.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/owned/message_records.hpp"
#include "host/stores/table/nonce.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/writer_memory.hpp"

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
  /// so that hosts find what it sends. Where that fails it goes on without, and tries again when it has read anew.
  Result<Shards> settled(Deadline deadline);
  /// Asks the table now.
  Result<Shards> read(bool consistent, Deadline deadline);
  /// Takes up what somebody has read of it; an empty item: there is none.
  Result<Shards> learn(const dynamo::Item& item);
  /// What was known last.
  Shards last();
  /// The number where the table says none.
  std::uint32_t configured() const { return configured_; }

 private:
  // Fixed after construction.
  dynamo::Client& client_;
  const Clock& clock_;
  const table::QueueTable& place_;
  const std::uint32_t configured_;

  Mutex mutex_;
  // Guarded by mutex_.
  std::optional<Shards> known_ SLUICE_GUARDED_BY(mutex_);
  bool to_write_ SLUICE_GUARDED_BY(mutex_) = false;
  SteadyTime read_at_ SLUICE_GUARDED_BY(mutex_){};
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

/// What is remembered of one half of a queue between the writes that settle its messages. Thread-safe.
struct WriterState {
  table::DoubtfulWrites doubts;
  table::OpenTransactions transactions;
  core::ReceiptMemory<owned::Out, 10'000> outs;  ///< what was claimed by call
};

/// Puts what this process knows now of its halves of a queue in the place of what its last heartbeat says.
using BringUpToDate = std::function<void(std::vector<Heartbeat>& beats)>;

/// What is known of one queue: where it lies, how its table holds it, how many shards it has, and what its writers
/// remember. All sides of the queue share it. Thread-safe.
class LeasedQueue {
 public:
  /// What the parts refer to outlives it.
  LeasedQueue(table::QueueTable table, std::uint32_t configured_shards, const table::StoreParts& store_parts,
              BringUpToDate update = {})
      : place(std::move(table)),
        parts(store_parts),
        layout(make_leased_layout(*this)),
        bring_up_to_date(std::move(update)),
        shards(parts.client, parts.clock, place, configured_shards) {}

  WriterState& writer(Half half) { return half == Half::dlq ? dlq_ : standard_; }
  /// The shard of a new message: all of a group in one, any other one anywhere.
  std::uint32_t shard_for(std::string_view group, std::uint32_t count) {
    const std::uint64_t chosen = group.empty() ? parts.random.next() : table::stable_hash(group);
    return static_cast<std::uint32_t>(chosen % count);
  }

  /// Where a message comes to lie that is sent now, of so many shards.
  Place new_place(std::string_view group, Priority priority, WallTime due, std::uint32_t count) {
    return {partition_of(place.queue, Half::standard, shard_for(group, count)), keys.next(priority, due, parts.random)};
  }

  const table::QueueTable place;
  const table::StoreParts parts;
  const std::unique_ptr<const table::RecordLayout> layout;
  const BringUpToDate bring_up_to_date;  ///< may be empty
  ShardCount shards;
  KeyOrder keys;

 private:
  WriterState standard_;
  WriterState dlq_;
};

/// Sends to the queue, which outlives the sender.
std::unique_ptr<Sender> make_leased_sender(LeasedQueue& queue);

}  // namespace sluice::queue::leased
