#include "host/work/dispatcher.hpp"

#include "host/work/assessor.hpp"

namespace sluice::work {

bool only_removal_is_left(const Task& task, const plugin::Outcome& outcome) {
  const bool removes =
      outcome.status == plugin::OutcomeStatus::done || outcome.status == plugin::OutcomeStatus::discard;
  return removes && !outcome.effects && !task.key.held;
}

Task* WorkerBatch::next(SteadyTime now) {
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(running_ == nullptr);
  while (!unstarted_.empty()) {
    const Dealt dealt = unstarted_.front();
    unstarted_.pop_front();
    if (now < dealt.start_before) {
      attempt_.arm(timeout_ > Duration::zero() ? now + timeout_ : SteadyTime::max());
      running_ = dealt.task;
      attempt_.set_first_result(running_->first_result);
      started_at_ = now;
      return running_;
    }
    finished_.push_back({dealt.task, {plugin::OutcomeStatus::release, {}, {}}, Duration::zero(), true, false});
  }
  return nullptr;
}

namespace {

// A system that gives no thread is asked again after this.
constexpr Duration kMakeAgain = std::chrono::seconds(1);

}  // namespace

void Workforce::count(const Seat& seat, std::size_t change) {
  const bool worker = seat.kind == SeatKind::worker;
  switch (seat.state) {
    case State::vacant:
    case State::leaving:
      break;
    case State::idle:
      (worker ? free_workers_ : free_lanes_) += change;
      break;
    case State::busy:
      (worker ? busy_workers_ : busy_lanes_) += change;
      break;
    case State::lost:
      lost_ += change;
      break;
  }
}

std::uint32_t Workforce::enlist(WorkerBatch& batch, SeatKind kind, bool isolated) {
  std::size_t& in_making = kind == SeatKind::worker ? workers_in_making_ : lanes_in_making_;
  SLUICE_ASSERT(in_making > 0);
  --in_making;
  auto seat = std::find_if(seats_.begin(), seats_.end(), [](const Seat& one) { return one.state == State::vacant; });
  if (seat == seats_.end()) {
    seat = seats_.emplace(seats_.end());
  }
  *seat = {.batch = &batch, .kind = kind, .isolated = isolated};
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
  if (one.state == State::lost) {
    const bool worker = one.kind == SeatKind::worker;
    const std::size_t others =
        worker ? free_workers_ + busy_workers_ + workers_in_making_ : free_lanes_ + busy_lanes_ + lanes_in_making_;
    if (others >= (worker ? settings_.workers : most_lanes())) {
      return false;
    }
  }
  if (one.state != State::idle) {
    go(one, State::idle);
  }
  one.dealt = 0;
  return true;
}

Workforce::Wanted Workforce::want(std::size_t waiting_suspects, SteadyTime now) {
  const std::size_t workers = free_workers_ + busy_workers_ + workers_in_making_;
  const std::size_t lanes = free_lanes_ + busy_lanes_ + lanes_in_making_;
  Wanted wanted;
  wanted.workers = settings_.workers - std::min<std::size_t>(settings_.workers, workers);
  const std::size_t needed = waiting_suspects - std::min(waiting_suspects, free_lanes_ + lanes_in_making_);
  wanted.lanes = std::min(needed, most_lanes() - std::min(most_lanes(), lanes));
  if (wanted.workers + wanted.lanes == 0 || loss_limit_reached()) {
    return {};
  }
  if (now < make_after_) {
    return {0, 0, make_after_};
  }
  workers_in_making_ += wanted.workers;
  lanes_in_making_ += wanted.lanes;
  return wanted;
}

std::vector<Workforce::Stuck> Workforce::stuck() const {
  std::vector<Stuck> all;
  for (const Seat& seat : seats_) {
    if (seat.state == State::lost) {
      const WorkerBatch::View view = seat.batch->view();
      if (view.running != nullptr) {
        all.push_back({view.running->message.id, view.started_at});
      }
    }
  }
  return all;
}

Claimer::Room Dispatcher::room(SteadyTime now) const {
  if (!open_ || in_flight_.size() >= kMaxHeld) {
    return {};
  }
  const ClaimSizer::Pool pool{.free = workforce_.free_workers(),
                              .active = workforce_.active_workers(kStartHorizon, now),
                              .queued = queue_.size() + held_back_.size(),
                              .asking = asking_.size()};
  return {.messages = std::min(sizer_.room(pool), kMaxHeld - in_flight_.size()),
          .suspects = workforce_.busy_lanes() + suspects_.size() + held_suspects() < workforce_.most_lanes()};
}

bool Dispatcher::deal(std::uint32_t seat, SteadyTime now) {
  const bool lane = workforce_.kind(seat) == SeatKind::lane;
  std::deque<Task*>& queue = lane ? suspects_ : queue_;
  if (!open_ || queue.empty()) {
    return false;
  }
  const std::size_t count = lane ? 1 : sizer_.handful(queue.size(), workforce_.workers());
  WorkerBatch& batch = workforce_.batch(seat);
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

void Dispatcher::take_back(std::uint32_t seat) {
  recalled_.clear();
  workforce_.batch(seat).recall(recalled_);
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

SteadyTime WorkerSupervisor::inspect(SteadyTime now, StepEffects& effects) {
  SteadyTime next = SteadyTime::max();
  for (std::uint32_t seat = 0; seat < workforce_.seats(); ++seat) {
    if (workforce_.is_busy(seat)) {
      look_at(seat, now, effects);
      // Whoever is about to come back is not waited for without a pause.
      next = std::min(next, std::max(next_look(seat), now + kLateHandful));
    }
  }
  return next;
}

void WorkerSupervisor::look_at(std::uint32_t seat, SteadyTime now, StepEffects& effects) {
  if (workforce_.dealt(seat) > 1 && now - workforce_.dealt_at(seat) >= kLateHandful) {
    dispatcher_.take_back(seat);
    assessor_.collect(workforce_.batch(seat), now, effects);
  }
  const WorkerBatch::View view = workforce_.batch(seat).view();
  const bool stuck = view.running != nullptr && now >= workforce_.stuck_at(seat, view);
  if (!stuck || !SLUICE_GUARD(stuck_slot)) {
    return;
  }
  dispatcher_.take_back(seat);
  workforce_.lose(seat);
  assessor_.give_up(*view.running, now - view.started_at, now, effects);
}

SteadyTime WorkerSupervisor::next_look(std::uint32_t seat) const {
  if (!workforce_.is_busy(seat)) {
    return SteadyTime::max();
  }
  const SteadyTime stuck_at = workforce_.stuck_at(seat, workforce_.batch(seat).view());
  return workforce_.dealt(seat) > 1 ? std::min(stuck_at, workforce_.dealt_at(seat) + kLateHandful) : stuck_at;
}

SteadyTime WorkerSupervisor::hire(SteadyTime now, StepEffects& effects) {
  const Workforce::Wanted wanted = workforce_.want(dispatcher_.waiting_suspects(), now);
  effects.hire_workers += wanted.workers;
  effects.hire_lanes += wanted.lanes;
  return wanted.look_again;
}

void Workforce::not_made(SeatKind kind, SteadyTime now) {
  --(kind == SeatKind::worker ? workers_in_making_ : lanes_in_making_);
  make_after_ = now + kMakeAgain;
}

}  // namespace sluice::work
