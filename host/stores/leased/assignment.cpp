#include "host/stores/leased/assignment.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

namespace sluice::queue::leased {
namespace {

using Holdings = std::map<std::string, std::vector<std::size_t>>;

// By host: the shards that it has, by number.
Holdings holdings_of(const Owners& owners, const std::set<std::string>& hosts) {
  Holdings holdings;
  for (const std::string& host : hosts) {
    holdings[host];
  }
  for (std::size_t shard = 0; shard < owners.size(); ++shard) {
    if (const auto found = holdings.find(owners[shard]); found != holdings.end()) {
      found->second.push_back(shard);
    }
  }
  return holdings;
}

// The larger shares go to those who have most already: that moves the fewest shards.
std::map<std::string, std::size_t> shares_of(const Holdings& holdings, std::size_t shards) {
  std::vector<const Holdings::value_type*> by_size;
  by_size.reserve(holdings.size());
  for (const auto& entry : holdings) {
    by_size.push_back(&entry);
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto* one, const auto* other) { return one->second.size() > other->second.size(); });
  std::map<std::string, std::size_t> shares;
  const std::size_t larger = shards % holdings.size();
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    shares[by_size[i]->first] = shards / holdings.size() + (i < larger ? 1 : 0);
  }
  return shares;
}

}  // namespace

Owners assignment_plan(const Owners& owners, const std::set<std::string>& hosts) {
  Owners plan(owners.size());
  if (hosts.empty()) {
    return plan;
  }
  const Holdings holdings = holdings_of(owners, hosts);
  auto room = shares_of(holdings, owners.size());
  for (const auto& [host, shards] : holdings) {
    const std::size_t kept = std::min(shards.size(), room[host]);
    for (std::size_t i = 0; i < kept; ++i) {
      plan[shards[i]] = host;
    }
    room[host] -= kept;
  }
  auto next = room.begin();
  for (std::string& owner : plan) {
    if (owner.empty()) {
      next = std::find_if(next, room.end(), [](const auto& entry) { return entry.second > 0; });
      owner = next->first;  // shares add up to the number of shards
      --next->second;
    }
  }
  return plan;
}

}  // namespace sluice::queue::leased
