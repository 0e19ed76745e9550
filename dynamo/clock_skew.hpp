#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// How far this machine's wall clock is from AWS's, as learnt from refusals; signatures carry AWS's time. Thread-safe.
class ClockSkew {
 public:
  /// A signature is good for five minutes; what differs less is not why it was refused.
  static constexpr Duration kTolerance = std::chrono::minutes(4);

  WallTime corrected(WallTime local) const { return local + Duration(offset_.load(std::memory_order_relaxed)); }

  /// Learns from a refused request that was signed at `signed_at`. True when the refusal is about time and the answer's
  /// Date shows that it was signed at a wrong one: then it is worth making again.
  bool learn(const Error& refusal, std::string_view date_header, WallTime local_now, WallTime signed_at);

 private:
  std::atomic<Duration::rep> offset_{0};
};

/// Reads a Date header: "Sun, 06 Nov 1994 08:49:37 GMT". Pure.
std::optional<WallTime> parse_http_date(std::string_view text);

}  // namespace sluice::dynamo
