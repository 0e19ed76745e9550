#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::queue::owned {

/// Says what people should know in a line each, and the same one not again for a minute. One for all that a process
/// owns. Thread-safe.
class Remarks {
 public:
  static constexpr Duration kAgain = std::chrono::minutes(1);
  static constexpr std::size_t kMost = 1000;

  /// `warn` may be empty; the clock outlives it.
  Remarks(std::function<void(const std::string&)> warn, const Clock& clock) : warn_(std::move(warn)), clock_(clock) {}

  void say(const std::string& line) { say(line, line); }
  /// `about` is what two remarks have in common that are the same one, whatever says them.
  void say(const std::string& about, const std::string& line) {
    if (!warn_) {
      return;
    }
    {
      const SteadyTime now = clock_.steady_now();
      const MutexLock lock(mutex_);
      const auto said = said_.find(about);
      if (said != said_.end() && now < said->second + kAgain) {
        return;
      }
      if (said_.size() >= kMost) {
        said_.clear();
      }
      said_[about] = now;
    }
    warn_(line);
  }

 private:
  const std::function<void(const std::string&)> warn_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<std::string, SteadyTime> said_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::owned
