#pragma once

#include <functional>
#include <stop_token>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {

/// The patience with a OwnershipCoordinator of whoever has one: the rounds of a thread that does what is due, and the
/// tries of handing a half over. Thread-safe.
class KeeperRounds {
 public:
  static constexpr Duration kCall = std::chrono::seconds(5);  ///< the longest that one turn takes

  /// `machine` is this machine's clock; the references outlive it.
  KeeperRounds(OwnershipCoordinator& keeper, const Clock& machine) : keeper_(keeper), machine_(machine) {}

  /// Does what is due, and `then` what may wait, until it is to stop: what a thread is for.
  void run(const std::stop_token& stop, const std::function<void()>& then = {});
  /// Hands over what the half owns, again and again until that has succeeded: true. False: it took too long, or
  /// `in_vain`, which is asked after each try, has said that there is no use in another one.
  bool leave(HalfDuty& half, const std::function<bool(SteadyTime)>& in_vain);

 private:
  OwnershipCoordinator& keeper_;
  const Clock& machine_;
  Mutex mutex_;
  Condition stopped_;
};

}  // namespace sluice::queue::leased
