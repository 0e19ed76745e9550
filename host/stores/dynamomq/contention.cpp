#include "host/stores/dynamomq/contention.hpp"

#include <cmath>

#include "host/stores/table/nonce.hpp"

namespace sluice::queue::dynamomq {

double Contention::recent_losses(SteadyTime now) const {
  const auto halvings = std::chrono::duration<double>(now - losses_at_) / std::chrono::duration<double>(kHalfLife);
  return losses_ * std::exp2(-std::max(0.0, halvings));
}

void Contention::lost(std::size_t races, SteadyTime now) {
  losses_ = recent_losses(now) + static_cast<double>(races);
  losses_at_ = now;
}

void Contention::saw_peer(std::string_view tag, SteadyTime now) {
  if (tag.empty() || tag == tag_) {
    return;
  }
  std::erase_if(peers_, [&](const auto& peer) { return now - peer.second > kPeerLife; });
  if (const auto known = peers_.find(tag); known != peers_.end()) {
    known->second = now;
  } else if (peers_.size() < kMaxPeers) {
    peers_.emplace(tag, now);
  }
}

bool Contention::active(SteadyTime now) const { return recent_losses(now) >= kThreshold; }

bool Contention::knows_peers(SteadyTime now) const {
  for (const auto& [tag, seen] : peers_) {
    if (now - seen <= kPeerLife) {
      return true;
    }
  }
  return false;
}

bool Contention::comes_first(const std::string& id, SteadyTime now) const {
  const std::uint64_t seed = table::stable_hash(id);
  const std::uint64_t own = table::stable_hash(tag_, seed);
  for (const auto& [tag, seen] : peers_) {
    if (now - seen <= kPeerLife && table::stable_hash(tag, seed) > own) {
      return false;
    }
  }
  return true;
}

bool Contention::leave(const Candidate& candidate, SteadyTime now) {
  if (!active(now) || comes_first(candidate.id, now)) {
    return false;
  }
  if (left_since_.size() >= kMaxPutOff) {
    std::erase_if(left_since_, [&](const auto& left) { return now - left.second > 2 * kPatience; });
    if (left_since_.size() >= kMaxPutOff) {
      left_since_.clear();
    }
  }
  return now - left_since_.emplace(candidate.id, now).first->second < kPatience;
}

}  // namespace sluice::queue::dynamomq
