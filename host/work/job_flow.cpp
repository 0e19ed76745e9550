#include "host/work/job_flow.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"

namespace sluice::work {

JobFlow::JobFlow(const Settings& settings, FailurePolicy policy, Random& random, isolation::JobLedger* crash_ledger,
                 SteadyTime now)
    : in_flight_(
          settings.leases.empty() ? LeaseTerms(settings.visibility, settings.max_lease) : LeaseTerms(settings.leases),
          crash_ledger),
      workforce_({.workers = settings.workers, .stuck_grace = settings.stuck_grace}),
      claimer_(settings.claiming, random, now),
      settler_(policy, in_flight_, workforce_, sizer_, random, settings.budgets),
      dispatcher_(in_flight_, workforce_, sizer_),
      gate_({settings.keys, settings.job, settings.visibility}, policy, in_flight_, dispatcher_, settler_, random),
      assessor_(std::move(policy), in_flight_, settler_, claimer_, gate_, sizer_, random),
      keeper_(in_flight_, dispatcher_, settler_, workforce_, random),
      supervisor_(workforce_, dispatcher_, assessor_),
      drain_({in_flight_, dispatcher_, workforce_, assessor_, settler_, keeper_, claimer_, gate_}),
      pause_(dispatcher_, settler_, claimer_) {}

JobFlow::ClaimOrder JobFlow::next_claim(SteadyTime now) {
  if (drain_.begun() || pause_.on()) {
    return {};
  }
  return claimer_.next(blocked(now) ? Claimer::Room{} : dispatcher_.room(now), now);
}

void JobFlow::claimed(Result<queue::Claimed> result, SteadyTime now, StepEffects& notes) {
  const auto gone = std::exchange(gone_while_claiming_, {});
  if (!result) {
    claimer_.failed(result.error(), now, notes);
    after_step(now, notes);
    return;
  }
  std::vector<queue::Delivery>& deliveries = result->deliveries;
  claimer_.claimed(deliveries.size(), result->next_due, now, notes);
  in_flight_.count_claimed(deliveries.size());
  notes.claimed += deliveries.size();
  if (drain_.over()) {
    // The answer came after the end: nobody is left to release them, they come back when their leases run out.
    in_flight_.close();
    return;
  }
  std::size_t bytes = 0;
  for (queue::Delivery& delivery : deliveries) {
    bytes += delivery.message.body.size();
    admit(std::move(delivery), now, notes);
  }
  if (!gone.empty()) {
    keeper_.taken_back(gone, notes);
  }
  sizer_.received(bytes, deliveries.size());
  if (!deliveries.empty()) {
    dispatcher_.call(notes);
    note_held(notes);
  }
  after_step(now, notes);
}

void JobFlow::admit(queue::Delivery&& delivery, SteadyTime now, StepEffects& notes) {
  // What comes back without having been settled comes as a suspect.
  if (delivery.suspect && SLUICE_GUARD(not_started_twice)) {
    if (const Task* held = in_flight_.resume(delivery, notes)) {
      call_keeper(held->lease.extend_at, notes);
      return;
    }
  }
  const queue::OwnIdFound found = std::move(delivery.own_id);
  Task& task = in_flight_.admit(std::move(delivery));
  in_flight_.terms().limit(task.lease, now);
  call_keeper(task.lease.extend_at, notes);
  if (drain_.begun()) {
    // The call was under way when the drain began.
    settler_.add(task, put_back(task.suspect), now);
  } else if (assessor_.settles_at_once(task, now, notes)) {
    return;
  } else if (pause_.on()) {
    pause_.turn_away(task, now);
  } else {
    gate_.admit(task, found, now, notes);
  }
}

JobFlow::KeyOrder JobFlow::next_keys(SteadyTime now) {
  return drain_.over() ? KeyOrder{} : gate_.next(now, drain_.deadline());
}

void JobFlow::keys_answered(const KeyOrder& order, IdempotencyGate::Answers answers, SteadyTime now,
                            StepEffects& notes) {
  gate_.answered(order, std::move(answers), now, notes);
  after_step(now, notes);
}

std::optional<Error> JobFlow::denial() const {
  if (auto denied = claimer_.denial()) {
    return denied;
  }
  const auto denied = settler_.denial();
  return denied ? denied : gate_.denial();
}

void JobFlow::taken_back(std::span<const queue::Receipt> receipts, SteadyTime now, StepEffects& notes) {
  if (claimer_.under_way()) {
    gone_while_claiming_.insert(gone_while_claiming_.end(), receipts.begin(), receipts.end());
  }
  keeper_.taken_back(receipts, notes);
  after_step(now, notes);
}

std::uint32_t JobFlow::enlist(WorkerBatch& batch, SeatKind kind, bool isolated, SteadyTime now, StepEffects& notes) {
  const std::uint32_t seat = workforce_.enlist(batch, kind, isolated);
  after_step(now, notes);
  return seat;
}

void JobFlow::leave(std::uint32_t seat, SteadyTime now, StepEffects& notes) {
  workforce_.leave(seat);
  after_step(now, notes);
}

void JobFlow::not_made(SeatKind kind, SteadyTime now, StepEffects& notes) {
  workforce_.not_made(kind, now);
  after_step(now, notes);
}

bool JobFlow::collect(std::uint32_t seat, SteadyTime now, StepEffects& notes) {
  assessor_.collect(workforce_.batch(seat), now, notes);
  const bool stays = workforce_.back(seat);
  if (workforce_.kind(seat) == SeatKind::lane) {
    claimer_.lane_free(notes);
  }
  after_step(now, notes);
  return stays;
}

bool JobFlow::deal(std::uint32_t seat, SteadyTime now, StepEffects& notes) {
  const bool dealt = dispatcher_.deal(seat, now);
  if (dealt) {
    call_keeper(supervisor_.next_look(seat), notes);
  }
  if (claimer_.waits_for_room() && dispatcher_.room(now).messages > 0) {
    claimer_.room_made(notes);
  }
  return dealt;
}

JobFlow::SettleOrder JobFlow::next_settlement(SteadyTime now, WallTime wall, StepEffects& notes) {
  SettleOrder order = settler_.next(now, wall);
  drain_.look(notes);
  return order;
}

void JobFlow::settled(SettleOrder&& order, std::vector<queue::SettleResult>&& results, SteadyTime now,
                      StepEffects& notes) {
  for (queue::Delivery& anew : settler_.settled(std::move(order), std::move(results), now, notes)) {
    if (!drain_.over()) {
      admit(std::move(anew), now, notes);
      dispatcher_.call(notes);
    }
  }
  note_held(notes);
  after_step(now, notes);
}

JobFlow::ExtendOrder JobFlow::next_extension(SteadyTime now, StepEffects& notes) {
  if (drain_.over()) {
    return {};
  }
  const SteadyTime look_again = supervisor_.inspect(now, notes);
  ExtendOrder order = keeper_.next(now);
  order.wake = std::min(order.wake, look_again);
  if (order.tasks.empty()) {
    keeper_alarm_.sleeps_until(order.wake);
  } else {
    keeper_alarm_.is_busy();
  }
  dispatcher_.call(notes);
  after_step(now, notes);
  return order;
}

void JobFlow::extended(ExtendOrder order, std::vector<queue::ExtendResult> results, SteadyTime now,
                       StepEffects& notes) {
  keeper_.extended(std::move(order), std::move(results), now, notes);
  after_step(now, notes);
}

void JobFlow::pause(bool paused, SteadyTime now, StepEffects& notes) {
  if (paused == pause_.on() || drain_.begun()) {
    return;
  }
  if (paused) {
    pause_.begin(now);
  } else {
    pause_.end(notes);
  }
  after_step(now, notes);
}

void JobFlow::scale(std::uint32_t workers, SteadyTime now, StepEffects& notes) {
  workforce_.set_workers(workers);
  notes.workers = std::max(notes.workers, workforce_.surplus());
  after_step(now, notes);
}

bool JobFlow::cancel(std::string_view message_id) {
  bool found = false;
  for (std::uint32_t seat = 0; seat < workforce_.seats(); ++seat) {
    found = (!workforce_.is_vacant(seat) && workforce_.batch(seat).request_stop_of(message_id)) || found;
  }
  return found;
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

// A source that does not take what was finished gets no more to finish.
bool JobFlow::blocked(SteadyTime now) const {
  return settler_.blocked(now) && SLUICE_GUARD(blocked_job_claims_nothing);
}

void JobFlow::after_step(SteadyTime now, StepEffects& notes) {
  if (!drain_.begun()) {
    if (shut_ != (blocked(now) || pause_.on())) {
      shut_ = !shut_;
      if (shut_) {
        dispatcher_.close();
      } else {
        dispatcher_.open();
        dispatcher_.call(notes);
      }
    }
    call_keeper(supervisor_.hire(now, notes), notes);
    if (claimer_.waits_for_room() && dispatcher_.room(now).messages > 0) {
      claimer_.room_made(notes);
    }
  }
  settler_.call(now, notes);
  gate_.call(notes);
  drain_.look(notes);
}

void JobFlow::call_keeper(SteadyTime at, StepEffects& notes) { notes.keeper = keeper_alarm_.set(at) || notes.keeper; }

bool JobFlow::quiescent() const { return !drain_.begun() && claimer_.found_nothing() && in_flight_.open() == 0; }

void JobFlow::note_held(StepEffects& notes) const {
  notes.held_changed = true;
  notes.held = static_cast<std::int64_t>(in_flight_.size());
}

}  // namespace sluice::work
