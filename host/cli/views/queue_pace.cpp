#include "host/cli/views/queue_pace.hpp"

#include <chrono>

namespace sluice::cli {

namespace {

// Long enough to even out batches, short enough to show what was changed just now.
constexpr Duration kWindow = std::chrono::seconds(15);

}  // namespace

void QueuePace::add(SteadyTime now, std::uint64_t total) {
  looks_.emplace_back(now, total);
  // Looks may be further apart than the window; two are always kept.
  while (looks_.size() > 2 && now - looks_[1].first >= kWindow) {
    looks_.pop_front();
  }
}

std::optional<double> QueuePace::per_second() const {
  if (looks_.size() < 2 || looks_.back().first <= looks_.front().first) {
    return std::nullopt;
  }
  const double change = static_cast<double>(looks_.back().second) - static_cast<double>(looks_.front().second);
  return change / std::chrono::duration<double>(looks_.back().first - looks_.front().first).count();
}

std::optional<Duration> QueuePace::empty_in() const {
  const auto pace = per_second();
  if (!pace || *pace >= 0 || looks_.back().second == 0) {
    return std::nullopt;
  }
  const double seconds = static_cast<double>(looks_.back().second) / -*pace;
  constexpr double kLongest = 365.0 * 24 * 3600;
  return seconds > kLongest
             ? std::nullopt
             : std::optional(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
}

}  // namespace sluice::cli
