#include "host/queue/message.hpp"

#include <algorithm>
#include <array>

namespace sluice::queue {

namespace {

constexpr std::array<std::string_view, kPriorities> kPriorityNames{"critical", "high", "normal", "low"};

}  // namespace

std::string_view to_string(Half half) { return half == Half::dlq ? "DLQ" : "STANDARD"; }

std::string_view to_string(Priority priority) { return kPriorityNames.at(static_cast<std::size_t>(priority)); }

std::optional<Priority> priority_named(std::string_view name) {
  const auto* const found = std::find(kPriorityNames.begin(), kPriorityNames.end(), name);
  if (found == kPriorityNames.end()) {
    return std::nullopt;
  }
  return static_cast<Priority>(found - kPriorityNames.begin());
}

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
