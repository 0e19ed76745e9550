#include "host/stores/leased/ownership_coordinator.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

using owned::HostLease;
using owned::PartKeeper;

// TTL removes the heartbeat of a host that nobody clears up behind.
constexpr Duration kForgotten = std::chrono::hours(24);
constexpr Duration kRetry = std::chrono::seconds(1);
constexpr Duration kCall = std::chrono::seconds(5);    // the longest that one turn takes
constexpr Duration kLeave = std::chrono::seconds(10);  // the longest that it tries to hand a half over
constexpr int kLeaveTries = 25;
constexpr Duration kLeavePause = std::chrono::milliseconds(50);  // between the first tries; grows
constexpr Duration kNap = std::chrono::milliseconds(100);        // the thread looks so often whether it is time
// A dead host's heartbeat is removed after so many leases.
constexpr int kLeasesInState = 10;
constexpr std::size_t kMostBeats = 4096;

// Who works on what, as a text to be compared.
std::string roll_of(const std::vector<Heartbeat>& beats, const owned::Membership& members, SteadyTime now) {
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

// How much may be at work in a shard as its item says; where there is no item nothing is.
InFlightBound left_as_read(std::span<const Ownership> read, std::uint32_t shard) {
  if (shard >= read.size() || read[shard].clean) {
    return 0;
  }
  return read[shard].left > 0 ? read[shard].left : HostLease::kUnknownBound;
}

}  // namespace

OwnershipCoordinator::OwnershipCoordinator(Settings settings, dynamo::Client& client, const Clock& clock,
                                           table::TableClock& time)
    : settings_(std::move(settings)),
      client_(client),
      clock_(clock),
      time_(time),
      remarks_(settings_.warn),
      lease_(settings_.lease, "table '" + settings_.table + "'", clock, settings_.warn),
      members_(settings_.lease) {}

// Turns, and who works on what.

std::vector<OwnershipCoordinator::Duty>::iterator OwnershipCoordinator::duty_of(const ShardHolder& holder) {
  return std::find_if(duties_.begin(), duties_.end(), [&](const Duty& duty) { return duty.holder == &holder; });
}

void OwnershipCoordinator::join(ShardHolder& holder) {
  {
    const MutexLock lock(turn_);
    if (const auto known = duty_of(holder); known != duties_.end()) {
      known->leaving = false;
    } else {
      const QueueAddress& address = holder.address();
      const std::string name = half_name(address.queue, address.half);
      duties_.push_back({.holder = &holder,
                         .name = name,
                         .partition = ownership_partition(address.queue, address.half),
                         .keeper = PartKeeper(settings_.host, name)});
    }
    beat_at_ = look_at_ = SteadyTime::min();
    do_due(Deadline::after(clock_, kCall));
  }
  const MutexLock lock(state_);
  if (settings_.own_thread && !thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
}

bool OwnershipCoordinator::leave(ShardHolder& holder, const std::function<bool()>& in_vain) {
  const Deadline deadline = Deadline::after(clock_, kLeave);
  Duration pause = kLeavePause;
  for (int tries = 1; !try_to_leave(holder, deadline.earlier(Deadline::after(clock_, kCall))); ++tries) {
    const SteadyTime now = clock_.steady_now();
    if (in_vain() || tries == kLeaveTries || deadline.passed(now)) {
      return false;
    }
    const MutexLock lock(state_);
    napped_.wait_until(state_, clock_.machine_time(now + pause), [] { return false; });
    pause = std::min(pause * 2, kCall / 10);
  }
  return true;
}

bool OwnershipCoordinator::try_to_leave(ShardHolder& holder, Deadline deadline) {
  const MutexLock lock(turn_);
  const auto known = duty_of(holder);
  if (known == duties_.end()) {
    return true;
  }
  known->leaving = true;
  beat_at_ = look_at_ = SteadyTime::min();
  do_due(deadline);
  if (!known->keeper.parts().empty()) {
    return false;
  }
  // Another host that did not know of it yet may have handed a shard to this one meanwhile: that one is passed on.
  look(deadline);
  write_moves(*known, hand_overs(*known), {}, false, deadline);
  return known->keeper.parts().empty();
}

void OwnershipCoordinator::forget(ShardHolder& holder) {
  {
    const MutexLock lock(turn_);
    std::erase_if(duties_, [&](const Duty& duty) { return duty.holder == &holder; });
    if (!duties_.empty()) {
      return;
    }
    // Its last heartbeat stays, and says that it has left; others remove it when they find it dead for long.
    lease_.gone();
  }
  std::jthread thread;
  const MutexLock lock(state_);
  std::swap(thread, thread_);
}

void OwnershipCoordinator::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    take_turn(true, Deadline::after(clock_, kCall));
    const MutexLock lock(state_);
    napped_.wait_until(state_, stop, clock_.machine_time(clock_.steady_now() + kNap), [] { return false; });
  }
}

void OwnershipCoordinator::tend(Deadline deadline) {
  {
    const MutexLock lock(state_);
    if (thread_.joinable()) {
      return;
    }
  }
  take_turn(false, deadline.earlier(Deadline::after(clock_, kCall)));
}

std::optional<SteadyTime> OwnershipCoordinator::due_at() const {
  return settings_.own_thread ? std::nullopt : std::optional(lease_.due_at());
}

void OwnershipCoordinator::take_turn(bool wait, Deadline deadline) {
  if (wait) {
    turn_.lock();
  } else if (!turn_.try_lock()) {
    return;
  }
  // Sleep brings the next heartbeat closer.
  if (lease_.lost() || clock_.steady_now() >= lease_.due_at() || lease_.now() >= beat_at_) {
    do_due(deadline);
  }
  std::vector<ShardHolder*> holders;
  for (const Duty& duty : duties_) {
    if (!duty.leaving) {
      holders.push_back(duty.holder);
    }
  }
  turn_.unlock();
  // Heartbeats wait for it, so that it is over in a tenth of the lease.
  const Deadline spare = Deadline::after(clock_, settings_.lease / 10);
  for (ShardHolder* holder : holders) {
    holder->spare_time(spare);
  }
}

void OwnershipCoordinator::lose_all() {
  bool owned = false;
  for (Duty& duty : duties_) {
    owned = owned || !duty.keeper.parts().empty();
    duty.keeper.lease_lost();
    tell_holder(duty, {}, nullptr);
  }
  lease_.told_lost(owned);
}

void OwnershipCoordinator::do_due(Deadline deadline) {
  if (lease_.lost()) {
    lose_all();
    beat_at_ = look_at_ = SteadyTime::min();
  }
  lease_.due_at(SteadyTime::max());
  if (duties_.empty()) {
    return;
  }
  if (lease_.now() >= beat_at_ && !beat(deadline)) {
    beat_at_ = lease_.now() + std::min(kRetry, settings_.lease / 10);
  }
  // Whom a shard is to go to may have left since the last look.
  const bool closes = std::any_of(duties_.begin(), duties_.end(),
                                  [this](Duty& duty) SLUICE_REQUIRES(turn_) { return !hand_overs(duty).empty(); });
  if (closes || clock_.steady_now() >= look_at_) {
    look(deadline);
  } else if (clock_.steady_now() >= glance_at_) {
    glance(deadline);
  }
  bool all_over = true;
  for (Duty& duty : duties_) {
    all_over = write_moves(duty, hand_overs(duty), {}, false, deadline) && all_over;
  }
  if (!all_over) {
    look_at_ = std::min(look_at_, clock_.steady_now() + kExpecting);
  }
  const SteadyTime beat_due = clock_.steady_now() + (beat_at_ - lease_.now());
  lease_.due_at(std::min({lease_.due_at(), beat_due, look_at_, glance_at_}));
}

// Heartbeats.

HostBeat OwnershipCoordinator::own_beat(SteadyTime now, InFlightBound bound) const {
  HostBeat own{.beat = {.host = settings_.host, .counter = counter_, .lease = settings_.lease, .leaving = true},
               .in_flight_bound = bound + HostLease::kLateOnes,
               .bell = bell_};
  for (const Duty& duty : duties_) {
    own.figures.emplace(duty.name, duty.holder->figures(now));
    if (!duty.leaving) {
      own.beat.works_on.insert(duty.name);
      own.beat.leaving = false;
    }
    if (duty.holder->moves()) {
      own.beat.moves.insert(duty.name);
    }
  }
  return own;
}

bool OwnershipCoordinator::beat(Deadline deadline) {
  ++counter_;
  const HostLease::Beat beat = lease_.begin(lease_.now() < beat_at_, [this]() SLUICE_REQUIRES(turn_) {
    InFlightBound bound = 0;
    for (const Duty& duty : duties_) {
      bound = std::max(bound, duty.holder->in_flight_bound());
    }
    return bound;
  });
  const HostBeat own = own_beat(clock_.steady_now(), beat.bound);
  dynamo::ItemWrite request;
  request.table = settings_.table;
  request.item = encode_beat(own, time_.wall_now(), time_.wall_now() + kForgotten);
  if (!declared_dead_) {
    demand_not_ended(request);
    demand_no_later_one(request, own.beat);
  }
  const auto written = client_.write(request, deadline.earlier(Deadline::after(clock_, settings_.lease / 3)));
  if (!written && written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    lose_to_a_mark();
    return false;
  }
  {
    const MutexLock lock(state_);
    beat_trouble_ = written ? std::nullopt : std::optional(written.error());
  }
  if (!written) {
    tell("no heartbeat can be written", written.error());
    return false;
  }
  if (!lease_.renewed(beat)) {
    lose_all();
  }
  time_.warn_if_wrong();
  declared_dead_ = false;
  beat_at_ = beat.began + settings_.lease / 3;
  return true;
}

// Somebody has marked this host's heartbeat as that of one that has ended, so that others take what it owns.
void OwnershipCoordinator::lose_to_a_mark() {
  declared_dead_ = true;
  remarks_.say(
      "somebody has declared this host dead in table '" + settings_.table +
          "', although it lives: what it held of it counts as lost and is taken anew; is its state folder shared "
          "with another machine?",
      clock_.steady_now());
  lease_.gone();
  lose_all();
}

bool OwnershipCoordinator::announce(InFlightBound bound, Deadline deadline) {
  if (lease_.needs(bound)) {
    return true;
  }
  const MutexLock lock(turn_);
  return lease_.announced() >= bound || (beat(deadline) && lease_.announced() >= bound);
}

bool OwnershipCoordinator::listen_at(const std::string& bell, Deadline deadline) {
  const MutexLock lock(turn_);
  const bool news = bell != bell_;
  bell_ = bell;
  // Who works on nothing here needs no ring; its first heartbeat will say it.
  return !news || duties_.empty() || beat(deadline);
}

std::optional<dynamo::Error> OwnershipCoordinator::trouble() const {
  const MutexLock lock(state_);
  return beat_trouble_ ? beat_trouble_ : look_trouble_;
}

void OwnershipCoordinator::tell(const std::string& what, const dynamo::Error& error) {
  remarks_.say(what, "table '" + settings_.table + "': " + what + ": " + error.message, clock_.steady_now());
}

// What is read of others, and of who has what.

Duration OwnershipCoordinator::glance_pause(SteadyTime now) const {
  const bool busy =
      std::any_of(duties_.begin(), duties_.end(), [now](const Duty& duty) { return duty.holder->busy(now); });
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
  if (!lease_.holds()) {
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
    soon = !pages[i] || !look_at(duty, *pages[i], asked, deadline) || duty.keeper.expects() || soon;
  }
  clear_up(deadline);
  const SteadyTime now = clock_.steady_now();
  look_at_ = now + (soon ? kExpecting : settings_.lease);
  if (const auto death = members_.next_death(now)) {
    look_at_ = std::min(look_at_, *death + Duration(1));
  }
  glance_at_ = now + glance_pause(now);
}

std::optional<std::vector<dynamo::Item>> OwnershipCoordinator::read_partition(const std::string& partition,
                                                                              bool consistent, Deadline deadline) {
  auto items = leased::read_partition(client_, settings_.table, partition, consistent, deadline);
  {
    const MutexLock lock(state_);
    look_trouble_ = items ? std::nullopt : std::optional(items.error());
  }
  if (!items) {
    tell("partition '" + partition + "' cannot be read", items.error());
    return std::nullopt;
  }
  return std::move(*items);
}

std::optional<std::vector<Heartbeat>> OwnershipCoordinator::read_beats(bool consistent, Deadline deadline) {
  const auto items = read_partition(std::string(kHosts), consistent, deadline);
  if (!items) {
    return std::nullopt;
  }
  std::vector<Heartbeat> beats;
  for (const dynamo::Item& item : *items) {
    auto host = decode_beat(item);
    if (!host) {
      remarks_.say("the heartbeat '" + Place::of(item).sort + "' in table '" + settings_.table +
                       "' is only half there, and counts for nothing; remove it if its host is gone",
                   clock_.steady_now());
      continue;
    }
    beats.push_back(host->beat);
    beats_.insert_or_assign(host->beat.host, std::move(*host));
  }
  return beats;
}

std::optional<OwnershipPage> OwnershipCoordinator::read_ownership(Duty& duty, Deadline deadline) {
  const auto items = read_partition(duty.partition, true, deadline);
  if (!items) {
    return std::nullopt;
  }
  OwnershipPage page = decode_ownership(*items);
  const QueueAddress& address = duty.holder->address();
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
  const std::string& queue = duty.holder->address().queue;
  Shards numbers{duty.holder->configured_shards(), duty.holder->configured_shards()};
  if (!page.rows.empty()) {
    numbers.most_ever = std::max(numbers.most_ever, page.rows.rbegin()->first + 1);
  }
  dynamo::ItemWrite first = first_numbers(settings_.table, queue, numbers);
  const auto written = client_.write(first, deadline);
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
  if (duty.holder->moves() || duty.moved == !mover.empty()) {
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

void OwnershipCoordinator::learn_numbers(Duty& duty, const OwnershipPage& page) {
  const SteadyTime now = clock_.steady_now();
  const std::uint32_t configured = duty.holder->configured_shards();
  const auto read = page.shards ? shards_in(*page.shards) : Shards{configured, configured};
  if (read) {
    duty.numbers = *read;
  } else {
    remarks_.say("table '" + settings_.table + "': " + no_shards_in(*page.shards), now);
    duty.numbers = duty.numbers.count == 0 ? Shards{configured, configured} : duty.numbers;
  }
  const std::uint32_t count = duty.numbers.count;
  if (count != std::exchange(duty.last_count, count)) {
    duty.counted_at = now;
    if (count != configured) {
      const std::string& queue = duty.holder->address().queue;
      remarks_.say(
          "queue '" + queue + "' has " + std::to_string(count) + " shards, as the item '" + std::string(kShardsKey) +
              "' in partition '" + ownership_partition(queue, Half::standard) + "' of table '" + settings_.table +
              "' says, and not the " + std::to_string(configured) +
              " of this host's configuration, which the host passes over; put shards = " + std::to_string(count) +
              " under [queues." + queue + "], or the number that you want into the item",
          now);
    }
  }
  duty.all = std::max(count, duty.numbers.most_ever);
  if (!page.rows.empty()) {
    duty.all = std::max(duty.all, page.rows.rbegin()->first + 1);
  }
  while (duty.all > count && page.rows.contains(duty.all - 1) && page.rows.at(duty.all - 1).drained) {
    --duty.all;
  }
}

bool OwnershipCoordinator::look_at(Duty& duty, const OwnershipPage& page, SteadyTime asked, Deadline deadline) {
  if (!lease_.holds()) {
    return false;
  }
  learn_numbers(duty, page);
  std::vector<Ownership> read;
  for (std::uint32_t shard = 0; shard < duty.all; ++shard) {
    const auto row = page.rows.find(shard);
    read.push_back(row == page.rows.end() ? Ownership{.part = shard} : row->second.value);
    owners_.insert(read.back().owner);
  }
  const SteadyTime now = clock_.steady_now();
  tell_of_movers(duty, now);
  auto moves = duty.keeper.look(read, members_, asked);
  tell_holder(duty, read, nullptr);
  for (Move& move : moves) {
    move.after.left = left_by(move);
  }
  bool well = write_moves(duty, moves, page, false, deadline);
  if (duty.all > duty.numbers.count && now >= duty.counted_at + kSendersLearn) {
    const std::uint32_t last = duty.all - 1;
    if (duty.keeper.keeping(last) == PartKeeper::Keeping::owned && duty.holder->is_empty(last)) {
      write_moves(duty, {duty.keeper.give_up(last)}, page, true, deadline);
      well = false;  // there may be another one before it
    }
  }
  return well;
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
      static_cast<void>(client_.write(remove_beat(settings_.table, beat), deadline));
      known = beats_.erase(known);
    } else {
      ++known;
    }
  }
  if (beats_.size() > kMostBeats) {
    beats_.clear();
  }
}

// Changes of hands.

std::vector<OwnershipCoordinator::Move> OwnershipCoordinator::hand_overs(Duty& duty) const {
  std::vector<Move> moves;
  for (const std::uint32_t shard : duty.keeper.parts()) {
    if (duty.keeper.keeping(shard) != PartKeeper::Keeping::closing) {
      continue;
    }
    if (const auto left = duty.holder->left_in(shard)) {
      moves.push_back(duty.keeper.hand_over(shard));
      moves.back().after.clean = *left == 0;
      moves.back().after.left = *left;
    }
  }
  return moves;
}

// What the owner before has announced, and what those before it have left.
InFlightBound OwnershipCoordinator::left_by(const Move& move) const {
  if (move.after.clean) {
    return 0;
  }
  InFlightBound left = move.before.clean ? 0 : move.before.left;
  bool told = move.before.clean || left > 0;
  if (move.before.owner == settings_.host) {
    left = std::max(left, lease_.announced() + HostLease::kLateOnes);
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
  return std::max(left, HostLease::kUnknownBound);
}

bool OwnershipCoordinator::write_moves(Duty& duty, const std::vector<Move>& moves, const OwnershipPage& read,
                                       bool drained, Deadline deadline) {
  if (moves.empty()) {
    return true;
  }
  std::vector<dynamo::ItemWrite> writes;
  writes.reserve(moves.size());
  for (const Move& move : moves) {
    const auto row = read.rows.find(move.before.part);
    const bool as_read = row != read.rows.end() && row->second.value == move.before;
    writes.emplace_back(ownership_write(settings_.table, duty.partition,
                                        as_read ? row->second : row_of(duty.partition, move.before), move.after,
                                        drained));
  }
  const auto written = client_.write_each(writes, deadline);
  bool well = true;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (written[i]) {
      move_written(duty, moves[i]);
      continue;
    }
    well = false;
    if (written[i].error().kind != dynamo::ErrorKind::conditional_check_failed) {
      tell("shard " + std::to_string(moves[i].after.part) + " of '" + duty.name + "' cannot change hands",
           written[i].error());
    }
  }
  return well;
}

void OwnershipCoordinator::move_written(Duty& duty, const Move& move) {
  const std::uint32_t shard = move.after.part;
  const bool had = duty.keeper.keeping(shard) != PartKeeper::Keeping::none;
  duty.keeper.moved(move);
  const bool gained = !had && duty.keeper.keeping(shard) != PartKeeper::Keeping::none;
  if (gained && move.after.left > 0 && !duty.holder->moves()) {
    const std::string by = move.before.owner.empty() ? "its last owner" : "'" + move.before.owner + "'";
    remarks_.say("shard " + std::to_string(shard) + " of '" + duty.name + "' was not handed over by " + by +
                     ": what lies among its first " + std::to_string(move.after.left) +
                     " messages may have been at work and runs alone",
                 clock_.steady_now());
  }
  tell_holder(duty, {}, &move);
}

void OwnershipCoordinator::tell_holder(Duty& duty, std::span<const Ownership> read, const Move* written) {
  std::vector<ShardHolder::Shard> shards;
  for (const std::uint32_t number : duty.keeper.parts()) {
    ShardHolder::Shard shard{.number = number,
                             .epoch = duty.keeper.epoch(number),
                             .closing = duty.keeper.keeping(number) == PartKeeper::Keeping::closing,
                             .left = left_as_read(read, number),
                             .written_before = true};
    if (written != nullptr && written->after.part == number) {
      shard.left = written->after.left;
      shard.written_before = written->before.epoch > 0 || !written->after.clean;
    }
    shards.push_back(shard);
  }
  duty.holder->own(shards, duty.all, clock_.steady_now());
}

}  // namespace sluice::queue::leased
