#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue::table {

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
