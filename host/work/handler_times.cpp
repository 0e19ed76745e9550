#include "host/work/handler_times.hpp"

#include <algorithm>
#include <bit>

namespace sluice::work {

void HandlerTimes::add(Duration each, std::uint64_t count) {
  const auto micros = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(each).count()));
  buckets_[std::min<std::size_t>(std::bit_width(micros), kBuckets - 1)] += count;
  count_ += count;
  total_ += each * static_cast<Duration::rep>(count);
  slowest_ = std::max(slowest_, each);
}

Duration HandlerTimes::mean_since(const HandlerTimes& before) const {
  const std::uint64_t count = count_ - before.count_;
  return count == 0 ? Duration::zero() : (total_ - before.total_) / static_cast<Duration::rep>(count);
}

Duration HandlerTimes::quantile_since(const HandlerTimes& before, double share) const {
  const std::uint64_t count = count_ - before.count_;
  if (count == 0) {
    return Duration::zero();
  }
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (; bucket + 1 < kBuckets; ++bucket) {
    seen += buckets_[bucket] - before.buckets_[bucket];
    if (static_cast<double>(seen) >= share * static_cast<double>(count)) {
      break;
    }
  }
  return std::chrono::microseconds(std::int64_t{1} << bucket);
}

}  // namespace sluice::work
