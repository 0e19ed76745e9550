#pragma once

#include <prometheus/client_metric.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace sluice::observe {

/// How long attempts took, by buckets. Thread-safe; an observation is two atomic additions, whatever its count, where
/// the library's own histogram takes a lock and touches every bucket. A resource.
class DurationHistogram {
 public:
  DurationHistogram() = default;
  DurationHistogram(const DurationHistogram&) = delete;
  DurationHistogram& operator=(const DurationHistogram&) = delete;

  /// `count` times the same duration.
  void observe(Duration duration, std::uint64_t count);

  /// The sample without its labels. Observations made meanwhile may be in the sum and not yet in the buckets.
  prometheus::ClientMetric collect() const;

 private:
  /// From handlers that only touch memory to those that run for minutes.
  static constexpr std::array<double, 16> kUpperBounds{0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25,
                                                       0.5,    1,      2.5,   5,     10,   30,   60,  300};

  std::array<std::atomic<std::uint64_t>, kUpperBounds.size() + 1> buckets_{};
  std::atomic<std::uint64_t> sum_{0};  // nanoseconds; enough for five centuries
};

}  // namespace sluice::observe
