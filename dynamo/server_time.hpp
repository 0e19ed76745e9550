#pragma once

#include <atomic>
#include <optional>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// How this machine's wall clock stands to the server's. A value.
struct ClockReading {
  bool dated = false;  ///< answers have come, and told the time; false: they have come and do not tell it
  bool moved = false;  ///< this machine's clock has jumped, or the machine has slept, since an answer told the time
  Duration skew{};     ///< to be added to this machine's wall clock; zero while nothing shows that it is wrong
  Duration doubt{};    ///< how far from right the sum may be all the same
};

/// Learns the server's time from the Date of its answers. That tells whole seconds; but each answer bounds the skew
/// from both sides, and many of them bound it closely. While zero is within the bounds the machine's clock is taken for
/// right. Thread-safe.
class ServerTime {
 public:
  /// Clocks that are kept in step drift apart by less than this share of the time.
  static constexpr double kDrift = 200e-6;
  /// The two clocks of a machine differ by so much more or less than before: one of them was set, or it has slept.
  static constexpr Duration kJump = std::chrono::milliseconds(500);

  /// An answer has come at this moment, `elapsed` after its request was sent. No date: it had none that can be read.
  void learn(std::optional<WallTime> date, WallTime wall, SteadyTime steady, Duration elapsed);
  /// Nothing while no answer has come.
  std::optional<ClockReading> reading(WallTime wall, SteadyTime steady) const;

 private:
  // Of the skew.
  struct Bounds {
    Duration low{};
    Duration high{};
    Duration between_clocks{};  // wall and monotonic clock when it was learnt
    SteadyTime learnt_at{};

    Bounds at(SteadyTime now) const;
    bool jumped(Duration between) const { return std::chrono::abs(between - between_clocks) > kJump; }
  };

  mutable Mutex mutex_;
  // Guarded by mutex_.
  bool answered_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Bounds> bounds_ SLUICE_GUARDED_BY(mutex_);
  Duration contradiction_ SLUICE_GUARDED_BY(mutex_){};  // between the last two answers; zero: they agree
};

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
