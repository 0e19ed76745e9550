#include "host/work/assessor.hpp"

#include "host/work/idempotency_gate.hpp"
#include "host/work/settler.hpp"

namespace sluice::work {
namespace {

using observe::LogLevel;
using plugin::OutcomeStatus;

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

}  // namespace

void Assessor::collect(WorkerBatch& batch, SteadyTime now, StepEffects& effects) {
  finished_.clear();
  batch.collect(finished_);
  Duration quick{};
  std::size_t quick_count = 0;
  for (WorkerBatch::Finished& one : finished_) {
    if (!one.expired && one.took < kCountedAlone) {
      quick += one.took;
      ++quick_count;
    } else if (!one.expired) {
      sizer_.handled(one.took, 1);
      times_.add(one.took, 1);
      effects.handler_times.emplace_back(one.took, 1);
    }
    take_over(one, now, effects);
  }
  if (quick_count > 0) {
    sizer_.handled(quick, quick_count);
    times_.add(quick / static_cast<Duration::rep>(quick_count), quick_count);
    effects.handler_times.emplace_back(quick / static_cast<Duration::rep>(quick_count), quick_count);
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
    ++effects.timed_out;
    times_.timed_out();
    call_time_out(finished.outcome, finished.took);
  }
  claimer_.attempt_ended(finished.outcome.status == OutcomeStatus::release, effects);
  if (counts) {
    settler_.add_finished(task, disposition_of(task, finished), now);
    log_outcome(task, finished, effects);
  } else {
    settler_.remember(task, disposition_of(task, finished));
    effects.about(LogLevel::warn, "a handler has returned after its message was given up", task.message,
                  finished.outcome.reason);
    in_flight_.tidy(task);
  }
}

Disposition Assessor::disposition_of(const Task& task, const WorkerBatch::Finished& finished) {
  Disposition disposition = dispose(finished.outcome, task.message.attempt, policy_, random_);
  disposition.failure.took = finished.took;
  gate_.seal(task, finished.outcome.effects, disposition);
  return disposition;
}

void Assessor::log_outcome(const Task& task, const WorkerBatch::Finished& finished, StepEffects& effects) const {
  const plugin::Outcome& outcome = finished.outcome;
  switch (outcome.status) {
    case OutcomeStatus::reject:
      effects.about(LogLevel::warn, "rejected", task.message, outcome.reason);
      break;
    case OutcomeStatus::fault:
    case OutcomeStatus::crashed:
    case OutcomeStatus::retry:
      note_failed(task, finished, effects);
      break;
    case OutcomeStatus::discard:
      effects.about(LogLevel::info, "discarded", task.message, outcome.reason);
      break;
    case OutcomeStatus::done:
    case OutcomeStatus::snooze:
    case OutcomeStatus::release:
      break;
  }
}

bool Assessor::settles_at_once(Task& task, SteadyTime now, StepEffects& effects) {
  if (auto known = settler_.recognise(task.message); known && SLUICE_GUARD(finished_not_run_again)) {
    effects.about(LogLevel::info,
                  "this host has finished the message before and could not write it; it is not run again",
                  task.message);
    settler_.add_finished(task, std::move(*known), now);
    return true;
  }
  const std::uint32_t attempt = task.message.attempt;
  if (!policy_.retry.exhausted(attempt)) {
    return false;
  }
  ++effects.exhausted;
  Disposition disposition = dispose_exhausted(attempt, policy_);
  effects.about(LogLevel::warn, "attempts are used up, the handler is not run again", task.message,
                disposition.failure.error);
  settler_.add(task, std::move(disposition), now);
  return true;
}

void Assessor::give_up(Task& task, Duration limit, SteadyTime now, StepEffects& effects) {
  const std::string why = "timed out: the handler did not return within " + config::format_duration(shown(limit)) +
                          ", it is stuck and its worker is lost";
  ++effects.timed_out;
  times_.timed_out();
  effects.about(LogLevel::error, "the handler ignores its stop token and is stuck; its message is taken from it",
                task.message, policy_.handler + ": " + why + ". Mend the handler");
  task.write_off();
  if (task.stage() == TaskStage::dealt) {
    Disposition disposition = dispose_crash(why, task.message.attempt, policy_, random_);
    disposition.failure.took = limit;
    settler_.add(task, std::move(disposition), now);
  }
}

}  // namespace sluice::work
