#include "host/stores/leased/keeper_rounds.hpp"

#include <algorithm>

namespace sluice::queue::leased {
namespace {

constexpr Duration kLeave = std::chrono::seconds(10);  // the longest that it tries to hand a half over
constexpr int kLeaveTries = 25;
constexpr Duration kLeavePause = std::chrono::milliseconds(50);  // between the first tries; grows
constexpr Duration kNap = std::chrono::milliseconds(100);        // the thread looks so often whether it is time

}  // namespace

void KeeperRounds::run(const std::stop_token& stop, const std::function<void()>& then) {
  while (!stop.stop_requested()) {
    keeper_.tend(true, Deadline::after(machine_, kCall));
    if (then) {
      then();
    }
    const MutexLock lock(mutex_);
    stopped_.wait_until(mutex_, stop, machine_.machine_time(machine_.steady_now() + kNap), [] { return false; });
  }
}

bool KeeperRounds::leave(HalfDuty& half, const std::function<bool(SteadyTime)>& in_vain) {
  const Deadline deadline = Deadline::after(machine_, kLeave);
  Duration pause = kLeavePause;
  for (int tries = 1; !keeper_.leave(half, deadline.earlier(Deadline::after(machine_, kCall))); ++tries) {
    const SteadyTime now = machine_.steady_now();
    if (in_vain(now) || tries == kLeaveTries || deadline.passed(now)) {
      return false;
    }
    const MutexLock lock(mutex_);
    stopped_.wait_until(mutex_, machine_.machine_time(now + pause), [] { return false; });
    pause = std::min(pause * 2, kCall / 10);
  }
  return true;
}

}  // namespace sluice::queue::leased
