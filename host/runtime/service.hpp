#pragma once

#include "base/error.hpp"

namespace sluice::runtime {

/// Anything with a thread. A resource: one owner, not copyable, not movable.
///
/// `start()` is called at most once; it fails where the system gives no thread, and nothing runs then. `stop()` may be
/// called from any thread, any number of times, also before `start()` (which then does nothing), and returns only when
/// the thread has ended. Destruction stops.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  virtual Result<void> start() = 0;
  virtual void stop() = 0;
};

}  // namespace sluice::runtime
