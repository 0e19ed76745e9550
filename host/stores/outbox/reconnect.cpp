#include "host/stores/outbox/reconnect.hpp"

#include <algorithm>

namespace sluice::queue::outbox {
namespace {

constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLastRetry = std::chrono::seconds(5);
constexpr std::uint32_t kMostDoublings = 10;

}  // namespace

bool ends_session(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timeout || code == ErrorCode::unknown_outcome;
}

Duration RetryPause::next(Random& random) {
  const Duration full = std::min(kFirstRetry * (1U << std::min(failures_++, kMostDoublings)), kLastRetry);
  return full / 2 + Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(full.count()))));
}

}  // namespace sluice::queue::outbox
