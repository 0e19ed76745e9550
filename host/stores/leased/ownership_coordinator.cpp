#include "host/stores/leased/ownership_coordinator.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/partition_reads.hpp"

namespace sluice::queue::leased {
namespace {

// TTL removes the heartbeat of a host that nobody clears up behind.
constexpr Duration kForgotten = std::chrono::hours(24);
constexpr Duration kRetry = std::chrono::seconds(1);

// Rounded up, so that a heartbeat is seldom written before its time; by no more than an eighth where it is much.
InFlightBound rounded(std::uint64_t count) {
  constexpr std::uint32_t kMuch = 256;
  std::uint64_t much = OwnershipCoordinator::kLeastBound;
  while (much < count && much < kMuch) {
    much *= 2;
  }
  if (much < count) {
    much = (count + count / 8 + kMuch / 4 - 1) / (kMuch / 4) * (kMuch / 4);
  }
  return static_cast<InFlightBound>(std::min<std::uint64_t>(much, kUnbounded));
}

}  // namespace

OwnershipCoordinator::OwnershipCoordinator(Settings settings, dynamo::Client& client, const Clock& clock,
                                           table::TableClock& time)
    : settings_(std::move(settings)),
      client_(client),
      clock_(clock),
      time_(time),
      remarks_(settings_.warn),
      members_(settings_.lease),
      lease_clock_(clock),
      lease_(settings_.lease) {}

SteadyTime OwnershipCoordinator::lease_now() {
  const MutexLock lock(state_);
  return lease_clock_.now();
}

bool OwnershipCoordinator::check_lease() {
  const SteadyTime now = lease_clock_.now();
  if (lease_.ends() == SteadyTime::min() || lease_.holds(now)) {
    return !lost_;
  }
  if (lease_.holds(now - (lease_clock_.ahead() - ahead_at_beat_))) {
    remarks_.say(
        "the clock of this machine has jumped ahead, or the machine has slept: what this host held of table '" +
            settings_.table + "' counts as lost and is taken anew",
        clock_.steady_now());
  } else {
    remarks_.say("no heartbeat could be written to table '" + settings_.table +
                     "' for a whole lease: what this host held of it is lost",
                 clock_.steady_now());
  }
  lease_.gone();
  lost_ = true;
  return false;
}

bool OwnershipCoordinator::may_start() {
  const MutexLock lock(state_);
  if (!SLUICE_GUARD(leased_two_thirds)) {
    return true;
  }
  return check_lease() && lease_.may_start(lease_clock_.now());
}

bool OwnershipCoordinator::holds() {
  const MutexLock lock(state_);
  return check_lease() && lease_.holds(lease_clock_.now());
}

SteadyTime OwnershipCoordinator::holds_until() {
  const MutexLock lock(state_);
  const SteadyTime now = lease_clock_.now();
  return check_lease() && lease_.holds(now) ? clock_.steady_now() + (lease_.ends() - now) : SteadyTime::min();
}

void OwnershipCoordinator::lose_all() {
  const bool owned =
      std::any_of(duties_.begin(), duties_.end(), [](const Duty& duty) { return duty.half->owns_any(); });
  for (const Duty& duty : duties_) {
    duty.half->lease_lost(clock_.steady_now());
  }
  const MutexLock lock(state_);
  lost_ = false;
  if (owned) {
    needed_ = std::max(needed_, announced_);  // what is lost may still be at work
    needed_since_ = clock_.steady_now();
  }
}

void OwnershipCoordinator::join(HalfDuty& half, Deadline deadline) {
  const MutexLock lock(turn_);
  const auto known = std::find_if(duties_.begin(), duties_.end(), [&](const Duty& duty) { return duty.half == &half; });
  if (known == duties_.end()) {
    const QueueAddress& address = half.address();
    duties_.push_back({.half = &half,
                       .name = half_name(address.queue, address.half),
                       .partition = ownership_partition(address.queue, address.half)});
  } else {
    known->leaving = false;
  }
  beat_at_ = look_at_ = SteadyTime::min();
  do_due(deadline);
}

bool OwnershipCoordinator::leave(HalfDuty& half, Deadline deadline) {
  const MutexLock lock(turn_);
  const auto known = std::find_if(duties_.begin(), duties_.end(), [&](const Duty& duty) { return duty.half == &half; });
  if (known == duties_.end()) {
    return true;
  }
  known->leaving = true;
  beat_at_ = look_at_ = SteadyTime::min();
  do_due(deadline);
  if (half.owns_any()) {
    return false;
  }
  // Another host that did not know of it yet may have handed a shard to this one meanwhile: that one is passed on.
  look(deadline);
  hand_over(*known, deadline);
  return !half.owns_any();
}

void OwnershipCoordinator::forget(HalfDuty& half) {
  const MutexLock lock(turn_);
  std::erase_if(duties_, [&](const Duty& duty) { return duty.half == &half; });
  if (!duties_.empty()) {
    return;
  }
  // Its last heartbeat stays, and says that it has left; others remove it when they find it dead for long.
  const MutexLock state(state_);
  lease_.gone();
}

void OwnershipCoordinator::tend(bool wait, Deadline deadline) {
  if (wait) {
    turn_.lock();
  } else if (!turn_.try_lock()) {
    return;
  }
  bool lost = false;
  {
    const MutexLock lock(state_);
    lost = !check_lease();
  }
  // Sleep brings the next heartbeat closer.
  if (lost || clock_.steady_now() >= due_at() || lease_now() >= beat_at_) {
    do_due(deadline);
  }
  turn_.unlock();
}

void OwnershipCoordinator::do_due(Deadline deadline) {
  bool lost = false;
  {
    const MutexLock lock(state_);
    lost = !check_lease();
  }
  if (lost) {
    lose_all();
    beat_at_ = look_at_ = SteadyTime::min();
  }
  due_at_ = SteadyTime::max().time_since_epoch().count();
  if (duties_.empty()) {
    return;
  }
  if (lease_now() >= beat_at_ && !beat(deadline)) {
    beat_at_ = lease_now() + std::min(kRetry, settings_.lease / 10);
  }
  // Whom a shard is to go to may have left since the last look.
  const bool closes =
      std::any_of(duties_.begin(), duties_.end(), [](const Duty& duty) { return !duty.half->hand_overs().empty(); });
  if (closes || clock_.steady_now() >= look_at_) {
    look(deadline);
  } else if (clock_.steady_now() >= glance_at_) {
    glance(deadline);
  }
  bool all_over = true;
  for (Duty& duty : duties_) {
    all_over = hand_over(duty, deadline) && all_over;
  }
  if (!all_over) {
    look_at_ = std::min(look_at_, clock_.steady_now() + kExpecting);
  }
  const SteadyTime beat_due = clock_.steady_now() + (beat_at_ - lease_now());
  due_at_ = std::min({due_at(), beat_due, look_at_, glance_at_}).time_since_epoch().count();
}

// What will be announced is all that may go out from now on, and what has gone out before that is asked for.
InFlightBound OwnershipCoordinator::bound_to_announce() {
  const bool early = lease_now() < beat_at_;
  InFlightBound planned = 0;
  {
    const MutexLock lock(state_);
    const SteadyTime now = clock_.steady_now();
    if (now >= needed_since_ + kBoundKept) {
      needed_before_ = std::exchange(needed_, 0);
      needed_since_ = now;
    }
    planned = rounded(std::max(needed_, needed_before_));
    if (early) {
      // What goes out next may need it: only a heartbeat in its time takes it back.
      planned = std::max(planned, announced_);
    }
    announced_ = std::min(announced_, planned);
  }
  InFlightBound bound = 0;
  for (const Duty& duty : duties_) {
    bound = std::max(bound, duty.half->in_flight_bound());
  }
  const MutexLock lock(state_);
  needed_ = std::max(needed_, bound);
  return std::max(planned, rounded(bound));
}

HostBeat OwnershipCoordinator::own_beat(SteadyTime now, InFlightBound bound) const {
  HostBeat own{.beat = {.host = settings_.host, .counter = counter_, .lease = settings_.lease, .leaving = true},
               .in_flight_bound = bound + kLateOnes,
               .bell = bell_};
  for (const Duty& duty : duties_) {
    own.figures.emplace(duty.name, duty.half->figures(now));
    if (!duty.leaving) {
      own.beat.works_on.insert(duty.name);
      own.beat.leaving = false;
    }
    if (duty.half->moves()) {
      own.beat.moves.insert(duty.name);
    }
  }
  return own;
}

bool OwnershipCoordinator::beat(Deadline deadline) {
  ++counter_;
  SteadyTime began;
  Duration ahead{};
  {
    const MutexLock lock(state_);
    began = lease_clock_.now();
    ahead = lease_clock_.ahead();
  }
  const InFlightBound bound = bound_to_announce();
  const HostBeat own = own_beat(clock_.steady_now(), bound);
  dynamo::PutItemRequest request;
  request.table = settings_.table;
  request.item = encode_beat(own, time_.wall_now(), time_.wall_now() + kForgotten);
  if (!declared_dead_) {
    demand_not_ended(request);
    demand_no_later_one(request, own.beat);
  }
  const auto written = client_.put_item(request, deadline.earlier(Deadline::after(clock_, settings_.lease / 3)));
  if (!written && written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    lose_to_a_mark();
    return false;
  }
  bool lost = false;
  if (written) {
    const MutexLock lock(state_);
    beat_trouble_.reset();
    lost = !lease_.renewed(began, lease_clock_.now());
    lost_ = lost_ || lost;
    ahead_at_beat_ = ahead;
    announced_ = bound;
  }
  if (lost) {
    lose_all();
  }
  if (!written) {
    tell("no heartbeat can be written", written.error());
    const MutexLock lock(state_);
    beat_trouble_ = written.error();
    return false;
  }
  time_.warn_if_wrong();
  declared_dead_ = false;
  beat_at_ = began + settings_.lease / 3;
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
  {
    const MutexLock lock(state_);
    lease_.gone();
  }
  lose_all();
}

bool OwnershipCoordinator::announce(InFlightBound bound, Deadline deadline) {
  {
    const MutexLock lock(state_);
    needed_ = std::max(needed_, bound);
    if (announced_ >= bound) {
      return true;
    }
  }
  const MutexLock lock(turn_);
  return announced() >= bound || (beat(deadline) && announced() >= bound);
}

InFlightBound OwnershipCoordinator::announced() const {
  const MutexLock lock(state_);
  return announced_;
}

bool OwnershipCoordinator::listen_at(const std::string& bell, Deadline deadline) {
  const MutexLock lock(turn_);
  const bool news = bell != bell_;
  bell_ = bell;
  // Who works on nothing here needs no ring; its first heartbeat will say it.
  return !news || duties_.empty() || beat(deadline);
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

std::optional<dynamo::Error> OwnershipCoordinator::trouble() const {
  const MutexLock lock(state_);
  return beat_trouble_ ? beat_trouble_ : look_trouble_;
}

void OwnershipCoordinator::tell(const std::string& what, const dynamo::Error& error) {
  remarks_.say(what, "table '" + settings_.table + "': " + what + ": " + error.message, clock_.steady_now());
}

}  // namespace sluice::queue::leased
