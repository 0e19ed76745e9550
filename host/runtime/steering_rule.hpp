#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "config/config.hpp"
#include "host/work/job.hpp"

namespace sluice::runtime {

/// How jobs are to run beside what their files say, as was said last. Thread-safe; no lock is held while a job is told.
class SteeringRule {
 public:
  using Steer = std::function<work::JobSteering(const config::JobConfig&)>;

  void set(Steer steer);
  /// Tells these jobs, and again when something else is said meanwhile; nothing as long as nobody has said anything.
  void apply(const std::vector<std::shared_ptr<work::Job>>& jobs) const;

 private:
  mutable Mutex mutex_;
  Steer steer_ SLUICE_GUARDED_BY(mutex_);
  std::uint64_t said_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< how often
};

}  // namespace sluice::runtime
