#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <set>
#include <span>
#include <utility>

#include "base/mutex.hpp"
#include "host/queue/source.hpp"

namespace sluice::queue::sqlite {

/// What took effect although its caller was told that the outcome is unknown, because the disk did not answer: he will
/// repeat it, or go on with the receipt that he had before. Thread-safe.
class Unconfirmed {
 public:
  void add_settled(std::span<const Completion> completions, std::span<const SettleResult> results);
  void add_extended(std::span<const Receipt> receipts, std::span<const ExtendResult> results);

  /// Whether what is lost was settled by ourselves.
  bool settled(const Receipt& receipt) const;
  /// The receipt as it is now, after extensions that its holder has not learnt of.
  Receipt current(Receipt receipt) const;

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  ///< locator, version
  /// The latest of them.
  struct Keys {
    void add(const Receipt& receipt);
    std::set<Key> set;
    std::deque<Key> order;
  };

  std::atomic<bool> any_{false};  ///< so that nobody pays for it while disks answer
  mutable Mutex mutex_;
  Keys settled_ SLUICE_GUARDED_BY(mutex_);
  Keys extended_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::sqlite
