#include "host/work/job_flow.hpp"

namespace sluice::work {

namespace {

// In the order of SharedFlow::Caller.
constexpr std::array kCalls{&StepEffects::poller, &StepEffects::settler, &StepEffects::keeper, &StepEffects::drained,
                            &StepEffects::keys};

}  // namespace

void JobFlow::claimed(Result<queue::Claimed> result, SteadyTime now, StepEffects& effects) {
  const auto gone = std::exchange(gone_while_claiming_, {});
  if (!result) {
    claimer_.failed(result.error(), now, effects);
    after_step(now, effects);
    return;
  }
  std::vector<queue::Delivery>& deliveries = result->deliveries;
  claimer_.claimed(deliveries.size(), result->next_due, now, effects);
  in_flight_.count_claimed(deliveries.size());
  effects.claimed += deliveries.size();
  if (drain_.over()) {
    // The answer came after the end: nobody is left to release them, they come back when their leases run out.
    in_flight_.close();
    return;
  }
  std::size_t bytes = 0;
  for (queue::Delivery& delivery : deliveries) {
    bytes += delivery.message.body.size();
    admit(std::move(delivery), now, effects);
  }
  if (!gone.empty()) {
    keeper_.taken_back(gone, effects);
  }
  sizer_.received(bytes, deliveries.size());
  if (!deliveries.empty()) {
    dispatcher_.call(effects);
    note_held(effects);
  }
  after_step(now, effects);
}

void JobFlow::admit(queue::Delivery&& delivery, SteadyTime now, StepEffects& effects) {
  // What comes back without having been settled comes as a suspect.
  if (delivery.suspect && SLUICE_GUARD(not_started_twice)) {
    if (const Task* held = in_flight_.resume(delivery, effects)) {
      call_keeper(held->lease.extend_at, effects);
      return;
    }
  }
  const queue::OwnIdFound found = std::move(delivery.own_id);
  Task& task = in_flight_.admit(std::move(delivery));
  in_flight_.terms().limit(task.lease, now);
  call_keeper(task.lease.extend_at, effects);
  if (!drain_.begun() && assessor_.settles_at_once(task, now, effects)) {
    return;
  }
  if (drain_.begun() || paused_) {
    settler_.put_back(task, now);  // the call was under way when the drain or the pause began
  } else {
    gate_.admit(task, found, now, effects);
  }
}

JobFlow::ExtendOrder JobFlow::next_extension(SteadyTime now, StepEffects& effects) {
  if (drain_.over()) {
    return {};
  }
  const SteadyTime look_again = supervisor_.inspect(now, effects);
  ExtendOrder order = keeper_.next(now);
  order.wake = std::min(order.wake, look_again);
  if (order.tasks.empty()) {
    keeper_alarm_.sleeps_until(order.wake);
  } else {
    keeper_alarm_.is_busy();
  }
  dispatcher_.call(effects);
  after_step(now, effects);
  return order;
}

void JobFlow::pause(bool paused, SteadyTime now, StepEffects& effects) {
  if (paused == paused_ || drain_.begun()) {
    return;
  }
  paused_ = paused;
  if (paused) {
    drain_.release_waiting(now);
  } else {
    claimer_.wake(effects);
  }
  after_step(now, effects);
}

std::vector<RunningHandler> JobFlow::running() const {
  std::vector<RunningHandler> all;
  for (std::uint32_t seat = 0; seat < workforce_.seats(); ++seat) {
    if (workforce_.is_vacant(seat)) {
      continue;
    }
    const WorkerBatch& batch = workforce_.batch(seat);
    const WorkerBatch::View view = batch.view();
    if (view.running != nullptr) {
      all.push_back({.message_id = view.running->message.id,
                     .worker = seat,
                     .attempt = view.running->message.attempt,
                     .part = view.running->part,
                     .started_at = view.started_at,
                     .times_out_at = view.times_out_at,
                     .leased_until = view.running->lease.ends_at,
                     .stuck = workforce_.is_lost(seat),
                     .stop_requested = batch.stop_requested()});
    }
  }
  return all;
}

void JobFlow::after_step(SteadyTime now, StepEffects& effects) {
  if (!drain_.begun()) {
    if (shut_ != (blocked(now) || paused_)) {
      shut_ = !shut_;
      if (shut_) {
        dispatcher_.close();
      } else {
        dispatcher_.open();
        dispatcher_.call(effects);
      }
    }
    call_keeper(supervisor_.hire(now, effects), effects);
    if (claimer_.waits_for_room() && dispatcher_.room(now).messages > 0) {
      claimer_.room_made(effects);
    }
  }
  settler_.call(now, effects);
  gate_.call(effects);
  drain_.look(effects);
}

void SharedFlow::count_calls(const StepEffects& effects) {
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    waiting_[i].calls += effects.*kCalls[i] ? 1 : 0;
  }
}

void SharedFlow::tell(const StepEffects& effects) {
  for (std::size_t i = 0; i < effects.workers; ++i) {
    work_.notify_one();
  }
  for (std::size_t i = 0; i < effects.lanes; ++i) {
    lane_work_.notify_one();
  }
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    if (effects.*kCalls[i]) {
      waiting_[i].condition.notify_all();
    }
  }
  publish(effects, job_, traced_, log_, metrics_);
  for (std::size_t i = 0; i < effects.hire_workers && hire_; ++i) {
    hire_(SeatKind::worker);
  }
  for (std::size_t i = 0; i < effects.hire_lanes && hire_; ++i) {
    hire_(SeatKind::lane);
  }
}

}  // namespace sluice::work
