#include "host/runtime/wake_service.hpp"

#include <set>

namespace sluice::runtime {
namespace {

using queue::wake::RingResult;

/// How often the jobs are looked at, which a reload may have exchanged.
constexpr Duration kLookEvery = std::chrono::seconds(2);
/// So many datagrams are taken in at once; whoever sends more has the thread rest, and the kernel drop.
constexpr int kMostAtOnce = 256;
constexpr Duration kRest = std::chrono::milliseconds(5);
constexpr Duration kLongestRest = std::chrono::minutes(1);
/// How long a name may take to look up: a name server that is dead takes half of it.
constexpr Duration kNameTime = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<WakeService>> WakeService::open(const Parts& parts, const config::WakeConfig& config,
                                                       std::string host, Addresses addresses) {
  const auto address =
      queue::wake::resolve_address(config.listen, parts.clock, Deadline::after(parts.clock, kNameTime));
  if (!address) {
    return Error(address.error().code(), "cannot listen as [wake] listen says: " + address.error().message());
  }
  SLUICE_TRY(listener, queue::wake::DatagramListener::open(*address));
  return std::unique_ptr<WakeService>(
      new WakeService(parts, config, std::move(host), std::move(addresses), std::move(*listener)));
}

WakeService::WakeService(const Parts& parts, const config::WakeConfig& config, std::string host, Addresses addresses,
                         queue::wake::DatagramListener listener)
    : RepeatingService("sluice-announce", parts.clock),
      parts_(parts),
      config_(config),
      host_(std::move(host)),
      addresses_(std::move(addresses)),
      listener_(std::move(listener)),
      filter_(config.secret) {}

void WakeService::listen(const std::stop_token& stop) {
  const std::stop_callback interrupt(stop, [this] { listener_.interrupt(); });
  while (!stop.stop_requested()) {
    listener_.wait(wait_time());
    if (!take_in()) {
      const MutexLock lock(mutex_);
      changed_.wait_until(mutex_, stop, parts_.clock.machine_time(parts_.clock.steady_now() + kRest),
                          [] { return false; });
    }
  }
}

bool WakeService::take_in() {
  std::array<std::uint64_t, queue::wake::kRingResults> counts{};
  std::set<std::string> bells;
  int taken = 0;
  {
    const MutexLock lock(mutex_);
    const SteadyTime now = parts_.clock.steady_now();
    for (; taken < kMostAtOnce; ++taken) {
      const auto bytes = listener_.take();
      if (!bytes) {
        break;
      }
      auto judgement = filter_.judge(*bytes, now);
      ++counts.at(static_cast<std::size_t>(judgement.result));
      if (judgement.result == RingResult::rung) {
        bells.insert(std::move(judgement.queue));
      }
    }
    for (std::string& bell : filter_.take_due(now)) {
      bells.insert(std::move(bell));
    }
  }
  for (const std::string& bell : bells) {
    ring(bell);
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts.at(i) > 0) {
      parts_.metrics.wake_datagrams(queue::wake::to_string(static_cast<RingResult>(i)), counts.at(i));
    }
  }
  return taken < kMostAtOnce;
}

void WakeService::ring(const std::string& bell) {
  std::vector<Target> targets;
  {
    const MutexLock lock(mutex_);
    if (const auto found = targets_.find(bell); found != targets_.end()) {
      targets = found->second;
    }
  }
  for (const Target& target : targets) {
    target.place->ring_here(target.half);
  }
}

SteadyTime WakeService::step(const std::stop_token& stop) {
  if (withdrawn_) {
    take_back();
    return SteadyTime::max();
  }
  look_at_jobs();
  SteadyTime next = parts_.clock.steady_now() + kLookEvery;
  for (auto& [name, post] : posts_) {
    if (post.announcer.due(parts_.clock.steady_now()) && !stop.stop_requested()) {
      announce(post);
    }
    next = std::min(next, post.announcer.next());
  }
  return next;
}

void WakeService::look_at_jobs() {
  std::vector<queue::QueueAddress> addresses = addresses_();
  if (addresses == known_) {
    return;
  }
  bool all_open = true;
  Targets targets;
  std::map<std::string, queue::wake::RingFilter::WallClock> bells;
  std::map<std::string, std::set<std::string>> by_place;
  for (const queue::QueueAddress& address : addresses) {
    const Place place = open(address.queue);
    all_open = all_open && places_.contains(address.queue);
    if (!place) {
      continue;
    }
    const std::string bell = place->bell(address.half);
    targets[bell].push_back({place, address.half});
    bells.emplace(bell, [place] { return place->now(); });
    by_place[place->name()].insert(bell);
    posts_.try_emplace(place->name(), Post{place, {}, false});
  }
  for (auto& [name, post] : posts_) {
    const auto& mine = by_place[name];
    post.announcer.queues({mine.begin(), mine.end()});
  }
  known_ = all_open ? std::move(addresses) : std::vector<queue::QueueAddress>();
  const MutexLock lock(mutex_);
  filter_.know(std::move(bells));
  targets_ = std::move(targets);
}

void WakeService::announce(Post& post) {
  const auto where = announced_address();
  const auto told = where ? tell(post, *where) : Result<double>(where.error());
  const SteadyTime now = parts_.clock.steady_now();
  if (told) {
    post.announcer.announced(*told, now);
    if (std::exchange(post.complained, false)) {
      parts_.log.info("others are told again how to wake this host", {{"place", post.place->name()}});
    }
    return;
  }
  post.announcer.failed(now);
  if (!std::exchange(post.complained, true)) {
    parts_.log.warn("others cannot be told how to wake this host, which looks for messages by itself; trying again",
                    {{"place", post.place->name()}, {"why", told.error().message()}});
  }
}

Result<double> WakeService::tell(Post& post, const std::string& where) {
  const Deadline deadline = Deadline::after(parts_.clock, kCallTime);
  const auto& queues = post.announcer.queues();
  if (queues.empty()) {
    const auto withdrawn = post.place->withdraw(host_, deadline);
    return withdrawn ? Result<double>(0.0) : withdrawn.error();
  }
  return post.place->announce(
      {.host = host_, .address = where, .queues = queues, .at = post.place->now(), .every = post.announcer.interval()},
      deadline);
}

Result<std::string> WakeService::announced_address() const {
  if (config_.announce.empty()) {
    return address();
  }
  // Each time, as the address behind a name may change.
  auto named = queue::wake::resolve_address(config_.announce, parts_.clock, Deadline::after(parts_.clock, kNameTime));
  if (!named) {
    return Error(named.error().code(), "[wake] announce: " + named.error().message());
  }
  if (named->port() == 0) {
    named->port(listener_.address().port());
  }
  return queue::wake::text_of(*named);
}

int WakeService::wait_time() const {
  const MutexLock lock(mutex_);
  const SteadyTime now = parts_.clock.steady_now();
  const Duration wait = std::clamp<Duration>(filter_.next_due() - now, Duration::zero(), kLongestRest);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

void WakeService::take_back() {
  for (auto& [name, post] : posts_) {
    if (post.announcer.stands()) {
      static_cast<void>(post.place->withdraw(host_, Deadline::after(parts_.clock, kFarewellTime)));
    }
  }
  posts_.clear();
}

}  // namespace sluice::runtime
