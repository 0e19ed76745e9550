#include "host/observe/duration_histogram.hpp"

#include <algorithm>
#include <limits>

namespace sluice::observe {

void DurationHistogram::observe(Duration duration, std::uint64_t count) {
  const double seconds = std::chrono::duration<double>(duration).count();
  const auto* bound = std::lower_bound(kUpperBounds.begin(), kUpperBounds.end(), seconds);
  buckets_[static_cast<std::size_t>(bound - kUpperBounds.begin())].fetch_add(count, std::memory_order_relaxed);
  const auto nanoseconds = static_cast<std::uint64_t>(std::max(duration, Duration::zero()).count());
  sum_.fetch_add(nanoseconds * count, std::memory_order_relaxed);
}

prometheus::ClientMetric DurationHistogram::collect() const {
  prometheus::ClientMetric metric;
  std::uint64_t cumulative = 0;
  for (std::size_t index = 0; index < buckets_.size(); ++index) {
    cumulative += buckets_[index].load(std::memory_order_relaxed);
    const bool last = index == kUpperBounds.size();
    metric.histogram.bucket.push_back(
        {cumulative, last ? std::numeric_limits<double>::infinity() : kUpperBounds[index]});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum =
      std::chrono::duration<double>(std::chrono::duration<double, std::nano>(sum_.load(std::memory_order_relaxed)))
          .count();
  return metric;
}

}  // namespace sluice::observe
