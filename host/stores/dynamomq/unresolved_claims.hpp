#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// A claim whose answer was lost: it may be ours.
struct UnresolvedClaim {
  Candidate candidate;  ///< as it was before
  std::string nonce;    ///< of the claim
  SteadyTime leased_until{};
};

/// The claims of one half of a queue of which nobody knows yet whether they took effect. Within a limit: what does not
/// fit is forgotten, the oldest first. Thread-safe.
class UnresolvedClaims {
 public:
  static constexpr std::size_t kMost = 1'000;

  void remember(UnresolvedClaim claim);
  /// At most `count`, the oldest first. A suspect comes alone, and only where `suspects` are wanted.
  std::vector<UnresolvedClaim> take(std::size_t count, bool suspects);

 private:
  Mutex mutex_;
  std::deque<UnresolvedClaim> claims_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::queue::dynamomq
