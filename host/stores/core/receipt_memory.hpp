#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue::core {

/// What a store knows of receipts whose writes are in question, between its calls. Of `kMost` receipts: what does not
/// fit is forgotten, the oldest first. Thread-safe.
template <typename Value, std::size_t kMost>
class ReceiptMemory {
 public:
  void remember(const Receipt& receipt, Value value) {
    const MutexLock lock(mutex_);
    Key key = key_of(receipt);
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
    const auto found = values_.empty() ? values_.end() : values_.find(key_of(receipt));
    return found == values_.end() ? std::vector<Value>() : found->second;
  }
  /// Nothing of it is in question any more.
  void clear(const Receipt& receipt) {
    const MutexLock lock(mutex_);
    if (!values_.empty() && values_.erase(key_of(receipt)) > 0) {
      std::erase(order_, key_of(receipt));
    }
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  static Key key_of(const Receipt& receipt) { return {receipt.id, receipt.version, receipt.locator}; }

  mutable Mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, std::vector<Value>> values_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Key> order_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::core
