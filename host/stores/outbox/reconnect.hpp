#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

/// What everybody does who keeps a session with a database.
namespace sluice::queue::outbox {

inline constexpr Duration kConnectTime = std::chrono::seconds(10);

/// After such an error the session is closed, and nothing but its destructor may be called.
bool ends_session(ErrorCode code);

/// The pauses between tries that fail one after the other: twice as long each time, up to 5 s, and never in step with
/// anybody else's. Not thread-safe.
class RetryPause {
 public:
  Duration next(Random& random);
  void worked() { failures_ = 0; }

 private:
  std::uint32_t failures_ = 0;
};

}  // namespace sluice::queue::outbox
