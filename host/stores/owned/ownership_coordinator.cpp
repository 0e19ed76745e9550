#include "host/stores/owned/ownership_coordinator.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ranges.hpp"

namespace sluice::queue::owned {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);
constexpr Duration kCall = std::chrono::seconds(5);    // the longest that one turn takes
constexpr Duration kLeave = std::chrono::seconds(10);  // the longest that it tries to hand a half over
constexpr int kLeaveTries = 25;
constexpr Duration kLeavePause = std::chrono::milliseconds(50);  // between the first tries; grows
constexpr Duration kNap = std::chrono::milliseconds(100);        // the thread looks so often whether it is time
// A dead host's heartbeat is removed after so many leases.
constexpr int kLeasesInState = 10;

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

// How much may be at work in a shard as its item says; where there is no item nothing is.
InFlightBound left_as_read(std::span<const Ownership> read, std::uint32_t shard) {
  if (shard >= read.size() || read[shard].clean) {
    return 0;
  }
  return read[shard].left > 0 ? read[shard].left : HostLease::kUnknownBound;
}

}  // namespace

OwnershipCoordinator::OwnershipCoordinator(Settings settings, OwnershipRecords& records, Remarks& remarks,
                                           const Clock& clock)
    : settings_(std::move(settings)),
      records_(records),
      remarks_(remarks),
      clock_(clock),
      lease_(settings_.lease, "table '" + settings_.table + "'", remarks, clock),
      members_(settings_.lease) {}

// Turns, and who works on what.

std::vector<OwnershipCoordinator::Duty>::iterator OwnershipCoordinator::duty_of(const ShardHolder& holder) {
  return std::find_if(duties_.begin(), duties_.end(), [&](const Duty& duty) { return duty.holder == &holder; });
}

void OwnershipCoordinator::join(ShardHolder& holder) {
  const MutexLock turn(turn_);
  if (const auto known = duty_of(holder); known != duties_.end()) {
    known->leaving = false;
  } else {
    const std::string name = half_name(holder.address());
    duties_.push_back({.holder = &holder, .name = name, .keeper = PartKeeper(settings_.host, name)});
  }
  beat_at_ = look_at_ = SteadyTime::min();
  do_due(Deadline::after(clock_, kCall));
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
  write_moves(*known, hand_overs(*known), deadline);
  return known->keeper.parts().empty();
}

void OwnershipCoordinator::forget(ShardHolder& holder) {
  std::jthread thread;  // ends once its turn may come
  const MutexLock turn(turn_);
  // As long as others keep this host alive, nobody else takes what is still in its name: it has to be passed on.
  const bool alone = duties_.size() == 1;
  std::erase_if(duties_,
                [&](const Duty& duty) { return duty.holder == &holder && (alone || !duty.keeper.is_named()); });
  if (!duties_.empty()) {
    return;
  }
  // Its last heartbeat stays, and says that it has left; others remove it when they find it dead for long.
  lease_.gone();
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
  // What could not be handed over when it was left has been by now.
  std::erase_if(duties_, [](const Duty& duty) { return duty.leaving && !duty.keeper.is_named(); });
  if (duties_.empty()) {
    lease_.gone();
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
    all_over = write_moves(duty, hand_overs(duty), deadline) && all_over;
  }
  if (!all_over) {
    look_at_ = std::min(look_at_, clock_.steady_now() + kExpecting);
  }
  const SteadyTime beat_due = clock_.steady_now() + (beat_at_ - lease_.now());
  lease_.due_at(std::min({lease_.due_at(), beat_due, look_at_, glance_at_}));
}

// Heartbeats.

Heartbeat OwnershipCoordinator::own_beat(InFlightBound bound) const {
  Heartbeat own{.host = settings_.host, .counter = counter_, .lease = settings_.lease, .leaving = true};
  own.in_flight_bound = bound + HostLease::kLateOnes;
  own.bell = bell_;
  for (const Duty& duty : duties_) {
    duty.holder->put_figures(own);
    if (!duty.leaving) {
      own.works_on.insert(duty.name);
      own.leaving = false;
    }
    if (duty.holder->moves()) {
      own.moves.insert(duty.name);
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
  const Deadline third = deadline.earlier(Deadline::after(clock_, settings_.lease / 3));
  const auto written = records_.write_beat(own_beat(beat.bound), declared_dead_, third);
  if (written == OwnershipRecords::Written::marked) {
    lose_to_a_mark();
  }
  if (written != OwnershipRecords::Written::yes) {
    return false;
  }
  if (!lease_.renewed(beat)) {
    lose_all();
  }
  declared_dead_ = false;
  beat_at_ = beat.began + settings_.lease / 3;
  return true;
}

// Somebody has marked this host's heartbeat as that of one that has ended, so that others take what it owns.
void OwnershipCoordinator::lose_to_a_mark() {
  declared_dead_ = true;
  remarks_.say("somebody has declared this host dead in table '" + settings_.table +
               "', although it lives: what it held of it counts as lost and is taken anew; is its state folder shared "
               "with another machine?");
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

// What is read of others, and of who has what.

Duration OwnershipCoordinator::glance_pause() const {
  const bool busy = std::any_of(duties_.begin(), duties_.end(), [](const Duty& duty) { return duty.holder->busy(); });
  return busy ? kBusyGlance : kIdleGlance;
}

// A look that costs half: it tells of others' heartbeats, and whether there is anything to look at in earnest.
void OwnershipCoordinator::glance(Deadline deadline) {
  const auto beats = records_.read_beats(false, deadline);
  const SteadyTime now = clock_.steady_now();
  glance_at_ = now + glance_pause();
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
  const auto found =
      mapped(duties_, [&](const Duty& duty) { return records_.look_at(duty.holder->address(), deadline); });
  const SteadyTime asked = clock_.steady_now();
  const auto beats = records_.read_beats(true, deadline);
  if (!beats) {
    look_at_ = clock_.steady_now() + kExpecting;
    return;
  }
  const SteadyTime read_at = clock_.steady_now();
  members_.saw(*beats, read_at);
  seen_ = roll_of(*beats, members_, read_at);
  bool soon = false;
  for (std::size_t i = 0; i < duties_.size(); ++i) {
    Duty& duty = duties_[i];
    soon = !found[i] || !follow_plan(duty, *found[i], asked, deadline) || duty.keeper.expects() || soon;
  }
  if (std::find(found.begin(), found.end(), std::nullopt) == found.end()) {
    clear_up(*beats, found, deadline);
  }
  const SteadyTime now = clock_.steady_now();
  look_at_ = now + (soon ? kExpecting : settings_.lease);
  if (const auto death = members_.next_death(now)) {
    look_at_ = std::min(look_at_, *death + Duration(1));
  }
  glance_at_ = now + glance_pause();
}

void OwnershipCoordinator::tell_of_movers(Duty& duty, SteadyTime now) {
  std::string mover;
  for (const std::string& host : members_.workers(duty.name, now)) {
    mover = members_.moved(host, duty.name) ? host : mover;
  }
  if (duty.holder->moves() || duty.mover.empty() == mover.empty()) {
    return;
  }
  std::swap(mover, duty.mover);
  remarks_.say(mover.empty()
                   ? "the shards of '" + duty.name + "' are with a mover, '" + duty.mover +
                         "': it carries their messages elsewhere, and no host hands out anything of them "
                         "until it has ended; nothing needs to be done"
                   : "the mover of '" + duty.name + "', '" + mover + "', has ended: hosts share its shards again");
}

bool OwnershipCoordinator::follow_plan(Duty& duty, const OwnershipLook& found, SteadyTime asked, Deadline deadline) {
  if (!lease_.holds()) {
    return false;
  }
  const SteadyTime now = clock_.steady_now();
  duty.all = static_cast<std::uint32_t>(found.shards.size());
  if (found.count != std::exchange(duty.count, found.count)) {
    duty.counted_at = now;
  }
  tell_of_movers(duty, now);
  auto moves = duty.keeper.look(found.shards, members_, asked);
  tell_holder(duty, found.shards, nullptr);
  for (Move& move : moves) {
    move.after.left = left_by(move);
  }
  bool well = write_moves(duty, moves, deadline);
  if (duty.all > duty.count && now >= duty.counted_at + kSendersLearn) {
    const std::uint32_t last = duty.all - 1;
    if (duty.keeper.keeping(last) == PartKeeper::Keeping::owned && duty.holder->is_empty(last)) {
      write_moves(duty, {duty.keeper.give_up(last)}, deadline);
      well = false;  // there may be another one before it
    }
  }
  return well;
}

// Removes what hosts have left behind that are dead for long and own nothing. One of those that live does so.
void OwnershipCoordinator::clear_up(const std::vector<Heartbeat>& beats,
                                    const std::vector<std::optional<OwnershipLook>>& found, Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  std::set<std::string> ours;
  for (const Duty& duty : duties_) {
    ours.insert(duty.name);
  }
  const std::set<std::string> living = ours.empty() ? ours : members_.workers(*ours.begin(), now);
  if (living.empty() || *living.begin() != settings_.host) {
    return;
  }
  std::set<std::string> owners;
  for (const auto& look : found) {
    std::transform(look->shards.begin(), look->shards.end(), std::inserter(owners, owners.end()),
                   [](const Ownership& shard) { return shard.owner; });
  }
  for (const Heartbeat& beat : beats) {
    const bool all_known = std::includes(ours.begin(), ours.end(), beat.works_on.begin(), beat.works_on.end());
    if (all_known && !owners.contains(beat.host) && members_.dead_since(beat.host, now - kLeasesInState * beat.lease)) {
      records_.remove_beat(beat, deadline);
    }
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
  } else if (const Heartbeat* beat = members_.last_of(move.before.owner);
             beat != nullptr && beat->in_flight_bound > 0) {
    left = std::max(left, beat->in_flight_bound);
  } else {
    told = told && move.before.owner.empty();
  }
  if (told && left > 0) {
    return left;
  }
  return std::max({left, members_.most_in_flight(), HostLease::kUnknownBound});
}

bool OwnershipCoordinator::write_moves(Duty& duty, const std::vector<Move>& moves, Deadline deadline) {
  if (moves.empty()) {
    return true;
  }
  const auto written = records_.move(duty.holder->address(), moves, deadline);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (written[i]) {
      move_written(duty, moves[i]);
    }
  }
  return std::find(written.begin(), written.end(), false) == written.end();
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
                 " messages may have been at work and runs alone");
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
  duty.holder->own(shards, duty.all);
}

}  // namespace sluice::queue::owned
