#include "host/stores/owned/membership.hpp"

#include <algorithm>
#include <string_view>

namespace sluice::queue::owned {
namespace {

// More than the longest lease; wall clocks may be set to any time.
constexpr Duration kMostAtOnce = std::chrono::hours(24);

// An incarnation is the host's name, a slash and a word of its own.
std::string_view host_of(std::string_view incarnation) { return incarnation.substr(0, incarnation.rfind('/')); }

}  // namespace

void Membership::saw(std::span<const Heartbeat> beats, SteadyTime now) {
  for (auto& [host, sight] : hosts_) {
    sight.listed = false;
  }
  for (const Heartbeat& beat : beats) {
    const auto [place, fresh] = hosts_.try_emplace(beat.host);
    Sight& sight = place->second;
    if (fresh || sight.beat.counter != beat.counter) {
      sight.moved_at = now;
      sight.met_at = fresh ? now : sight.met_at;
    }
    sight.beat = beat;
    sight.listed = true;
    most_in_flight_ = std::max(most_in_flight_, beat.in_flight_bound);
  }
  forget_the_dead(now);
}

void Membership::met(const std::string& host, SteadyTime now) {
  if (const auto [place, fresh] = hosts_.try_emplace(host); fresh) {
    place->second.beat.host = host;
    place->second.beat.lease = otherwise_;
    place->second.met_at = place->second.moved_at = now;
  }
}

bool Membership::alive(const std::string& host, SteadyTime now) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && now < found->second.dead_at();
}

bool Membership::settled(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.beat.ended && found->second.beat.settled;
}

bool Membership::dead_since(const std::string& host, SteadyTime then) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.dead_at() <= then;
}

std::set<std::string> Membership::workers(const std::string& on, SteadyTime now) const {
  std::set<std::string> names;
  std::set<std::string> movers;
  for (const auto& [host, sight] : hosts_) {
    if (now < sight.dead_at() && !sight.beat.leaving && sight.beat.works_on.contains(on)) {
      (sight.beat.moves.contains(on) ? movers : names).insert(host);
    }
  }
  return movers.empty() ? names : movers;
}

bool Membership::moved(const std::string& host, const std::string& what) const {
  const auto found = hosts_.find(host);
  return found != hosts_.end() && found->second.beat.moves.contains(what);
}

bool Membership::silent(const std::string& host, SteadyTime now) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() || now >= found->second.moved_at + found->second.beat.lease / 3 * 2;
}

bool Membership::on_probation(const std::string& host, SteadyTime now) const {
  const auto found = hosts_.find(host);
  if (found == hosts_.end()) {
    return false;
  }
  const Sight& sight = found->second;
  const Duration lease = sight.beat.lease;
  const bool beats = sight.moved_at >= sight.met_at + lease / 4;
  const bool stays = sight.moved_at >= sight.met_at + lease;
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    const Sight& other = entry.second;
    const bool counts = entry.first != host && host_of(entry.first) == host_of(host) && !other.beat.ended &&
                        !other.beat.leaving && other.met_at <= sight.met_at;
    const bool works = now < other.moved_at + other.beat.lease / 2;
    return counts && !(works ? beats : stays);
  });
}

const Heartbeat* Membership::last_of(const std::string& host) const {
  const auto found = hosts_.find(host);
  return found == hosts_.end() ? nullptr : &found->second.beat;
}

std::optional<SteadyTime> Membership::next_death(SteadyTime now) const {
  std::optional<SteadyTime> next;
  for (const auto& [host, sight] : hosts_) {
    if (now < sight.dead_at() && (!next || sight.dead_at() < *next)) {
      next = sight.dead_at();
    }
  }
  return next;
}

// A dead host that is still listed stays, so that it does not begin to live again at the next read. One that is not
// listed is met again where it still holds something, and lives on for that long: it has been dead for a lease by then.
void Membership::forget_the_dead(SteadyTime now) {
  std::erase_if(hosts_, [now](const auto& entry) {
    const Sight& sight = entry.second;
    return !sight.listed && now >= sight.dead_at() + 2 * sight.beat.lease;
  });
}

// The wall clock is read first: a thread that is held up between the two finds less, and the rest the next time.
SteadyTime OwnLease::now() {
  const Duration wall = clock_.wall_now().time_since_epoch();
  const SteadyTime steady = clock_.steady_now();
  const Duration between = wall - steady.time_since_epoch();
  if (between_ && between > *between_) {
    ahead_ += std::min(between - *between_, kMostAtOnce);
  }
  between_ = between;
  return steady + ahead_;
}

std::optional<Duration> OwnLease::left() {
  const SteadyTime time = now();
  return began_ ? std::optional<Duration>(*began_ + lease_ - time) : std::nullopt;
}

bool OwnLease::renewed(SteadyTime began) {
  const bool held = holds();
  if (!began_ || *began_ < began) {
    began_ = began;
  }
  return held;
}

}  // namespace sluice::queue::owned
