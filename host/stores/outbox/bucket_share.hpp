#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// Which buckets this source tries to have, and which it gives back, so that all live members have about the same
/// number. Knows what is locked, and asks for no lock itself. Not thread-safe.
class BucketShare {
 public:
  /// `first` says where this member begins to look for free buckets: members that look from different places meet less.
  BucketShare(std::uint32_t buckets, std::uint32_t first) : buckets_(buckets), next_(first % buckets) {}

  /// So many members share the buckets now. The buckets that are too many from now on: nothing more shall go out of
  /// them, and once nothing is out any more they are `free_to_go`.
  std::vector<std::uint32_t> shared_by(std::uint32_t members);
  /// Buckets to be tried now; empty: enough are held, or all others have been tried since `begin_round`.
  std::vector<std::uint32_t> to_try();
  void begin_round() { tried_ = 0; }
  /// These of the last `to_try` were locked. Those that are too many are given back at once; the others are held.
  struct Got {
    std::vector<std::uint32_t> held;
    std::vector<std::uint32_t> surplus;
  };
  Got locked(std::span<const std::uint32_t> buckets);
  /// Buckets that are to be unlocked, of those that are leaving and out of which nothing is.
  std::vector<std::uint32_t> free_to_go(const std::function<bool(std::uint32_t)>& nothing_out) const;
  void unlocked(std::span<const std::uint32_t> buckets);
  void lost_all();

  bool settled() const { return held_.size() >= target_ && leaving_.empty(); }
  bool leaving() const { return !leaving_.empty(); }
  std::size_t held() const { return held_.size(); }
  std::size_t target() const { return target_; }

 private:
  // Fixed after construction.
  const std::uint32_t buckets_;

  std::set<std::uint32_t> held_;
  std::set<std::uint32_t> leaving_;
  std::size_t target_ = 0;
  std::uint32_t next_;
  std::uint32_t tried_ = 0;  ///< in this round
};

}  // namespace sluice::queue::outbox
