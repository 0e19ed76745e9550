#include "host/stores/outbox/lock_holder.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/signal_block.hpp"

namespace sluice::queue::outbox {
namespace {

// While buckets change hands.
constexpr Duration kQuickBeat = std::chrono::milliseconds(100);
constexpr Duration kUnsettled = std::chrono::seconds(10);

}  // namespace

class LockHolder::Turn {
 public:
  /// Waits for it until the deadline.
  Turn(LockHolder& holder, SteadyTime until) : holder_(holder) {
    const MutexLock lock(holder_.mutex_);
    mine_ = holder_.changed_.wait_until(holder_.mutex_, until,
                                        [&]() SLUICE_REQUIRES(holder_.mutex_) { return !holder_.busy_; });
    holder_.busy_ = holder_.busy_ || mine_;
  }
  ~Turn() { give_back(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void give_back() {
    if (mine_) {
      const MutexLock lock(holder_.mutex_);
      holder_.busy_ = false;
      mine_ = false;
      holder_.changed_.notify_all();
    }
  }
  bool mine() const { return mine_; }
  std::unique_ptr<LockSession>& session() { return holder_.session_; }

 private:
  LockHolder& holder_;
  bool mine_ = false;
};

LockHolder::LockHolder(Settings settings, Database& database, const Clock& clock, Random& random, Events events)
    : settings_(std::move(settings)),
      database_(database),
      clock_(clock),
      random_(random),
      events_(std::move(events)),
      share_(settings_.space.buckets, static_cast<std::uint32_t>(random.below(settings_.space.buckets))),
      lease_clock_(clock),
      lease_(settings_.lease) {}

LockHolder::~LockHolder() { stop(); }

void LockHolder::start() {
  const SignalBlock quiet;
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void LockHolder::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

void LockHolder::close() {
  Turn turn(*this, SteadyTime::max());
  turn.session().reset();
  const MutexLock lock(mutex_);
  lease_.gone();
}

bool LockHolder::usable() {
  const MutexLock lock(mutex_);
  return lease_.holds(lease_clock_.now());
}

SteadyTime LockHolder::lease_now() {
  const MutexLock lock(mutex_);
  return lease_clock_.now();
}

Deadline LockHolder::beat_deadline() {
  const MutexLock lock(mutex_);
  return Deadline::at(clock_.steady_now() + (lease_.ends() - lease_clock_.now()));
}

template <typename T>
bool LockHolder::answered(Turn& turn, const Result<T>& result, SteadyTime asked_at) {
  if (result) {
    alive(asked_at);
    return true;
  }
  if (ends_session(result.error().code())) {
    over(turn, result.error());
    return false;
  }
  return true;
}

// Whether the lease before had ended is the session's to say.
void LockHolder::alive(SteadyTime asked_at) {
  const MutexLock lock(mutex_);
  static_cast<void>(lease_.renewed(asked_at, lease_clock_.now()));
}

void LockHolder::over(Turn& turn, const Error& error) {
  turn.session().reset();
  {
    const MutexLock lock(mutex_);
    lease_.gone();
    share_lost_ = true;
    look_ = true;
  }
  // While nobody else has the turn, so that what is taken next comes after it.
  events_.trouble(error);
  events_.lost();
}

Result<std::vector<MarkStatus>> LockHolder::mark(std::span<const Mark> marks, Deadline deadline) {
  Turn turn(*this, deadline.time());
  if (!turn.mine()) {
    return Error(ErrorCode::throttled, "the session that writes marks was busy until the deadline");
  }
  if (!turn.session()) {
    return Error(ErrorCode::unavailable, "the session that held the rows has ended");
  }
  const SteadyTime asked_at = lease_now();
  auto marked = turn.session()->mark(marks, deadline);
  answered(turn, marked, asked_at);
  return marked;
}

void LockHolder::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Duration pause = kQuickBeat;
    {
      Turn turn(*this, SteadyTime::max());
      {
        const MutexLock lock(mutex_);
        look_ = false;
        if (std::exchange(share_lost_, false)) {
          share_.lost_all();
          members_ = 0;
        }
      }
      const bool works = turn.session() ? beat(turn) : connect(turn);
      const SteadyTime now = clock_.steady_now();
      if (works) {
        retry_.worked();
        pause = next_beat(now);
      } else {
        pause = retry_.next(random_);
      }
    }
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.machine_time(clock_.steady_now() + pause),
                        [this]() SLUICE_REQUIRES(mutex_) { return look_; });
  }
}

Duration LockHolder::next_beat(SteadyTime now) const {
  const bool busy = !share_.settled() && (now < unsettled_until_ || share_.leaving());
  return busy ? kQuickBeat : beat_every_;
}

bool LockHolder::connect(Turn& turn) {
  const SteadyTime asked_at = lease_now();
  const Deadline deadline = Deadline::after(clock_, kConnectTime);
  auto opened = database_.open_locks(deadline);
  if (!opened) {
    events_.trouble(opened.error());
    return false;
  }
  const auto members = (*opened)->join(settings_.space, deadline);
  if (!members) {
    events_.trouble(members.error());
    return false;
  }
  if (members->other_buckets != 0) {
    events_.trouble(Error(ErrorCode::unavailable,
                          "other hosts share the outbox into " + std::to_string(members->other_buckets) +
                              " buckets, and this one into " + std::to_string(settings_.space.buckets) +
                              "; give all of them the same 'buckets' (this one waits until they have ended)"));
    return false;
  }
  turn.session() = std::move(*opened);
  beat_every_ = turn.session()->beat_every(settings_.lease);
  alive(asked_at);
  events_.trouble(std::nullopt);
  return share_out(turn, members->count);
}

bool LockHolder::beat(Turn& turn) {
  const SteadyTime asked_at = lease_now();
  const auto members = turn.session()->beat(beat_deadline());
  if (!answered(turn, members, asked_at)) {
    return false;
  }
  if (!members) {
    events_.trouble(members.error());
    return false;
  }
  return share_out(turn, members->count);
}

bool LockHolder::share_out(Turn& turn, std::uint32_t members) {
  if (members != std::exchange(members_, members)) {
    unsettled_until_ = clock_.steady_now() + kUnsettled;
  }
  if (const auto surplus = share_.shared_by(members); !surplus.empty()) {
    events_.leaving(surplus);
  }
  if (const auto free = share_.free_to_go(events_.nothing_out); !free.empty()) {
    if (!give_back(turn, free)) {
      return false;
    }
    share_.unlocked(free);
  }
  share_.begin_round();
  for (auto wanted = share_.to_try(); !wanted.empty(); wanted = share_.to_try()) {
    const SteadyTime asked_at = lease_now();
    const auto locked = turn.session()->lock(wanted, beat_deadline());
    if (!answered(turn, locked, asked_at)) {
      return false;
    }
    if (!locked) {
      events_.trouble(locked.error());
      return false;
    }
    const auto got = share_.locked(*locked);
    if (!got.surplus.empty() && !give_back(turn, got.surplus)) {
      return false;
    }
    if (!got.held.empty()) {
      events_.took(got.held);
    }
  }
  return true;
}

bool LockHolder::give_back(Turn& turn, std::span<const std::uint32_t> buckets) {
  const SteadyTime asked_at = lease_now();
  const auto unlocked = turn.session()->unlock(buckets, beat_deadline());
  return answered(turn, unlocked, asked_at) && static_cast<bool>(unlocked);
}

}  // namespace sluice::queue::outbox
