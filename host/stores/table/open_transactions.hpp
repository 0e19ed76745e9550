#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/client.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue::table {

/// Transactions of which nobody knows whether they took effect, as they were asked for: made again to the letter, their
/// token lets DynamoDB answer as it did the first time. Within a limit, beyond which the oldest is forgotten.
/// Thread-safe.
class OpenTransactions {
 public:
  static constexpr std::size_t kMost = 256;
  struct Asked {
    std::shared_ptr<const dynamo::TransactWriteRequest> request{};  ///< null: there is none
    std::set<std::size_t> left_out{};  ///< messages of the completion, by number, that it does not carry
    SteadyTime first_at{};
  };

  void remember(const Receipt& receipt, Asked asked) {
    const MutexLock lock(mutex_);
    const Key key{receipt.id, receipt.version};
    if (requests_.insert_or_assign(key, std::move(asked)).second) {
      order_.push_back(key);
    }
    while (order_.size() > kMost) {
      requests_.erase(order_.front());
      order_.pop_front();
    }
  }

  /// The one about this receipt, which is forgotten.
  Asked take(const Receipt& receipt) {
    const MutexLock lock(mutex_);
    const auto found = requests_.find({receipt.id, receipt.version});
    Asked asked;
    if (found != requests_.end()) {
      asked = std::move(found->second);
      requests_.erase(found);
      std::erase(order_, Key{receipt.id, receipt.version});
    }
    return asked;
  }

 private:
  using Key = std::pair<std::string, std::int64_t>;  // of a receipt: id and version

  Mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, Asked> requests_ SLUICE_GUARDED_BY(mutex_);
  std::deque<Key> order_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::table
