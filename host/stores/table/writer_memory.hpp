#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue::table {

/// A write about a delivery, of which nobody knows whether it took effect.
struct DoubtfulWrite {
  std::string nonce;                       ///< that it would have left; a removal leaves none
  std::optional<CompletionAction> action;  ///< nothing: it prolongs the lease
};

/// What a store knows of receipts whose writes are in question, between its calls. Of `kMost` receipts: what does not
/// fit is forgotten, the oldest first. Thread-safe.
template <typename Value, std::size_t kMost>
class ReceiptMemory {
 public:
  void remember(const Receipt& receipt, Value value) {
    const MutexLock lock(mutex_);
    Key key(receipt.id, receipt.version);
    std::vector<Value>& values = values_[key];
    if (values.empty()) {
      order_.push_back(std::move(key));
    }
    values.push_back(std::move(value));
    while (order_.size() > kMost) {
      values_.erase(order_.front());
      order_.pop_front();
    }
  }
  /// All of this receipt that has not been cleared up, in the order in which it came.
  std::vector<Value> about(const Receipt& receipt) const {
    const MutexLock lock(mutex_);
    const auto found = values_.empty() ? values_.end() : values_.find({receipt.id, receipt.version});
    return found == values_.end() ? std::vector<Value>() : found->second;
  }
  /// Nothing of it is in question any more.
  void clear(const Receipt& receipt) {
    const MutexLock lock(mutex_);
    if (!values_.empty() && values_.erase({receipt.id, receipt.version}) > 0) {
      std::erase(order_, Key(receipt.id, receipt.version));
    }
  }

 private:
  using Key = std::pair<std::string, std::int64_t>;  // of a receipt: id and version

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, std::vector<Value>> values_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Key> order_ SLUICE_GUARDED_BY(mutex_);
};

/// What was written about deliveries of one half of a queue in earlier calls without learning what came of it, so that
/// later calls recognise their own doing.
using DoubtfulWrites = ReceiptMemory<DoubtfulWrite, 4'096>;

/// A transaction of which nobody knows whether it took effect, as it was asked for: made again to the letter, its token
/// lets DynamoDB answer as it did the first time.
struct OpenTransaction {
  std::shared_ptr<const dynamo::TransactWriteRequest> request{};  ///< null: there is none
  std::set<std::size_t> left_out{};  ///< messages of the completion, by number, that it does not carry
  SteadyTime first_at{};
};
using OpenTransactions = ReceiptMemory<OpenTransaction, 256>;

/// What the records of claimed messages said of attempts that had failed, so that whoever settles writes it again
/// beside the newest failure without having to read anything. Most messages never fail, and take no room here.
/// Thread-safe.
class FailureMemory {
 public:
  /// Beyond so many the record keeps its last failure alone.
  static constexpr std::size_t kCapacity = 10'000;

  /// The message was claimed, and its record said this.
  void note(const std::string& id, const Failure& failure) {
    std::vector<FailedAttempt> earlier = earlier_than_next(failure);
    const MutexLock lock(mutex_);
    if (earlier.empty()) {
      if (!by_id_.empty()) {
        by_id_.erase(id);
      }
    } else if (by_id_.size() < kCapacity || by_id_.contains(id)) {
      by_id_.insert_or_assign(id, std::move(earlier));
    }
  }
  /// What is to be kept beside the next failure.
  std::vector<FailedAttempt> earlier(const std::string& id) const {
    const MutexLock lock(mutex_);
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? std::vector<FailedAttempt>() : found->second;
  }
  void forget(const std::string& id) {
    const MutexLock lock(mutex_);
    if (!by_id_.empty()) {
      by_id_.erase(id);
    }
  }

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, std::vector<FailedAttempt>> by_id_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
