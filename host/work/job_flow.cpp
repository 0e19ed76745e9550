#include "host/work/job_flow.hpp"

namespace sluice::work {
namespace {

using observe::LogLevel;
using plugin::OutcomeStatus;
namespace core = queue::core;

/// Without digits that say nothing.
Duration shown(Duration duration) {
  return duration >= std::chrono::seconds(1)
             ? Duration(std::chrono::duration_cast<std::chrono::seconds>(duration))
             : Duration(std::chrono::duration_cast<std::chrono::milliseconds>(duration));
}

// Attempts shorter than this are counted as one mean for each handful.
constexpr Duration kCountedAlone = std::chrono::milliseconds(1);

/// The handler has come back after its time-out: whatever it says of it, that is why.
void call_time_out(plugin::Outcome& outcome, Duration took) {
  const bool failed = outcome.status == OutcomeStatus::retry || outcome.status == OutcomeStatus::fault;
  if (failed && outcome.reason.find("timed out") == std::string::npos) {
    outcome.reason = "timed out after " + config::format_duration(shown(took)) +
                     (outcome.reason.empty() ? std::string() : ": " + outcome.reason);
  }
}

bool is_fault(OutcomeStatus status) { return status == OutcomeStatus::fault || status == OutcomeStatus::crashed; }

// What an attempt that failed is logged as; whether there is another one is what a reader wants to know first.
void note_failed(const Task& task, const WorkerBatch::Finished& finished, StepEffects& effects) {
  const plugin::Outcome& outcome = finished.outcome;
  const Ending ending = task.disposition.ending;
  const bool fault = is_fault(outcome.status);
  auto level = LogLevel::warn;
  std::string_view text;
  if (ending == Ending::rejected) {
    text = fault ? "the handler failed in the last attempt, the message goes to the DLQ"
                 : "not retried after the last attempt, the message goes to the DLQ";
  } else if (ending == Ending::discarded) {
    text = fault ? "the handler failed in the last attempt, the message is discarded"
                 : "not retried after the last attempt, the message is discarded";
  } else {
    level = fault ? LogLevel::warn : LogLevel::info;
    text = fault ? "the handler failed" : "to be retried";
  }
  effects.about(level, text, task.message, outcome.reason);
  effects.lines.back().attempt = task.message.attempt;
  effects.lines.back().took = finished.took;
  if (ending == Ending::retried) {
    effects.lines.back().wait = task.disposition.delay;
  }
}

// Before the deadline, what is left running is released, so that the release itself still fits.
constexpr Duration kMaxReserve = std::chrono::seconds(2);

// In the order of SharedFlow::Caller.
constexpr std::array kCalls{&StepEffects::poller,  &StepEffects::settler, &StepEffects::keeper,
                            &StepEffects::drained, &StepEffects::keys,    &StepEffects::checkpoints};

}  // namespace

void Assessor::collect(WorkerBatch& batch, SteadyTime now, StepEffects& effects) {
  finished_.clear();
  batch.collect(finished_);
  const auto count = [&](Duration total, std::size_t handled) {
    const Duration each = total / static_cast<Duration::rep>(handled);
    sizer_.handled(total, handled);
    times_.add(each, handled);
    effects.counts.handler_times.emplace_back(each, handled);
  };
  Duration quick{};
  std::size_t quick_count = 0;
  for (WorkerBatch::Finished& one : finished_) {
    // Those of one call have shared its time.
    const Duration took = one.took / static_cast<Duration::rep>(one.beside);
    if (!one.expired && took < kCountedAlone) {
      quick += took;
      ++quick_count;
    } else if (!one.expired) {
      count(took, 1);
    }
    take_over(one, now, effects);
  }
  if (quick_count > 0) {
    count(quick, quick_count);
  }
}

void Assessor::take_over(WorkerBatch::Finished& finished, SteadyTime now, StepEffects& effects) {
  Task& task = *finished.task;
  task.leave_worker();
  const bool counts = task.stage() == TaskStage::dealt;
  if (finished.expired) {
    if (counts) {
      settler_.put_back(task, now);
    }
    in_flight_.tidy(task);
    return;
  }
  // However late: the store's fence knows whether somebody has taken the message meanwhile.
  if (!SLUICE_GUARD(late_work_settled) && counts && !in_flight_.terms().usable(task.lease, now)) {
    in_flight_.lose(task, effects);
    in_flight_.tidy(task);
    return;
  }
  effects.outcome(finished.outcome.status);
  if (finished.timed_out) {
    ++effects.counts.timed_out;
    times_.timed_out();
    call_time_out(finished.outcome, finished.took);
  }
  claimer_.attempt_ended(finished.outcome.status == OutcomeStatus::release, effects);
  if (effects.watched) {
    task.watched = std::make_unique<AttemptEnd>(AttemptEnd{.outcome = finished.outcome, .took = finished.took});
  }
  if (counts) {
    Disposition disposition = disposition_of(task, finished);
    if (effects.follows && disposition.action == queue::CompletionAction::remove && disposition.effects == nullptr) {
      effects.handled.push_back(task.lease.receipt);
    }
    settler_.add_finished(task, std::move(disposition), now);
    log_outcome(task, finished, effects);
  } else {
    settler_.remember(task, disposition_of(task, finished));
    effects.about(LogLevel::warn, "a handler has returned after its message was given up", task.message,
                  finished.outcome.reason);
    in_flight_.tidy(task);
  }
}

Disposition Assessor::disposition_of(const Task& task, const WorkerBatch::Finished& finished) {
  Disposition disposition = finished.outcome.status == OutcomeStatus::crashed
                                ? blame(task, finished.outcome.reason, finished.beside)
                                : dispose(finished.outcome, task.message.attempt, policy_, random_);
  if (disposition.failure != nullptr) {
    disposition.failure->took = finished.took;
  }
  gate_.seal(task, finished.outcome.effects, disposition);
  return disposition;
}

// Of several in one call nobody knows which it was: none has cost an attempt, and each runs alone next.
Disposition Assessor::blame(const Task& task, const std::string& why, std::size_t beside) {
  if (beside > 1 && SLUICE_GUARD(batch_becomes_suspect)) {
    Disposition disposition = put_back();
    disposition.marks = core::kSuspect;
    return disposition;
  }
  return dispose_crash(why, task.message.attempt, policy_, random_);
}

void Assessor::log_outcome(const Task& task, const WorkerBatch::Finished& finished, StepEffects& effects) const {
  const plugin::Outcome& outcome = finished.outcome;
  const core::OutcomeRule& rule = core::rule_of(outcome.status);
  if (rule.decision == core::Decision::tries_again) {
    note_failed(task, finished, effects);
  } else if (!rule.logged.empty()) {
    const bool gives_up = rule.decision == core::Decision::gives_up;
    effects.about(gives_up ? LogLevel::warn : LogLevel::info, rule.logged, task.message, outcome.reason);
  }
}

bool Assessor::settles_at_once(Task& task, SteadyTime now, StepEffects& effects) {
  if (auto known = settler_.recognise(task); known && SLUICE_GUARD(finished_not_run_again)) {
    effects.about(LogLevel::info,
                  "this host has finished the message before and could not write it; it is not run again",
                  task.message);
    task.not_run = known->attempt < task.message.attempt;
    settler_.add_finished(task, std::move(known->disposition), now);
    return true;
  }
  const std::uint32_t attempt = task.message.attempt;
  if (!policy_.retry.exhausted(attempt)) {
    return false;
  }
  ++effects.counts.exhausted;
  Disposition disposition = dispose_exhausted(attempt, policy_);
  effects.about(LogLevel::warn, "attempts are used up, the handler is not run again", task.message,
                disposition.failure != nullptr ? disposition.failure->error : std::string());
  settler_.add(task, std::move(disposition), now);
  return true;
}

void Assessor::give_up(Task& task, Duration limit, bool async, std::size_t beside, SteadyTime now,
                       StepEffects& effects) {
  const std::string why = "timed out: the handler did not " + std::string(async ? "complete the message" : "return") +
                          " within " + config::format_duration(shown(limit)) +
                          (async ? ", it is stuck" : ", it is stuck and its worker is lost");
  ++effects.counts.timed_out;
  times_.timed_out();
  effects.about(LogLevel::error, "the handler ignores its stop token and is stuck; its message is taken from it",
                task.message, policy_.handler + ": " + why + ". Mend the handler");
  task.write_off();
  effects.checkpoints = true;
  if (task.stage() == TaskStage::dealt) {
    Disposition disposition = blame(task, why, beside);
    if (disposition.failure != nullptr) {
      disposition.failure->took = limit;
    }
    settler_.add(task, std::move(disposition), now);
  }
}

SteadyTime WorkerSupervisor::inspect(SteadyTime now, StepEffects& effects) {
  SteadyTime next = SteadyTime::max();
  for (std::uint32_t seat = 0; seat < workforce_.seats().size(); ++seat) {
    if (workforce_.seats()[seat].works()) {
      // Whoever is about to come back is not waited for without a pause.
      next = std::min(next, std::max(look_at(seat, now, effects), now + kLateHandful));
    }
  }
  return next;
}

SteadyTime WorkerSupervisor::look_at(std::uint32_t number, SteadyTime now, StepEffects& effects) {
  const Workforce::Seat& seat = workforce_.seats()[number];
  if (seat.dealt > 1 && now - seat.dealt_at >= kLateHandful) {
    dispatcher_.take_back(number);
    assessor_.collect(*seat.batch, now, effects);
  }
  const SteadyTime stuck_at = look_at_running(number, now, effects);
  return seat.dealt > 1 ? std::min(stuck_at, seat.dealt_at + kLateHandful) : stuck_at;
}

SteadyTime WorkerSupervisor::look_at_running(std::uint32_t number, SteadyTime now, StepEffects& effects) {
  const Workforce::Seat& seat = workforce_.seats()[number];
  const bool async = seat.async();
  views_.clear();
  seat.batch->look(views_);
  std::erase_if(views_, [](const WorkerBatch::View& view) { return view.given_up; });
  // One call times out when the last of its messages does.
  SteadyTime of_call = views_.empty() ? workforce_.stuck_at(seat, seat.times_out_at(seat.dealt_at)) : SteadyTime::min();
  for (const WorkerBatch::View& view : views_) {
    of_call = std::max(of_call, workforce_.stuck_at(seat, view.times_out_at));
  }
  SteadyTime next = async && seat.batch->counts().unstarted == 0 ? SteadyTime::max() : of_call;
  bool lost = false;
  for (const WorkerBatch::View& view : views_) {
    const SteadyTime stuck_at = async ? workforce_.stuck_at(seat, view.times_out_at) : of_call;
    if (now < stuck_at || !SLUICE_GUARD(stuck_slot)) {
      next = std::min(next, stuck_at);
      continue;
    }
    if (!seat.batch->give_up(*view.running)) {
      continue;
    }
    lost = lost || !async || !view.begun;
    assessor_.give_up(*view.running, now - view.started_at, async && view.begun, async ? 1 : views_.size(), now,
                      effects);
  }
  if (async && seat.state == Workforce::State::busy &&
      std::all_of(views_.begin(), views_.end(), [](const auto& view) { return view.begun; })) {
    const SteadyTime stuck_at = workforce_.stuck_at(seat, seat.times_out_at(seat.batch->inside_since()));
    if (now >= stuck_at) {
      effects.line(LogLevel::error, "the handler does not return although its message is completed; its worker is lost",
                   {}, assessor_.handler() + ": `begin` must not wait. Mend the handler");
      lost = true;
    }
    next = std::min(next, stuck_at);
  }
  if (lost && seat.state == Workforce::State::busy) {
    workforce_.lose(number);
    dispatcher_.take_back(number);
    // What had ended within the call that does not return.
    assessor_.collect(*seat.batch, now, effects);
  }
  return next;
}

SteadyTime WorkerSupervisor::next_look(std::uint32_t number) const {
  const Workforce::Seat& seat = workforce_.seats()[number];
  if (seat.state != Workforce::State::busy) {
    return SteadyTime::max();
  }
  const SteadyTime stuck_at = workforce_.stuck_at(seat, seat.times_out_at(seat.dealt_at));
  return seat.dealt > 1 ? std::min(stuck_at, seat.dealt_at + kLateHandful) : stuck_at;
}

namespace {

RunningHandler running_of(const WorkerBatch::View& view, std::uint32_t worker) {
  return {.message_id = view.running->message.id,
          .worker = worker,
          .attempt = view.running->message.attempt,
          .part = view.running->part,
          .started_at = view.started_at,
          .times_out_at = view.times_out_at,
          .leased_until = view.running->lease.ends_at,
          .stuck = view.given_up,
          .stop_requested = view.stop_requested};
}

}  // namespace

void Drain::begin(SteadyTime now, SteadyTime deadline, StepEffects& effects) {
  if (phase_ == Phase::over) {
    return;
  }
  deadline_ = std::min(deadline_, deadline);
  if (deadline_ != SteadyTime::max()) {
    const Duration left = std::max(Duration::zero(), Duration(deadline_ - now));
    soft_deadline_ = std::min(soft_deadline_, deadline_ - std::min(left / 5, kMaxReserve));
  }
  parts_.settler.hurry(deadline_);
  if (phase_ == Phase::running) {
    phase_ = Phase::draining;
    release_waiting(now);
  }
  for (const Workforce::Seat& seat : parts_.workforce.seats()) {
    if (seat.works()) {
      parts_.assessor.collect(*seat.batch, now, effects);
      seat.batch->request_stop(soft_deadline_);
    }
  }
  effects.poller = effects.keeper = effects.keys = effects.drained = true;
  parts_.settler.call(now, effects);
}

void Drain::hard_stop(SteadyTime now, StepEffects& effects) {
  if (phase_ == Phase::over || hard_) {
    return;
  }
  hard_ = true;
  soft_deadline_ = now;
  parts_.settler.try_once();
  begin(now, now + kHardStopTime, effects);
}

void Drain::give_up_what_runs(SteadyTime now, StepEffects& effects) {
  given_up_ = true;
  effects.checkpoints = true;
  std::vector<WorkerBatch::View> views;
  for (std::uint32_t number = 0; number < parts_.workforce.seats().size(); ++number) {
    const Workforce::Seat& seat = parts_.workforce.seats()[number];
    if (!seat.works()) {
      continue;
    }
    WorkerBatch& batch = *seat.batch;
    parts_.assessor.collect(batch, now, effects);
    views.clear();
    batch.look(views);
    for (const WorkerBatch::View& view : views) {
      Task& task = *view.running;
      if (task.stage() != TaskStage::dealt) {
        continue;
      }
      batch.lose_lease(task);
      effects.about(observe::LogLevel::warn, "the handler has not finished in time, its message is released",
                    task.message, "handler " + parts_.assessor.handler());
      parts_.settler.put_back(task, now);
      abandoned_.push_back(running_of(view, number));
    }
  }
  parts_.settler.hurry(deadline_);  // what could not be written is tried once more
  parts_.settler.call(now, effects);
}

std::optional<SteadyTime> Drain::step(SteadyTime now, StepEffects& effects) {
  if (phase_ == Phase::over) {
    return std::nullopt;
  }
  if (now >= soft_deadline_ && !given_up_) {
    give_up_what_runs(now, effects);
  }
  const bool tried_once = hard_ && given_up_ && !parts_.claimer.under_way() && !parts_.keeper.under_way() &&
                          parts_.settler.idle() && parts_.gate.idle();
  if (nothing_left() || tried_once || now >= deadline_) {
    phase_ = Phase::over;
    parts_.in_flight.close();
    parts_.settler.end();
    return std::nullopt;
  }
  return given_up_ ? deadline_ : std::min(soft_deadline_, deadline_);
}

void Drain::release_waiting(SteadyTime now) {
  parts_.dispatcher.close();
  for (Task* task : parts_.in_flight.tasks()) {
    if (task->stage() == TaskStage::queued) {
      parts_.settler.put_back(*task, now);
    }
  }
  parts_.dispatcher.drop_gone();
}

bool Drain::nothing_left() const {
  if (parts_.in_flight.open() > 0 || parts_.claimer.under_way() || !parts_.gate.idle()) {
    return false;
  }
  // A handler whose message was lost is at work on something all the same.
  const auto& seats = parts_.workforce.seats();
  return given_up_ || std::none_of(seats.begin(), seats.end(), [](const Workforce::Seat& seat) {
           return seat.batch != nullptr && seat.batch->counts().busy() > 0;
         });
}

void Drain::look(StepEffects& effects) const {
  if (phase_ == Phase::draining && (hard_ || nothing_left())) {
    effects.drained = true;
  }
}

JobFlow::JobFlow(const config::JobConfig& job, const Settings& settings, Random& random,
                 isolation::JobLedger& crash_ledger, SteadyTime now)
    : policy_(job, settings.host),
      file_workers_(job.concurrency),
      in_flight_(LeaseTerms(settings.leases), crash_ledger),
      workforce_({.workers = job.concurrency, .stuck_grace = settings.stuck_grace, .style = settings.style}),
      claimer_(job, random, now),
      settler_(policy_, in_flight_, workforce_, sizer_, random, settings.budgets),
      dispatcher_(in_flight_, workforce_, sizer_),
      gate_(job, policy_, in_flight_, dispatcher_, settler_, random),
      assessor_(policy_, in_flight_, settler_, claimer_, gate_, sizer_, random),
      keeper_(in_flight_, dispatcher_, settler_, workforce_, random),
      supervisor_(workforce_, dispatcher_, assessor_),
      drain_({in_flight_, dispatcher_, workforce_, assessor_, settler_, keeper_, claimer_, gate_}) {}

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
  effects.counts.claimed += deliveries.size();
  if (drain_.over()) {
    // The answer came after the end: nobody is left to release them, they come back when their leases run out.
    in_flight_.close();
    return;
  }
  std::size_t bytes = 0;
  for (queue::Delivery& delivery : deliveries) {
    bytes += queue::payload_bytes(delivery.message);
    admit(std::move(delivery), now, effects);
  }
  if (!gone.empty()) {
    keeper_.taken_back(gone, effects);
  }
  sizer_.received(bytes, deliveries.size());
  if (!deliveries.empty()) {
    dispatcher_.call(effects);
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
    keeper_.overtaken_by(delivery, effects);
  }
  const queue::OwnIdFound found = std::move(delivery.own_id);
  Task& task = in_flight_.admit(std::move(delivery));
  in_flight_.terms().limit(task.lease, now);
  task.claimed_at = now;
  call_keeper(task.lease.extend_at, effects);
  if (assessor_.settles_at_once(task, now, effects)) {
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
  order.wake = std::min({order.wake, look_again, hire(now, effects)});
  if (order.tasks.empty()) {
    keeper_alarm_.sleeps_until(order.wake);
  } else {
    keeper_alarm_.is_busy();
  }
  dispatcher_.call(effects);
  after_step(now, effects);
  return order;
}

void JobFlow::steer(const JobSteering& steering, SteadyTime now, StepEffects& effects) {
  // Where each is a thread there are fewer.
  const std::uint32_t most =
      workforce_.settings().style.async() ? config::kMaxAsyncConcurrency : config::kMaxConcurrency;
  const std::uint32_t workers = steering.workers == 0 ? file_workers_ : std::min(steering.workers, most);
  if (steering.paused != paused_ && !drain_.begun()) {
    paused_ = steering.paused;
    if (paused_) {
      drain_.release_waiting(now);
    } else {
      claimer_.wake(effects);
    }
  }
  if (workers != workforce_.settings().workers) {
    workforce_.set_workers(workers);
    effects.workers = std::max(effects.workers, workforce_.surplus());
    dispatcher_.call(effects);
  }
  after_step(now, effects);
}

std::optional<Error> JobFlow::first(std::optional<Error> (FailureRun::*answer)() const) const {
  std::optional<Error> found;
  for (const FailureRun* calls : {&claimer_.failures(), &settler_.failures(), &gate_.failures()}) {
    found = found ? std::move(found) : (calls->*answer)();
  }
  return found;
}

JobActivity JobFlow::activity(SteadyTime now) const {
  JobActivity activity{
      .paused = paused_,
      .workers = workforce_.settings().workers,
      .ledger = in_flight_.account(),
      .times = assessor_.times(),
      .running = {},
      .abandoned = drain_.abandoned(),
      .trouble = first(&FailureRun::trouble),
      .cut_off = (!paused_ && claimer_.failures().lasts(now)) || settler_.cut_off(now) || gate_.cut_off(now),
      .denial = first(&FailureRun::denial),
      .out_of_workers = workforce_.loss_limit_reached(),
      .claiming = claimer_.under_way(),
      .rate = claimer_.rate(),
      .short_of_rate = claimer_.short_of_rate(),
      .quiescent = !drain_.begun() && claimer_.found_nothing() && in_flight_.open() == 0};
  std::vector<WorkerBatch::View> views;
  for (std::uint32_t number = 0; number < workforce_.seats().size(); ++number) {
    const Workforce::Seat& seat = workforce_.seats()[number];
    views.clear();
    if (seat.batch != nullptr) {
      seat.batch->look(views);
      const bool inside = seat.async() && seat.batch->inside_since() != SteadyTime::max();
      const bool lingers =
          inside && std::all_of(views.begin(), views.end(), [](const auto& view) { return view.begun; });
      activity.lingering += lingers ? 1 : 0;
    }
    for (const WorkerBatch::View& view : views) {
      activity.running.push_back(running_of(view, number));
    }
  }
  return activity;
}

void JobFlow::after_step(SteadyTime now, StepEffects& effects) {
  if (!drain_.begun()) {
    const bool deals = !blocked(now) && !paused_;
    if (dispatcher_.is_open() && !deals) {
      dispatcher_.close();
    } else if (!dispatcher_.is_open() && deals) {
      dispatcher_.open();
      dispatcher_.call(effects);
    }
    call_keeper(hire(now, effects), effects);
    if (claimer_.waits_for_room() && dispatcher_.room(now).messages > 0) {
      claimer_.room_made(effects);
    }
  }
  settler_.call(now, effects);
  gate_.call(effects);
  drain_.look(effects);
}

void SharedFlow::end(StepEffects& effects) {
  effects.counts.held = flow_.in_flight().size();
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    waiting_[i].calls += effects.*kCalls[i] ? 1 : 0;
  }
}

void SharedFlow::tell(const StepEffects& effects) {
  for (std::size_t i = 0; i < effects.workers; ++i) {
    work_.notify_one();
  }
  for (std::size_t i = 0; i < effects.quarantine; ++i) {
    quarantine_work_.notify_one();
  }
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    if (effects.*kCalls[i]) {
      waiting_[i].condition.notify_all();
    }
  }
  if (!effects.handled.empty()) {
    follow_(effects.handled);
  }
  publish(effects, job_, traced_, log_, metrics_);
  for (const AttemptEnd& end : effects.ended) {
    watch_(end);
  }
  for (std::size_t i = 0; i < effects.hire_workers && hire_; ++i) {
    hire_(SeatKind::worker);
  }
  for (std::size_t i = 0; i < effects.hire_quarantine && hire_; ++i) {
    hire_(SeatKind::quarantine);
  }
}

}  // namespace sluice::work
