#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace sluice::queue::leased {

/// Who has each shard, by its number; an empty name: nobody.
using Owners = std::vector<std::string>;

/// Who should have each shard. A pure function, so that all hosts come to the same plan from the same reads.
///
/// Every host gets its share, which differs by one shard at most, and as few shards as can be change hands: whoever has
/// one keeps it while it fits into his share. `hosts` are those that live and stay; a shard of anybody else is free.
/// Without hosts nobody has any.
Owners assignment_plan(const Owners& owners, const std::set<std::string>& hosts);

}  // namespace sluice::queue::leased
