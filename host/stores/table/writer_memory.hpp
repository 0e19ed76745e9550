#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"
#include "host/queue/source.hpp"
#include "host/stores/core/receipt_memory.hpp"

namespace sluice::queue::table {

/// A write about a delivery, of which nobody knows whether it took effect.
struct DoubtfulWrite {
  std::string nonce;                       ///< that it would have left; a removal leaves none
  std::optional<CompletionAction> action;  ///< nothing: the delivery went on as it was
};

/// What was written about deliveries of one half of a queue in earlier calls without learning what came of it, so that
/// later calls recognise their own doing.
using DoubtfulWrites = core::ReceiptMemory<DoubtfulWrite, 4'096>;

/// A transaction of which nobody knows whether it took effect, as it was asked for: made again to the letter, its token
/// lets DynamoDB answer as it did the first time.
struct OpenTransaction {
  std::shared_ptr<const dynamo::TransactWriteRequest> request{};  ///< null: there is none
  std::set<std::size_t> left_out{};  ///< messages of the completion, by number, that it does not carry
  SteadyTime first_at{};
  CompletionAction action = CompletionAction::remove;  ///< that it was for
};
using OpenTransactions = core::ReceiptMemory<OpenTransaction, 256>;

/// What the records of claimed messages said of attempts that had failed, so that whoever settles writes it again
/// beside the newest failure without having to read anything. Most messages never fail, and take no room here.
/// Thread-safe.
class FailureMemory {
 public:
  /// Beyond so many the record keeps its last failure alone.
  static constexpr std::size_t kCapacity = 10'000;

  /// The message was claimed, and its record said this.
  void note(const Receipt& receipt, const Failure& failure) {
    const MutexLock lock(mutex_);
    if (failure.empty()) {
      if (!by_id_.empty()) {
        by_id_.erase(receipt.id);
      }
    } else if (by_id_.size() < kCapacity || by_id_.contains(receipt.id)) {
      by_id_.insert_or_assign(receipt.id, Said{receipt.version, failure});
    }
  }
  /// Empty: none.
  Failure of(const Receipt& receipt) const {
    const MutexLock lock(mutex_);
    const auto found = by_id_.find(receipt.id);
    return found == by_id_.end() || found->second.of_another(receipt) ? Failure() : found->second.failure;
  }
  /// The receipt is of no use any more. What was noted at a later claim stays.
  void forget(const Receipt& receipt) {
    const MutexLock lock(mutex_);
    const auto found = by_id_.empty() ? by_id_.end() : by_id_.find(receipt.id);
    if (found != by_id_.end() && !found->second.of_another(receipt)) {
      by_id_.erase(found);
    }
  }

 private:
  struct Said {
    std::int64_t version;  ///< of the record, at the claim; extensions make it grow
    Failure failure;
    bool of_another(const Receipt& receipt) const { return receipt.version < version; }
  };

  mutable Mutex mutex_;
  std::unordered_map<std::string, Said> by_id_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
