#include "host/queue/message.hpp"

#include <algorithm>

namespace sluice::queue {

std::string_view to_string(Half half) { return half == Half::dlq ? "DLQ" : "STANDARD"; }

std::vector<FailedAttempt> earlier_than_next(const Failure& failure) {
  std::vector<FailedAttempt> earlier;
  if (failure.empty()) {
    return earlier;
  }
  earlier.push_back({.error = failure.error,
                     .host = failure.host,
                     .attempt = failure.attempts,
                     .wait = failure.wait,
                     .took = failure.took,
                     .failed_at = failure.failed_at});
  const std::size_t kept = std::min(failure.earlier.size(), kEarlierFailures - 1);
  earlier.insert(earlier.end(), failure.earlier.begin(), failure.earlier.begin() + static_cast<std::ptrdiff_t>(kept));
  return earlier;
}

}  // namespace sluice::queue
