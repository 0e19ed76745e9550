#include "host/queue/arrivals.hpp"

#include <algorithm>

namespace sluice::queue {

namespace {

constexpr Duration kLongestPause = std::chrono::seconds(1);
// What is said to be due and is not there must not be asked for without a pause.
constexpr Duration kShortestPause = std::chrono::milliseconds(1);

}  // namespace

std::uint64_t Arrivals::heard() {
  // Nobody claims before the source tells.
  std::call_once(started_, [this] {
    source_.start({.on_ready =
                       [this] {
                         const MutexLock lock(mutex_);
                         ++count_;
                         told_.notify_all();
                       },
                   .lost = {},
                   .by_call = true});
  });
  const MutexLock lock(mutex_);
  return count_;
}

void Arrivals::wait(std::uint64_t heard, SteadyTime until, const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  told_.wait_until(mutex_, stop, clock_.machine_time(until),
                   [this, heard]() SLUICE_REQUIRES(mutex_) { return count_ != heard; });
}

SteadyTime LookPace::next(SteadyTime now, SteadyTime end, std::optional<Duration> next_due) {
  const Duration pause = pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
  return std::min(end, now + (next_due ? std::clamp(*next_due, kShortestPause, pause) : pause));
}

}  // namespace sluice::queue
