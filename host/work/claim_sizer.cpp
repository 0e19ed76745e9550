#include "host/work/claim_sizer.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::work {
namespace {

// Weight of one observation in the moving averages.
constexpr double kWeight = 0.1;

double blend(double mean, double value, std::size_t count) {
  const double weight = std::min(0.5, kWeight * static_cast<double>(count));
  return mean + weight * (value - mean);
}

}  // namespace

void ClaimSizer::handled(Duration total, std::size_t count) {
  if (count == 0) {
    return;
  }
  const double mean = std::max(1e-9, std::chrono::duration<double>(total).count() / static_cast<double>(count));
  seconds_ = seconds_ < 0 ? mean : blend(seconds_, mean, count);
}

void ClaimSizer::received(std::size_t bytes, std::size_t count) {
  if (count > 0) {
    bytes_ = blend(bytes_, static_cast<double>(bytes) / static_cast<double>(count), count);
  }
}

std::size_t ClaimSizer::room(const Pool& pool) const {
  double ahead = 0;
  const double horizon = std::chrono::duration<double>(kStartHorizon).count();
  if (seconds_ > 0 && seconds_ < horizon) {
    ahead = static_cast<double>(pool.active) * std::floor(horizon / seconds_);
  }
  if (bytes_ >= 1) {
    ahead = std::min(ahead, std::floor(static_cast<double>(kClaimBytes) / bytes_));
  }
  const double wanted = static_cast<double>(pool.free) + ahead - static_cast<double>(pool.asking);
  const auto target = static_cast<std::size_t>(std::clamp(wanted, 0.0, static_cast<double>(kMaxClaim)));
  if (pool.queued > target / 2 || pool.queued >= target) {
    return 0;
  }
  return target - pool.queued;
}

std::size_t ClaimSizer::handful(std::size_t queued, std::size_t workers) const {
  if (seconds_ <= 0 || queued == 0) {
    return std::min<std::size_t>(queued, 1);
  }
  const double fits = std::chrono::duration<double>(kHandfulTime).count() / seconds_;
  const std::size_t share = (queued + workers - 1) / std::max<std::size_t>(workers, 1);
  const auto most = static_cast<std::size_t>(std::clamp(fits, 1.0, static_cast<double>(kMaxHandful)));
  return std::max<std::size_t>(1, std::min(most, share));
}

Duration ClaimSizer::handler_time() const {
  return seconds_ < 0 ? Duration::max() : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds_));
}

}  // namespace sluice::work
