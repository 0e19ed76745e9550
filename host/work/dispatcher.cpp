#include "host/work/dispatcher.hpp"

#include <algorithm>

namespace sluice::work {

Dispatcher::Dispatcher(InFlightTable& in_flight, Workforce& workforce, const ClaimSizer& sizer)
    : in_flight_(in_flight), workforce_(workforce), sizer_(sizer) {}

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

std::size_t Dispatcher::held_suspects() const {
  const auto suspect = [](const Task* task) { return task->suspect; };
  return static_cast<std::size_t>(std::count_if(held_back_.begin(), held_back_.end(), suspect) +
                                  std::count_if(asking_.begin(), asking_.end(), suspect));
}

std::vector<Task*> Dispatcher::ask(std::size_t most) {
  if (open_) {
    const auto end = held_back_.begin() + static_cast<std::ptrdiff_t>(std::min(most, held_back_.size()));
    asking_.assign(held_back_.begin(), end);
    held_back_.erase(held_back_.begin(), end);
  }
  return asking_;
}

void Dispatcher::add(Task& task) { (task.suspect ? suspects_ : queue_).push_back(&task); }

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

bool Dispatcher::has_work(SeatKind kind) const {
  return open_ && !(kind == SeatKind::lane ? suspects_ : queue_).empty();
}

void Dispatcher::call(StepEffects& notes) const {
  if (!open_) {
    return;
  }
  const std::size_t handful = std::max<std::size_t>(1, sizer_.handful(queue_.size(), workforce_.workers()));
  notes.workers = std::max(notes.workers, std::min(workforce_.free_workers(), (queue_.size() + handful - 1) / handful));
  notes.lanes = std::max(notes.lanes, suspects_.size());
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
      (*task)->leave_hand();
      in_flight_.tidy(**task);
    }
  }
}

void Dispatcher::close() {
  open_ = false;
  for (std::uint32_t seat = 0; seat < workforce_.seats(); ++seat) {
    if (workforce_.is_busy(seat)) {
      take_back(seat);
    }
  }
}

void Dispatcher::drop_gone() {
  const auto gone = [](const Task* task) { return task->stage() != TaskStage::queued; };
  std::erase_if(queue_, gone);
  std::erase_if(suspects_, gone);
  std::erase_if(held_back_, gone);
  std::erase_if(asking_, gone);
}

std::vector<Task*> Dispatcher::waiting() const {
  std::vector<Task*> all(queue_.begin(), queue_.end());
  all.insert(all.end(), suspects_.begin(), suspects_.end());
  all.insert(all.end(), held_back_.begin(), held_back_.end());
  all.insert(all.end(), asking_.begin(), asking_.end());
  return all;
}

}  // namespace sluice::work
