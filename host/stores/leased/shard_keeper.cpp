#include "host/stores/leased/shard_keeper.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/guard.hpp"

namespace sluice::queue::leased {

std::vector<ShardKeeper::Move> ShardKeeper::look(std::span<const Ownership> read, Membership& members, SteadyTime now) {
  for (auto shard = static_cast<std::uint32_t>(read.size()); shard < mine_.size(); ++shard) {
    lose(mine_[shard], shard);  // there are fewer shards than there were
  }
  mine_.resize(read.size());
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
  for (std::size_t shard = 0; shard < read.size(); ++shard) {
    const std::string& owner = read[shard].owner;
    const OwnerState standing{.lives = members.alive(owner, now),
                              .settled = members.settled(owner) || members.moved(owner, half_)};
    if (auto move = follow(read[shard], plan[shard], standing)) {
      moves.push_back(std::move(*move));
    }
  }
  return moves;
}

// What is given to a host that has just died is hidden until its lease ends; one that dies again and again, under
// another name each time, would hide it for as long as it does so. What such a host has it keeps as any other.
std::set<std::string> ShardKeeper::planned_hosts(const Owners& owners, const Membership& members,
                                                 SteadyTime now) const {
  std::set<std::string> all = members.workers(half_, now);
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
// of a table that was made again, or was removed by somebody: the shard is taken anew, from what is there now.
void ShardKeeper::recognise(const Ownership& item) {
  Mine& mine = mine_[item.shard];
  if (item.epoch < mine.item.epoch) {
    lose(mine, item.shard);
    mine = {.keeping = Keeping::none, .item = item, .heir = {}, .torn = true};
    return;
  }
  if (item.owner != host_) {
    lose(mine, item.shard);
  } else if (item.epoch > mine.item.epoch && !interrupted_) {
    mine.keeping = Keeping::owned;  // handed over to this host, whose lease has held since before that
  }
  mine.torn = mine.torn && item.epoch == mine.item.epoch;
  mine.item = item;
}

// What the plan means for one shard.
std::optional<ShardKeeper::Move> ShardKeeper::follow(const Ownership& item, const std::string& planned,
                                                     OwnerState owner) {
  Mine& mine = mine_[item.shard];
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
  if (owner.lives && item.owner != host_) {
    expects_ = true;
    return std::nullopt;
  }
  Move move{item, item};
  move.after.owner = planned;
  move.after.epoch = item.epoch + 1;
  // What an owner that was not handed its shard cleanly had inherited in doubt nobody has settled.
  move.after.clean = item.clean && !mine.torn && (item.owner.empty() || (owner.settled && item.owner != host_));
  return move;
}

void ShardKeeper::moved(const Move& move) {
  const std::uint32_t shard = move.after.shard;
  if (shard >= mine_.size() || move.after.epoch <= mine_[shard].item.epoch) {
    return;
  }
  Mine& mine = mine_[shard];
  mine.item = move.after;
  mine.torn = false;
  mine.keeping = move.after.owner == host_ ? Keeping::owned : Keeping::none;
}

ShardKeeper::Keeping ShardKeeper::keeping(std::uint32_t shard) const {
  return shard < mine_.size() ? mine_[shard].keeping : Keeping::none;
}

std::vector<std::uint32_t> ShardKeeper::take_lost() { return std::exchange(lost_, {}); }

ShardKeeper::Move ShardKeeper::give_up(std::uint32_t shard) const {
  SLUICE_ASSERT(keeping(shard) != Keeping::none);
  const Ownership& item = mine_[shard].item;
  return {item, {.shard = shard, .owner = {}, .epoch = item.epoch + 1, .clean = true, .left = {}}};
}

ShardKeeper::Move ShardKeeper::hand_over(std::uint32_t shard) const {
  SLUICE_ASSERT(keeping(shard) == Keeping::closing);
  const Mine& mine = mine_[shard];
  Move move{mine.item, mine.item};
  move.after.owner = mine.heir;
  move.after.epoch = mine.item.epoch + 1;
  move.after.clean = true;
  move.after.left = {};
  return move;
}

std::vector<std::uint32_t> ShardKeeper::shards() const {
  std::vector<std::uint32_t> shards;
  for (std::uint32_t shard = 0; shard < mine_.size(); ++shard) {
    if (mine_[shard].keeping != Keeping::none) {
      shards.push_back(shard);
    }
  }
  return shards;
}

void ShardKeeper::lease_lost() {
  interrupted_ = true;
  for (std::uint32_t shard = 0; shard < mine_.size(); ++shard) {
    lose(mine_[shard], shard);
  }
}

void ShardKeeper::lose(Mine& mine, std::uint32_t shard) {
  if (mine.keeping != Keeping::none) {
    mine.keeping = Keeping::none;
    lost_.push_back(shard);
  }
}

}  // namespace sluice::queue::leased
