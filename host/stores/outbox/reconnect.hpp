#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

/// What everybody does who keeps a session with a database.
namespace sluice::queue::outbox {

inline constexpr Duration kConnectTime = std::chrono::seconds(10);

/// After such an error the session is closed, and nothing but its destructor may be called.
inline bool ends_session(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timeout || code == ErrorCode::unknown_outcome;
}

/// The pauses between tries that fail one after the other: twice as long each time, up to 5 s, and never in step with
/// anybody else's. Not thread-safe.
class RetryPause {
 public:
  Duration next(Random& random) {
    constexpr Duration kFirst = std::chrono::milliseconds(100);
    constexpr Duration kLast = std::chrono::seconds(5);
    constexpr std::uint32_t kMostDoublings = 10;
    const Duration full = std::min(kFirst * (1U << std::min(failures_++, kMostDoublings)), kLast);
    return full / 2 + Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(full.count()))));
  }
  void worked() { failures_ = 0; }

 private:
  std::uint32_t failures_ = 0;
};

}  // namespace sluice::queue::outbox
