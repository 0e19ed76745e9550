#include "host/work/workforce.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace sluice::work {
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

void Workforce::go(Seat& seat, State to) {
  count(seat, static_cast<std::size_t>(-1));
  seat.state = to;
  count(seat, 1);
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

void Workforce::not_made(SeatKind kind, SteadyTime now) {
  --(kind == SeatKind::worker ? workers_in_making_ : lanes_in_making_);
  make_after_ = now + kMakeAgain;
}

void Workforce::leave(std::uint32_t seat) {
  go(seats_[seat], State::vacant);
  seats_[seat].batch = nullptr;
}

void Workforce::busy(std::uint32_t seat, std::size_t dealt, SteadyTime now) {
  SLUICE_ASSERT(seats_[seat].state == State::idle);
  go(seats_[seat], State::busy);
  seats_[seat].dealt = dealt;
  seats_[seat].dealt_at = now;
}

std::size_t Workforce::surplus() const {
  const std::size_t workers = free_workers_ + busy_workers_ + workers_in_making_;
  return workers - std::min<std::size_t>(workers, settings_.workers);
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

void Workforce::swept(std::uint32_t seat) { seats_[seat].dealt = std::min<std::size_t>(seats_[seat].dealt, 1); }

void Workforce::lose(std::uint32_t seat) {
  SLUICE_ASSERT(seats_[seat].state == State::busy);
  go(seats_[seat], State::lost);
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

SteadyTime Workforce::stuck_at(std::uint32_t seat, const WorkerBatch::View& view) const {
  const Seat& one = seats_[seat];
  if (one.batch->timeout() <= Duration::zero()) {
    return SteadyTime::max();
  }
  // What is not started yet will not be stuck earlier than if it were.
  const SteadyTime times_out_at = view.running != nullptr ? view.times_out_at : one.dealt_at + one.batch->timeout();
  const Duration grace = settings_.stuck_grace + (one.isolated ? kKillTime : Duration::zero());
  return times_out_at == SteadyTime::max() ? times_out_at : times_out_at + grace;
}

std::size_t Workforce::active_workers(Duration span, SteadyTime now) const {
  std::size_t active = free_workers_;
  for (const Seat& seat : seats_) {
    const bool recent = seat.state == State::busy && now - seat.dealt_at < span;
    active += recent && seat.kind == SeatKind::worker ? 1 : 0;
  }
  return active;
}

bool Workforce::loss_limit_reached() const { return lost_ >= std::max(kMinLossLimit, settings_.workers); }

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

std::uint32_t Workforce::handlers_running() const {
  return static_cast<std::uint32_t>(std::count_if(seats_.begin(), seats_.end(), [](const Seat& seat) {
    return seat.state != State::vacant && seat.batch->view().running != nullptr;
  }));
}

}  // namespace sluice::work
