#pragma once

#include <algorithm>
#include <cstddef>

#include "base/mutex.hpp"

namespace sluice::queue::dynamomq {

/// How large the bodies of a queue half are, by those claimed of late. Thread-safe.
class BodySizes {
 public:
  void add(std::size_t bytes) {
    const MutexLock lock(mutex_);
    const auto size = static_cast<double>(bytes);
    average_ = average_ == 0 ? size : average_ * kMemory + size * (1 - kMemory);
  }
  /// How many messages have about so many bytes; at least one.
  std::size_t messages_in(std::size_t bytes) const {
    const MutexLock lock(mutex_);
    const double count = static_cast<double>(bytes) / std::max(1.0, average_);
    return count < 1 ? 1 : static_cast<std::size_t>(std::min(count, kMostInOneClaim));
  }

 private:
  static constexpr double kMemory = 0.9;  // of the average, at each message
  static constexpr double kMostInOneClaim = 1e6;

  mutable Mutex mutex_;
  double average_ SLUICE_GUARDED_BY(mutex_) = 0;  // 0: none was claimed yet
};

}  // namespace sluice::queue::dynamomq
