#include "host/work/assessor.hpp"

#include <string_view>
#include <utility>

#include "base/guard.hpp"

namespace sluice::work {
namespace {

using observe::LogLevel;
using plugin::OutcomeStatus;

// Attempts shorter than this are counted as one mean for each handful.
constexpr Duration kCountedAlone = std::chrono::milliseconds(1);

bool is_fault(OutcomeStatus status) { return status == OutcomeStatus::fault || status == OutcomeStatus::crashed; }

// What an attempt that failed is logged as; whether there is another one is what a reader wants to know first.
void note_failed(const Task& task, const plugin::Outcome& outcome, Notes& notes) {
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
  notes.line(level, text, task.message.id, outcome.reason);
}

}  // namespace

Assessor::Assessor(FailurePolicy policy, Holdings& holdings, Settler& settler, Claimer& claimer, ClaimSizer& sizer,
                   Random& random)
    : policy_(std::move(policy)),
      holdings_(holdings),
      settler_(settler),
      claimer_(claimer),
      sizer_(sizer),
      random_(random) {}

void Assessor::collect(Hand& hand, SteadyTime now, Notes& notes) {
  finished_.clear();
  hand.collect(finished_);
  Duration quick{};
  std::size_t quick_count = 0;
  for (Hand::Finished& one : finished_) {
    if (!one.expired && one.took < kCountedAlone) {
      quick += one.took;
      ++quick_count;
    } else if (!one.expired) {
      sizer_.handled(one.took, 1);
      times_.add(one.took, 1);
      notes.handler_times.emplace_back(one.took, 1);
    }
    take_over(one, now, notes);
  }
  if (quick_count > 0) {
    sizer_.handled(quick, quick_count);
    times_.add(quick / static_cast<Duration::rep>(quick_count), quick_count);
    notes.handler_times.emplace_back(quick / static_cast<Duration::rep>(quick_count), quick_count);
  }
}

void Assessor::take_over(Hand::Finished& finished, SteadyTime now, Notes& notes) {
  Task& task = *finished.task;
  task.leave_hand();
  const bool counts = task.stage() == TaskStage::dealt;
  if (finished.expired) {
    if (counts) {
      settler_.add(task, put_back(task.suspect), now);
    }
    holdings_.tidy(task);
    return;
  }
  notes.outcome(finished.outcome.status);
  claimer_.attempt_ended(finished.outcome.status == OutcomeStatus::release, notes);
  if (counts) {
    settler_.add_finished(task, dispose(finished.outcome, task.message.attempt, policy_, random_), now);
    log_outcome(task, finished.outcome, notes);
  } else {
    settler_.remember(task, dispose(finished.outcome, task.message.attempt, policy_, random_));
    notes.line(LogLevel::warn, "a handler has returned after its message was given up", task.message.id,
               finished.outcome.reason);
    holdings_.tidy(task);
  }
}

void Assessor::log_outcome(const Task& task, const plugin::Outcome& outcome, Notes& notes) const {
  switch (outcome.status) {
    case OutcomeStatus::reject:
      notes.line(LogLevel::warn, "rejected", task.message.id, outcome.reason);
      break;
    case OutcomeStatus::fault:
    case OutcomeStatus::crashed:
    case OutcomeStatus::retry:
      note_failed(task, outcome, notes);
      break;
    case OutcomeStatus::discard:
      notes.line(LogLevel::info, "discarded", task.message.id, outcome.reason);
      break;
    case OutcomeStatus::done:
    case OutcomeStatus::snooze:
    case OutcomeStatus::release:
      break;
  }
}

bool Assessor::settles_at_once(Task& task, SteadyTime now, Notes& notes) {
  if (auto known = settler_.recognise(task.message); known && SLUICE_GUARD(finished_not_run_again)) {
    notes.line(LogLevel::info, "this host has finished the message before and could not write it; it is not run again",
               task.message.id);
    settler_.add_finished(task, std::move(*known), now);
    return true;
  }
  const std::uint32_t attempt = task.message.attempt;
  if (!policy_.retry.exhausted(attempt)) {
    return false;
  }
  ++notes.exhausted;
  Disposition disposition = dispose_exhausted(attempt, policy_);
  notes.line(LogLevel::warn, "attempts are used up, the handler is not run again", task.message.id,
             disposition.failure.error);
  settler_.add(task, std::move(disposition), now);
  return true;
}

void Assessor::give_up(Task& task, Duration limit, SteadyTime now, Notes& notes) {
  const Duration shown = limit >= std::chrono::seconds(1)
                             ? Duration(std::chrono::duration_cast<std::chrono::seconds>(limit))
                             : Duration(std::chrono::duration_cast<std::chrono::milliseconds>(limit));
  const std::string why =
      "timed out: the handler did not return within " + config::format_duration(shown) + ", its worker is lost";
  notes.line(LogLevel::error, "the handler ignores its stop token and is stuck; its message is taken from it",
             task.message.id, policy_.handler + ": " + why + ". Mend the handler");
  if (task.stage() == TaskStage::dealt) {
    settler_.add(task, dispose_crash(why, task.message.attempt, policy_, random_), now);
  }
}

}  // namespace sluice::work
