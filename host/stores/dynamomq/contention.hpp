#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// How a host gets out of the way of others that work on the same table. A value; not thread-safe.
///
/// While races are lost, the hosts share the candidates out among themselves: each takes those whose id it comes first
/// for, by a hash that all compute alike, and leaves the others alone until they have waited for kPatience, in case
/// their host has no hands free; of those it takes the youngest first, because their host begins with the oldest. Peers
/// are known by the nonces they leave. Against consumers without nonces (DynamoMQ's own) it begins at a random place
/// instead of at the head. Without lost races none of this happens.
class Contention {
 public:
  static constexpr double kThreshold = 8;  ///< lost races, of late
  static constexpr Duration kHalfLife = std::chrono::seconds(3);
  static constexpr Duration kPatience = std::chrono::seconds(1);
  static constexpr Duration kPeerLife = std::chrono::seconds(30);
  static constexpr std::size_t kMaxPeers = 256;
  static constexpr std::size_t kMaxPutOff = 4'096;

  /// `tag` is what this host's nonces begin with.
  explicit Contention(std::string tag) : tag_(std::move(tag)) {}

  void lost(std::size_t races, SteadyTime now);
  void saw_peer(std::string_view tag, SteadyTime now);
  bool active(SteadyTime now) const;
  bool knows_peers(SteadyTime now) const;

  /// Whether to leave this record to its own host for now. Remembers since when it has been left.
  bool leave(const Candidate& candidate, SteadyTime now);
  /// Whether this host comes first for that id, among those it knows.
  bool comes_first(const std::string& id, SteadyTime now) const;

 private:
  double recent_losses(SteadyTime now) const;

  std::string tag_;
  double losses_ = 0;
  SteadyTime losses_at_{};
  std::map<std::string, SteadyTime, std::less<>> peers_;
  std::unordered_map<std::string, SteadyTime> left_since_;
};

}  // namespace sluice::queue::dynamomq
