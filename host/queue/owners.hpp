#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"

namespace sluice::queue {

/// A process that has ended, as its machine knows for certain. A value.
struct EndedOwner {
  std::string incarnation;          ///< as Owners::incarnation said in it
  std::vector<std::string> queues;  ///< that it worked on
  bool settled = false;             ///< nothing that it had handed out is in doubt
};

/// Stores in which a process owns parts of queues by a lease, seen by who keeps the crash ledgers. Thread-safe.
class Owners {
 public:
  Owners() = default;
  Owners(const Owners&) = delete;
  Owners& operator=(const Owners&) = delete;
  virtual ~Owners() = default;

  /// What tells this process from all others, those before it on this machine included.
  virtual const std::string& incarnation() const = 0;
  /// Says in the stores of those queues that the process has ended, so that nobody waits for its leases. Nothing to do
  /// is well done.
  virtual Result<void> ended(const EndedOwner& owner, Deadline deadline) = 0;
};

}  // namespace sluice::queue
