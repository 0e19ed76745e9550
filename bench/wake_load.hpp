#pragma once

#include <cstddef>
#include <cstdint>

#include "bench/wake_host.hpp"

namespace sluice::bench {

/// A sending process begins so long after it was made.
inline constexpr double kBeginsInSeconds = 0.2;

/// What a sending process does.
struct Load {
  double rate = 1;           ///< messages a second
  std::size_t messages = 1;  ///< all of them
  std::size_t batch = 1;     ///< messages in one call of send
  std::size_t threads = 64;  ///< that share one client; a call that is late holds up those of its thread only
  std::int64_t delay = 0;    ///< nanoseconds from the call of send to the time at which a message may start
};

/// Sends it all, each body beginning with the time at which its call began, or at which the message is due. Throws
/// std::runtime_error when a message is not stored.
void send_all(const WakeHost& host, const Load& load);

}  // namespace sluice::bench
