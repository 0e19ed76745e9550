#include "host/stores/owned/ownership.hpp"

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "base/guard.hpp"
#include "base/ranges.hpp"

namespace sluice::queue::owned {
namespace {

using Holdings = std::map<std::string, std::vector<std::size_t>>;

// By host: the parts that it has, by number.
Holdings holdings_of(const Owners& owners, const std::set<std::string>& hosts) {
  Holdings holdings;
  for (const std::string& host : hosts) {
    holdings[host];
  }
  for (std::size_t part = 0; part < owners.size(); ++part) {
    if (const auto found = holdings.find(owners[part]); found != holdings.end()) {
      found->second.push_back(part);
    }
  }
  return holdings;
}

// The larger shares go to those who have most already: that moves the fewest parts.
std::map<std::string, std::size_t> shares_of(const Holdings& holdings, std::size_t parts) {
  auto by_size = mapped(holdings, [](const auto& entry) { return &entry; });
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto* one, const auto* other) { return one->second.size() > other->second.size(); });
  std::map<std::string, std::size_t> shares;
  const std::size_t larger = parts % holdings.size();
  for (std::size_t i = 0; i < by_size.size(); ++i) {
    shares[by_size[i]->first] = parts / holdings.size() + (i < larger ? 1 : 0);
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
  for (const auto& [host, parts] : holdings) {
    const std::size_t kept = std::min(parts.size(), room[host]);
    for (std::size_t i = 0; i < kept; ++i) {
      plan[parts[i]] = host;
    }
    room[host] -= kept;
  }
  auto next = room.begin();
  for (std::string& owner : plan) {
    if (owner.empty()) {
      next = std::find_if(next, room.end(), [](const auto& entry) { return entry.second > 0; });
      owner = next->first;  // shares add up to the number of parts
      --next->second;
    }
  }
  return plan;
}

std::vector<PartKeeper::Move> PartKeeper::look(std::span<const Ownership> read, Membership& members, SteadyTime now) {
  mine_.resize(read.size());  // what is beyond that is lost
  Owners owners;
  owners.reserve(read.size());
  for (const Ownership& item : read) {
    recognise(item);
    if (!item.owner.empty()) {
      members.met(item.owner, now);
    }
    owners.push_back(item.owner);
  }
  interrupted_ = false;
  const Owners plan = assignment_plan(owners, planned_hosts(owners, members, now));
  expects_ = false;
  std::vector<Move> moves;
  for (std::size_t part = 0; part < read.size(); ++part) {
    const std::string& owner = read[part].owner;
    const bool settled = members.settled(owner) || members.moved(owner, queue_);
    if (auto move = follow(read[part], plan[part], members.alive(owner, now), settled)) {
      moves.push_back(std::move(*move));
    }
  }
  return moves;
}

// What is given to a host that has just died is hidden until its lease ends; one that dies again and again, under
// another name each time, would hide it for as long as it does so. What such a host has it keeps as any other.
std::set<std::string> PartKeeper::planned_hosts(const Owners& owners, const Membership& members, SteadyTime now) const {
  std::set<std::string> all = members.workers(queue_, now);
  if (!SLUICE_GUARD(leased_probation)) {
    return all;
  }
  std::set<std::string> heard;
  std::set<std::string> steady;
  for (const std::string& host : all) {
    const bool owns = std::find(owners.begin(), owners.end(), host) != owners.end();
    if (owns || !members.silent(host, now)) {
      heard.insert(host);
      if (owns || !members.on_probation(host, now)) {
        steady.insert(host);
      }
    }
  }
  return !steady.empty() ? steady : !heard.empty() ? heard : all;
}

// Brings what this host has into line with an item. One that is older than what this host has written or seen is that
// of a table that was made again, or was removed by somebody: the part is taken anew, from what is there now.
void PartKeeper::recognise(const Ownership& item) {
  Mine& mine = mine_[item.part];
  if (item.epoch < mine.item.epoch) {
    mine = {.keeping = Keeping::none, .item = item, .heir = {}, .torn = true};
    return;
  }
  if (item.owner != host_) {
    mine.keeping = Keeping::none;
  } else if (item.epoch > mine.item.epoch && !interrupted_) {
    mine.keeping = Keeping::owned;  // handed over to this host, whose lease has held since before that
  }
  mine.torn = mine.torn && item.epoch == mine.item.epoch;
  mine.item = item;
}

// What the plan means for one part.
std::optional<PartKeeper::Move> PartKeeper::follow(const Ownership& item, const std::string& planned, bool lives,
                                                   bool settled) {
  Mine& mine = mine_[item.part];
  if (mine.keeping != Keeping::none) {
    mine.keeping = planned == host_ ? Keeping::owned : Keeping::closing;
    mine.heir = planned == host_ ? std::string() : planned;
    return std::nullopt;
  }
  // What the item says is this host's but it has lost is for nobody else to take, as this host lives.
  const bool to_pass_on = item.owner == host_ && planned != host_;
  if (planned != host_ && !to_pass_on) {
    return std::nullopt;
  }
  if (lives && item.owner != host_) {
    expects_ = true;
    return std::nullopt;
  }
  Move move{item, item};
  move.after.owner = planned;
  move.after.epoch = std::max<std::int64_t>(item.epoch, 0) + 1;
  move.after.drained = false;
  // What an owner that was not handed its part cleanly had inherited in doubt nobody has settled.
  move.after.clean = item.clean && !mine.torn && (item.owner.empty() || (settled && item.owner != host_));
  return move;
}

void PartKeeper::moved(const Move& move) {
  const std::uint32_t part = move.after.part;
  if (part >= mine_.size() || move.after.epoch <= mine_[part].item.epoch) {
    return;
  }
  Mine& mine = mine_[part];
  mine.item = move.after;
  mine.torn = false;
  mine.keeping = move.after.owner == host_ ? Keeping::owned : Keeping::none;
}

PartKeeper::Keeping PartKeeper::keeping(std::uint32_t part) const {
  return part < mine_.size() ? mine_[part].keeping : Keeping::none;
}

PartKeeper::Move PartKeeper::give_up(std::uint32_t part) const {
  SLUICE_ASSERT(keeping(part) != Keeping::none);
  const Ownership& item = mine_[part].item;
  return {item, {.part = part, .owner = {}, .epoch = item.epoch + 1, .drained = true}};
}

PartKeeper::Move PartKeeper::hand_over(std::uint32_t part) const {
  SLUICE_ASSERT(keeping(part) == Keeping::closing);
  const Mine& mine = mine_[part];
  Move move{mine.item, mine.item};
  move.after.owner = mine.heir;
  move.after.epoch = mine.item.epoch + 1;
  move.after.clean = true;
  move.after.left = {};
  return move;
}

std::vector<std::uint32_t> PartKeeper::parts() const {
  std::vector<std::uint32_t> parts;
  for (std::uint32_t part = 0; part < mine_.size(); ++part) {
    if (mine_[part].keeping != Keeping::none) {
      parts.push_back(part);
    }
  }
  return parts;
}

bool PartKeeper::is_named() const {
  return std::any_of(mine_.begin(), mine_.end(), [this](const Mine& mine) { return mine.item.owner == host_; });
}

void PartKeeper::lease_lost() {
  interrupted_ = true;
  for (Mine& mine : mine_) {
    mine.keeping = Keeping::none;
  }
}

}  // namespace sluice::queue::owned
