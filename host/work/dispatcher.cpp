#include "host/work/dispatcher.hpp"

namespace sluice::work {
namespace {

// Weight of one observation in the moving averages.
constexpr double kWeight = 0.1;

double blend(double mean, double value, std::size_t count) {
  const double weight = std::min(0.5, kWeight * static_cast<double>(count));
  return mean + weight * (value - mean);
}

constexpr double kBucketSeconds = 0.1;
// Rounding of many small refills must not make a whole token look like a little less.
constexpr double kSlack = 1e-6;

constexpr Duration kFirstPoll = std::chrono::milliseconds(10);
constexpr Duration kLastPause = std::chrono::seconds(1);
constexpr Duration kFirstDue = std::chrono::milliseconds(1);
constexpr Duration kFirstRetry = std::chrono::milliseconds(100);
constexpr Duration kLastRetry = std::chrono::seconds(10);
// So many messages given back in a row are worth a line in the log.
constexpr std::uint64_t kWorthALine = 100;

// A system that gives no thread is asked again after this.
constexpr Duration kMakeAgain = std::chrono::seconds(1);

}  // namespace

void ClaimSizer::handled(Duration total, std::size_t count) {
  if (count == 0) {
    return;
  }
  const double mean = std::max(1e-9, std::chrono::duration<double>(total).count() / static_cast<double>(count));
  seconds_ = seconds_ < 0 ? mean : blend(seconds_, mean, count);
}

void ClaimSizer::received(std::size_t bytes, std::size_t count) {
  if (count > 0) {
    bytes_ = blend(bytes_, static_cast<double>(bytes) / static_cast<double>(count), count);
  }
}

std::size_t ClaimSizer::room(const Pool& pool) const {
  double ahead = 0;
  const double horizon = std::chrono::duration<double>(kStartHorizon).count();
  if (seconds_ > 0 && seconds_ < horizon) {
    ahead = static_cast<double>(pool.active) * std::floor(horizon / seconds_);
  }
  if (bytes_ >= 1) {
    ahead = std::min(ahead, std::floor(static_cast<double>(kClaimBytes) / bytes_));
  }
  const double wanted = static_cast<double>(pool.free) + ahead - static_cast<double>(pool.asking);
  const auto target = static_cast<std::size_t>(std::clamp(wanted, 0.0, static_cast<double>(kMaxClaim)));
  const bool fills = pool.whole && pool.queued < pool.free;
  if (pool.queued >= target || (pool.queued > target / 2 && !fills)) {
    return 0;
  }
  return target - pool.queued;
}

std::size_t ClaimSizer::handful(std::size_t queued, std::size_t workers) const {
  if (seconds_ <= 0 || queued == 0) {
    return std::min<std::size_t>(queued, 1);
  }
  const double fits = std::chrono::duration<double>(kHandfulTime).count() / seconds_;
  const std::size_t share = (queued + workers - 1) / std::max<std::size_t>(workers, 1);
  const auto most = static_cast<std::size_t>(std::clamp(fits, 1.0, static_cast<double>(kMaxHandful)));
  return std::max<std::size_t>(1, std::min(most, share));
}

double RateLimiter::capacity_of(double rate) { return rate > 0 ? std::max(1.0, rate * kBucketSeconds) : 0; }

RateLimiter::RateLimiter(double rate, bool shared, SteadyTime now)
    : limited_(std::isfinite(rate) && rate > 0),
      rate_(limited_ && !shared ? rate : 0),
      capacity_(capacity_of(rate_)),
      tokens_(shared ? 0 : 1),
      filled_at_(now) {}

void RateLimiter::share(const RateLease& lease, SteadyTime now) {
  refill(std::min(now, until_));
  // What is left of a lease that has run out is another host's.
  const double left = now < until_ ? tokens_ : std::min(0.0, tokens_);
  rate_ = lease.rate;
  capacity_ = capacity_of(rate_);
  tokens_ = std::min(capacity_, left + lease.credit);
  filled_at_ = now;
  until_ = lease.until;
}

std::size_t RateLimiter::available(SteadyTime now) {
  if (!limited_) {
    return std::numeric_limits<std::size_t>::max();
  }
  if (rate_ <= 0 || now >= until_) {
    return 0;
  }
  refill(now);
  return tokens_ + kSlack >= 1 ? static_cast<std::size_t>(tokens_ + kSlack) : 0;
}

SteadyTime RateLimiter::next(SteadyTime now) const {
  if (!limited_) {
    return now;
  }
  if (rate_ <= 0 || now >= until_) {
    return SteadyTime::max();  // until it is shared anew
  }
  const double wanted = std::max(1.0, std::floor(capacity_ / 2));
  const double seconds = std::clamp((wanted - tokens_) / rate_, 0.0, 3600.0);
  return std::max(now, filled_at_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)) +
                           std::chrono::microseconds(1));
}

Claimer::Claimer(const config::JobConfig& job, Random& random, SteadyTime now)
    : random_(random),
      limiter_(job.rate_limit, !job.rate_per_host, now),
      empty_backoff_(kFirstPoll, std::max(kFirstPoll, job.poll_interval)),
      due_backoff_(kFirstDue, kLastPause),
      failure_backoff_(kFirstRetry, kLastRetry),
      given_back_backoff_(kFirstPoll, kLastPause),
      poll_at_(now) {}

Claimer::Order Claimer::next(const Room& room, SteadyTime now) {
  SLUICE_ASSERT(!claiming_);
  // A wake cuts the wait for new messages short, not the back-off from a store that fails or from a handler that gives
  // everything back, whose own releases would wake it.
  if (const SteadyTime at = woken_ ? not_before_ : poll_at_; now < at) {
    return {0, true, at};
  }
  waits_for_room_ = room.messages == 0;
  if (room.messages == 0) {
    return {};
  }
  const std::size_t count = std::min(room.messages, limiter_.available(now));
  if (count == 0) {
    short_of_rate_ = true;
    return {0, true, limiter_.next(now)};
  }
  limiter_.take(count);
  claiming_ = true;
  woken_ = false;
  order_ = {count, room.suspects, now};
  return order_;
}

void Claimer::claimed(std::size_t count, std::optional<Duration> next_due, SteadyTime now, StepEffects& effects) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  limiter_.refund(order_.count - std::min(order_.count, count));
  if (failures_.succeeded("claims work again", effects)) {
    failure_backoff_.reset();
  }
  found_nothing_ = count == 0 && order_.suspects;
  if (count > 0) {
    empty_backoff_.reset();
    due_backoff_.reset();
    poll_at_ = not_before_ = given_back_ > 0 ? now + given_back_backoff_.next(random_) : now;
    return;
  }
  Duration wait = empty_backoff_.next(random_);
  if (next_due && *next_due < wait) {
    // Exactly then; but what is said to be due and is not there must not be asked for without a pause.
    wait = std::max(*next_due, std::min(wait, due_backoff_.next(random_)));
  }
  poll_at_ = now + wait;
}

void Claimer::failed(const Error& error, SteadyTime now, StepEffects& effects) {
  SLUICE_ASSERT(claiming_);
  claiming_ = false;
  found_nothing_ = false;
  limiter_.refund(order_.count);
  // What cannot be reached refuses at once, or the claim has waited for it already.
  const Duration longest = error.code() == ErrorCode::unavailable ? kLastPause : kLastRetry;
  poll_at_ = not_before_ = now + std::min(failure_backoff_.next(random_), longest);
  ++effects.counts.claim_failed;
  failures_.failed(error, "cannot claim messages, trying again", now, effects);
}

void Claimer::attempt_ended(bool gave_back, StepEffects& effects) {
  if (!gave_back) {
    given_back_ = 0;
    given_back_backoff_.reset();
  } else if (++given_back_ == kWorthALine) {
    effects.line(observe::LogLevel::warn, "the handler gives back every message; claiming more slowly");
  }
}

bool only_removal_is_left(const Task& task, const plugin::Outcome& outcome) {
  const bool removes =
      outcome.status == plugin::OutcomeStatus::done || outcome.status == plugin::OutcomeStatus::discard;
  return removes && !outcome.effects && task.key == nullptr;
}

WorkerBatch::Running* WorkerBatch::next(SteadyTime now) {
  const MutexLock lock(mutex_);
  while (!unstarted_.empty()) {
    const Dealt dealt = unstarted_.front();
    unstarted_.pop_front();
    if (now >= dealt.start_before) {
      finished_.push_back({.task = dealt.task, .expired = true});
      continue;
    }
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(runs_.size()));
      runs_.emplace_back(clock_);
    }
    dealt.task->run = free_.back();
    free_.pop_back();
    Running& run = runs_[dealt.task->run];
    run.attempt.arm(timeout_ > Duration::zero() ? now + timeout_ : SteadyTime::max());
    run.attempt.set_first_result(dealt.task->first_result);
    run.task = dealt.task;
    run.started_at = now;
    run.begun = run.given_up = false;
    inside_since_ = now;
    return &run;
  }
  inside_since_ = SteadyTime::max();
  return nullptr;
}

bool WorkerBatch::finish(Running& run, plugin::Outcome outcome, SteadyTime now, std::size_t beside, Finisher who) {
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(run.task != nullptr);
  // One that was given up has been counted.
  const bool timed_out = !run.given_up && now >= run.attempt.deadline();
  finished_.push_back(
      {run.task, std::move(outcome), now - run.started_at, false, timed_out, static_cast<std::uint32_t>(beside)});
  vacate(run);
  return who == Finisher::other && !std::exchange(called_, true);
}

void Workforce::count(const Seat& seat, std::size_t change) {
  if (seat.state == State::idle) {
    crew(seat.kind).free += change;
  } else if (seat.state == State::busy) {
    crew(seat.kind).busy += change;
  } else if (seat.state == State::lost) {
    lost_ += change;
  }
}

std::uint32_t Workforce::enlist(WorkerBatch& batch, SeatKind kind, bool isolated) {
  SLUICE_ASSERT(crew(kind).in_making > 0);
  --crew(kind).in_making;
  auto seat = std::find_if(seats_.begin(), seats_.end(), [](const Seat& one) { return one.state == State::vacant; });
  if (seat == seats_.end()) {
    seat = seats_.emplace(seats_.end());
  }
  *seat = {.batch = &batch, .kind = kind, .isolated = isolated, .takes = settings_.style.taken_by(kind)};
  go(*seat, State::idle);
  return static_cast<std::uint32_t>(seat - seats_.begin());
}

bool Workforce::back(std::uint32_t seat) {
  Seat& one = seats_[seat];
  const bool working = one.state == State::idle || one.state == State::busy;
  if (working && one.kind == SeatKind::worker && surplus() > 0) {
    go(one, State::leaving);
  }
  if (one.state == State::leaving) {
    return false;
  }
  const std::size_t wanted = one.kind == SeatKind::worker ? seats_wanted() : most_quarantined();
  if (one.state == State::lost && crew(one.kind).size() >= wanted) {
    return false;
  }
  const State now = one.batch->counts().busy() > 0 ? State::busy : State::idle;
  if (one.state != now) {
    go(one, now);
  }
  one.dealt = 0;
  return true;
}

std::size_t Workforce::free_places() const {
  if (!settings_.style.async()) {
    return free_workers() * settings_.style.in_a_call();
  }
  if (loss_limit_reached()) {
    return 0;
  }
  std::size_t free = 0;
  for (const Seat& seat : seats_) {
    const bool begins = seat.state == State::idle || seat.state == State::busy;
    if (begins && seat.kind == SeatKind::worker) {
      free += settings_.workers - std::min<std::size_t>(settings_.workers, seat.batch->counts().busy());
    }
  }
  return free;
}

SteadyTime Workforce::hire(std::size_t waiting_suspects, SteadyTime now, StepEffects& effects) {
  Crew& workers = crew(SeatKind::worker);
  Crew& quarantine = crew(SeatKind::quarantine);
  const std::size_t ready = quarantine.free + quarantine.in_making;
  const std::size_t missing = seats_wanted() - std::min<std::size_t>(seats_wanted(), workers.size());
  const std::size_t suspects = std::min(waiting_suspects - std::min(waiting_suspects, ready),
                                        most_quarantined() - std::min(most_quarantined(), quarantine.size()));
  if (missing + suspects == 0 || loss_limit_reached()) {
    return SteadyTime::max();
  }
  if (now < make_after_) {
    return make_after_;
  }
  workers.in_making += missing;
  quarantine.in_making += suspects;
  effects.hire_workers += missing;
  effects.hire_quarantine += suspects;
  return SteadyTime::max();
}

Claimer::Room Dispatcher::room(SteadyTime now) const {
  const std::size_t most = std::max(kMaxHeld, 2 * workforce_.settings().places());
  if (!open_ || in_flight_.size() >= most) {
    return {};
  }
  const ClaimSizer::Pool pool{.free = workforce_.free_places(),
                              .active = workforce_.active_workers(kStartHorizon, now),
                              .queued = queue_.size() + held_back_.size(),
                              .asking = asking_.size(),
                              .whole = workforce_.settings().style.max_wait > Duration::zero()};
  return {
      .messages = std::min(sizer_.room(pool), most - in_flight_.size()),
      .suspects = workforce_.busy_quarantine() + suspects_.size() + held_suspects() < workforce_.most_quarantined()};
}

bool Dispatcher::deal(std::uint32_t seat, SteadyTime now) {
  const bool suspects = workforce_.seats()[seat].kind == SeatKind::quarantine;
  std::deque<Task*>& queue = suspects ? suspects_ : queue_;
  if (!open_ || queue.empty() || (!suspects && !full() && now < ripe_at())) {
    return false;
  }
  const std::size_t count = suspects ? 1 : handful();
  if (count == 0) {
    return false;
  }
  WorkerBatch& batch = *workforce_.seats()[seat].batch;
  std::size_t dealt = 0;
  for (; dealt < count && !queue.empty(); ++dealt) {
    Task& task = *queue.front();
    queue.pop_front();
    task.deal(seat);
    batch.deal(task, in_flight_.terms().usable_until(task.lease));
  }
  workforce_.busy(seat, dealt, now);
  return true;
}

std::size_t Dispatcher::handful() const {
  const WorkStyle& style = workforce_.settings().style;
  if (style.async()) {
    return workforce_.free_places();
  }
  return style.batch() ? style.max_batch : sizer_.handful(queue_.size(), workforce_.settings().workers);
}

void Dispatcher::take_back(std::uint32_t seat) {
  recalled_.clear();
  workforce_.seats()[seat].batch->recall(recalled_);
  workforce_.swept(seat);
  for (auto task = recalled_.rbegin(); task != recalled_.rend(); ++task) {
    if ((*task)->stage() == TaskStage::dealt) {
      (*task)->recall();
      ((*task)->suspect ? suspects_ : queue_).push_front(*task);
    } else {
      (*task)->leave_worker();
      in_flight_.tidy(**task);
    }
  }
}

void Workforce::not_made(SeatKind kind, SteadyTime now) {
  --crew(kind).in_making;
  make_after_ = now + kMakeAgain;
}

}  // namespace sluice::work
