// What a OwnershipCoordinator learns by looking at the table, and the ownership items that it writes.

#include <algorithm>
#include <utility>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_coordinator.hpp"

namespace sluice::queue::leased {
namespace {

// A dead host's heartbeat is removed after so many leases.
constexpr int kLeasesInState = 10;
constexpr std::size_t kMostBeats = 4096;

// Who works on what, as a text to be compared.
std::string roll_of(const std::vector<Heartbeat>& beats, const Membership& members, SteadyTime now) {
  std::string roll;
  for (const Heartbeat& beat : beats) {
    roll += beat.host + (beat.ended ? " has ended\n" : beat.leaving ? " leaves\n" : "\n");
    roll += members.on_probation(beat.host, now) ? " is on probation\n" : "";
    for (const std::string& half : beat.works_on) {
      roll += " " + half + (beat.moves.contains(half) ? " elsewhere\n" : "\n");
    }
  }
  return roll;
}

// The item as it stands after that write.
OwnershipRow row_of(const std::string& partition, const Ownership& value) {
  OwnershipRow row{.value = value};
  if (value.epoch > 0) {
    row.item = ownership_write({}, partition, {}, value, false).item;
  }
  return row;
}

}  // namespace

Duration OwnershipCoordinator::glance_pause(SteadyTime now) const {
  const bool busy =
      std::any_of(duties_.begin(), duties_.end(), [now](const Duty& duty) { return duty.half->busy(now); });
  return busy ? kBusyGlance : kIdleGlance;
}

// A look that costs half: it tells of others' heartbeats, and whether there is anything to look at in earnest.
void OwnershipCoordinator::glance(Deadline deadline) {
  const auto beats = read_beats(false, deadline);
  const SteadyTime now = clock_.steady_now();
  glance_at_ = now + glance_pause(now);
  if (!beats) {
    return;
  }
  members_.saw(*beats, now);
  if (roll_of(*beats, members_, now) != seen_) {
    look(deadline);
  }
}

// Who owns what is read before who lives: a host that wakes up in between, and takes what was its own anew, has changed
// the items by then, so that what is written here is refused. For the same reason a host counts as dead only if it was
// so when its heartbeat was asked for.
void OwnershipCoordinator::look(Deadline deadline) {
  if (!holds()) {
    look_at_ = clock_.steady_now() + kExpecting;
    return;
  }
  std::vector<std::optional<OwnershipPage>> pages;
  pages.reserve(duties_.size());
  for (Duty& duty : duties_) {
    pages.push_back(read_ownership(duty, deadline));
  }
  const SteadyTime asked = clock_.steady_now();
  const auto beats = read_beats(true, deadline);
  if (!beats) {
    look_at_ = clock_.steady_now() + kExpecting;
    return;
  }
  const SteadyTime read_at = clock_.steady_now();
  members_.saw(*beats, read_at);
  seen_ = roll_of(*beats, members_, read_at);
  owners_.clear();
  bool soon = false;
  for (std::size_t i = 0; i < duties_.size(); ++i) {
    Duty& duty = duties_[i];
    soon = !pages[i] || !look_at(duty, *pages[i], asked, deadline) || duty.half->expects() || soon;
  }
  clear_up(deadline);
  const SteadyTime now = clock_.steady_now();
  look_at_ = now + (soon ? kExpecting : settings_.lease);
  if (const auto death = members_.next_death(now)) {
    look_at_ = std::min(look_at_, *death + Duration(1));
  }
  glance_at_ = now + glance_pause(now);
}

std::optional<OwnershipPage> OwnershipCoordinator::read_ownership(Duty& duty, Deadline deadline) {
  const auto items = read_partition(duty.partition, true, deadline);
  if (!items) {
    return std::nullopt;
  }
  OwnershipPage page = decode_ownership(*items);
  const QueueAddress& address = duty.half->address();
  if (address.half == Half::dlq) {
    const Place place{ownership_partition(address.queue, Half::standard), std::string(kShardsKey)};
    auto found = client_.get_item({.table = settings_.table, .key = place.key()}, deadline);
    if (!found) {
      tell("the number of shards of queue '" + address.queue + "' cannot be read", found.error());
      return std::nullopt;
    }
    page.shards = found->item.empty() ? std::nullopt : std::optional(std::move(found->item));
  }
  if (!page.shards && !write_numbers(duty, page, deadline)) {
    return std::nullopt;  // somebody else was first: the next look reads it
  }
  for (const std::string& odd : page.odd) {
    remarks_.say("table '" + settings_.table + "': " + odd, clock_.steady_now());
  }
  return page;
}

// Who looks first writes down how many shards there are, so that hosts and senders with other numbers follow it. One
// that may not goes on with its own number.
bool OwnershipCoordinator::write_numbers(const Duty& duty, OwnershipPage& page, Deadline deadline) {
  const std::string& queue = duty.half->address().queue;
  Shards numbers{duty.half->configured_shards(), duty.half->configured_shards()};
  if (!page.rows.empty()) {
    numbers.most_ever = std::max(numbers.most_ever, page.rows.rbegin()->first + 1);
  }
  dynamo::PutItemRequest first = first_numbers(settings_.table, queue, numbers);
  const auto written = client_.put_item(first, deadline);
  if (written) {
    page.shards = std::move(first.item);
  } else if (written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    return false;
  } else {
    tell("the number of shards of queue '" + queue + "' cannot be written down", written.error());
  }
  return true;
}

void OwnershipCoordinator::tell_of_movers(Duty& duty, SteadyTime now) {
  std::string mover;
  for (const std::string& host : members_.workers(duty.name, now)) {
    mover = members_.moved(host, duty.name) ? host : mover;
  }
  if (duty.half->moves() || duty.moved == !mover.empty()) {
    return;
  }
  duty.moved = !mover.empty();
  if (settings_.warn) {
    settings_.warn(duty.moved ? "the shards of '" + duty.name + "' are with a mover, '" + mover +
                                    "': it carries their messages elsewhere, and no host hands out anything of them "
                                    "until it has ended; nothing needs to be done"
                              : "the mover of '" + duty.name + "' has ended: hosts share its shards again");
  }
}

void OwnershipCoordinator::tell_of_another_number(const Duty& duty) {
  const std::string& queue = duty.half->address().queue;
  const std::string says = std::to_string(duty.numbers.count);
  const std::string wanted = std::to_string(duty.half->configured_shards());
  remarks_.say("queue '" + queue + "' has " + says + " shards, as the item '" + std::string(kShardsKey) +
                   "' in partition '" + ownership_partition(queue, Half::standard) + "' of table '" + settings_.table +
                   "' says, and not the " + wanted + " of this host's configuration, which the host passes over; put " +
                   "shards = " + says + " under [queues." + queue + "], or the number that you want into the item",
               clock_.steady_now());
}

std::uint32_t OwnershipCoordinator::learn_numbers(Duty& duty, const OwnershipPage& page) {
  const SteadyTime now = clock_.steady_now();
  auto read = decode_shards(page.shards, duty.half->configured_shards());
  if (!read.wrong.empty()) {
    remarks_.say("table '" + settings_.table + "': " + read.wrong, now);
  }
  if (read.numbers) {
    duty.numbers = *read.numbers;
  } else if (duty.numbers.count == 0) {
    duty.numbers = {duty.half->configured_shards(), duty.half->configured_shards()};
  }
  if (duty.numbers.count != duty.last_count) {
    duty.last_count = duty.numbers.count;
    duty.counted_at = now;
    if (duty.numbers.count != duty.half->configured_shards()) {
      tell_of_another_number(duty);
    }
  }
  std::uint32_t shards = std::max(duty.numbers.count, duty.numbers.most_ever);
  if (!page.rows.empty()) {
    shards = std::max(shards, page.rows.rbegin()->first + 1);
  }
  while (shards > duty.numbers.count && page.rows.contains(shards - 1) && page.rows.at(shards - 1).drained) {
    --shards;
  }
  return shards;
}

// False: something did not go as it should, so that it is worth another look.
bool OwnershipCoordinator::look_at(Duty& duty, const OwnershipPage& page, SteadyTime asked, Deadline deadline) {
  if (!holds()) {
    return false;
  }
  const std::uint32_t shards = learn_numbers(duty, page);
  std::vector<Ownership> read;
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const auto row = page.rows.find(shard);
    read.push_back(row == page.rows.end() ? Ownership{.shard = shard} : row->second.value);
    owners_.insert(read.back().owner);
  }
  const SteadyTime now = clock_.steady_now();
  tell_of_movers(duty, now);
  auto moves = duty.half->look(read, duty.numbers.count, members_, asked);
  for (ShardKeeper::Move& move : moves) {
    move.after.left = left_by(move);
  }
  bool well = write_moves(duty, moves, page, false, deadline);
  if (shards > duty.numbers.count && now >= duty.counted_at + kSendersLearn) {
    if (const auto move = duty.half->retirement(shards - 1, now)) {
      static_cast<void>(write_moves(duty, {*move}, page, true, deadline));
      well = false;  // there may be another one before it
    }
  }
  return well;
}

InFlightBound OwnershipCoordinator::left_in(std::span<const Ownership> read, std::uint32_t shard) {
  if (shard >= read.size() || read[shard].clean) {
    return 0;
  }
  return read[shard].left > 0 ? read[shard].left : kUnknownBound;
}

// What the owner before has announced, and what those before it have left.
InFlightBound OwnershipCoordinator::left_by(const ShardKeeper::Move& move) const {
  if (move.after.clean) {
    return 0;
  }
  InFlightBound left = move.before.clean ? 0 : move.before.left;
  bool told = move.before.clean || left > 0;
  if (move.before.owner == settings_.host) {
    left = std::max(left, announced() + kLateOnes);
  } else if (const auto beat = beats_.find(move.before.owner);
             beat != beats_.end() && beat->second.in_flight_bound > 0) {
    left = std::max(left, beat->second.in_flight_bound);
  } else {
    told = told && move.before.owner.empty();
  }
  if (told && left > 0) {
    return left;
  }
  for (const auto& [host, known] : beats_) {
    left = std::max(left, known.in_flight_bound);
  }
  return std::max(left, kUnknownBound);
}

bool OwnershipCoordinator::write_moves(Duty& duty, const std::vector<ShardKeeper::Move>& moves,
                                       const OwnershipPage& read, bool drained, Deadline deadline) {
  if (moves.empty()) {
    return true;
  }
  std::vector<dynamo::ItemWrite> writes;
  writes.reserve(moves.size());
  for (const ShardKeeper::Move& move : moves) {
    const auto row = read.rows.find(move.before.shard);
    const bool as_read = row != read.rows.end() && row->second.value == move.before;
    writes.emplace_back(ownership_write(settings_.table, duty.partition,
                                        as_read ? row->second : row_of(duty.partition, move.before), move.after,
                                        drained));
  }
  const auto written = client_.write_each(writes, deadline);
  bool well = true;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (written[i]) {
      duty.half->moved(moves[i], moves[i].after.left, clock_.steady_now());
      continue;
    }
    well = false;
    if (written[i].error().kind != dynamo::ErrorKind::conditional_check_failed) {
      tell("shard " + std::to_string(moves[i].after.shard) + " of '" + duty.name + "' cannot change hands",
           written[i].error());
    }
  }
  return well;
}

bool OwnershipCoordinator::hand_over(Duty& duty, Deadline deadline) {
  return write_moves(duty, duty.half->hand_overs(), {}, false, deadline);
}

// Removes what hosts have left behind that are dead for long and own nothing. One of those that live does so.
void OwnershipCoordinator::clear_up(Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  std::set<std::string> ours;
  for (const Duty& duty : duties_) {
    ours.insert(duty.name);
  }
  const std::set<std::string> living = ours.empty() ? ours : members_.workers(*ours.begin(), now);
  const bool first = !living.empty() && *living.begin() == settings_.host;
  for (auto known = beats_.begin(); known != beats_.end();) {
    const Heartbeat& beat = known->second.beat;
    const bool dead = members_.dead_since(beat.host, now - kLeasesInState * beat.lease);
    const bool all_known = std::includes(ours.begin(), ours.end(), beat.works_on.begin(), beat.works_on.end());
    if (dead && first && all_known && !owners_.contains(beat.host)) {
      static_cast<void>(client_.delete_item(remove_beat(settings_.table, beat), deadline));
      known = beats_.erase(known);
    } else {
      ++known;
    }
  }
  if (beats_.size() > kMostBeats) {
    beats_.clear();
  }
}

}  // namespace sluice::queue::leased
