#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/queues.hpp"

namespace sluice::runtime {

/// Whether queues have nothing due and nothing in flight, here or elsewhere. One thread at a time. The references
/// outlive it.
class EmptyCheck {
 public:
  EmptyCheck(queue::Queues& queues, const Clock& clock) : queues_(queues), clock_(clock) {}

  /// Where a cheap count says that all of them are, a consistent one has the last word: an index that lags behind shows
  /// nothing of what was sent just now. An Error that names the queue when one cannot be counted.
  Result<bool> empty(const std::vector<queue::QueueAddress>& addresses);

 private:
  Result<bool> empty(const queue::QueueAddress& address, bool consistent);

  queue::Queues& queues_;
  const Clock& clock_;
  std::map<std::string, std::unique_ptr<queue::Operator>> operators_;
};

}  // namespace sluice::runtime
