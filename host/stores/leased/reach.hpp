#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::queue::leased {

/// How far behind the head of a shard anything may be at work. Messages are counted in the order of their keys,
/// whatever order they were handed out in and whatever time they wait for, so that whoever takes the shard counts the
/// same. A value; by default that of a host that has nothing at work.
struct Reach {
  static constexpr std::uint32_t kAnything = 1'000'000;

  std::uint32_t places = 0;    ///< it is among so many of its priority
  std::uint32_t in_group = 0;  ///< and, of a group, among so many of its priority and group
  /// It was read so soon after it was due that what comes late may lie before it, and nobody has seen that yet.
  bool fresh = false;

  bool covers(const Reach& other) const {
    return places >= other.places && in_group >= other.in_group && (fresh || !other.fresh);
  }
  Reach operator|(const Reach& other) const {
    return {std::max(places, other.places), std::max(in_group, other.in_group), fresh || other.fresh};
  }
  Reach operator&(const Reach& other) const {
    return {std::min(places, other.places), std::min(in_group, other.in_group), fresh && other.fresh};
  }
  friend bool operator==(const Reach&, const Reach&) = default;
};

}  // namespace sluice::queue::leased
