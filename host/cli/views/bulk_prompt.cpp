#include "host/cli/views/bulk_prompt.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "host/cli/views/message_view.hpp"

namespace sluice::cli {

namespace {

using State = operate::BulkRun::Step::State;

// A person who has typed a command waits that long for its question.
constexpr Duration kCountingTime = std::chrono::seconds(3);

/// What a run would come to.
struct Outlook {
  std::uint64_t changed = 0;
  std::uint64_t left_alone = 0;  ///< in flight
  bool at_least = false;         ///< there was no time to count them all
  bool all = false;              ///< it is the whole half
};

std::string messages_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " message" : " messages");
}

std::string half_name(const QueueSession& session, queue::Half half) {
  return (half == queue::Half::dlq ? "the dead-letter half of queue " : "queue ") + session.queue();
}

/// Where everything matches, the counts of the half say it.
OrExit<Outlook> count_half(QueueSession& session, const operate::BulkPlan& plan) {
  const auto stats =
      session.oper().stats({.half = plan.half, .consistent = plan.consistent, .exact = true}, session.deadline());
  if (stats.has_error()) {
    return session.failure(stats.error());
  }
  Outlook outlook;
  outlook.left_alone = plan.force || plan.unconditional || plan.any_state ? 0 : stats->in_flight;
  outlook.changed = stats->total() - outlook.left_alone;
  outlook.all = plan.limit == 0 || plan.limit >= stats->total();
  if (plan.limit > 0) {
    outlook.changed = std::min<std::uint64_t>(outlook.changed, plan.limit);
  }
  return outlook;
}

/// What a filter matches, only a look can tell.
OrExit<Outlook> count_matches(QueueSession& session, const operate::BulkPlan& plan) {
  operate::BulkPlan look = plan;
  look.dry_run = true;
  operate::BulkRun run(session.oper(), session.clock(), std::move(look));
  const SteadyTime end = session.clock().steady_now() + kCountingTime;
  auto step = run.step();
  while (step.state == State::more && session.clock().steady_now() < end) {
    step = run.step();
  }
  if (step.state == State::failed) {
    return session.failure(step.error);
  }
  return Outlook{.changed = run.count().done,
                 .left_alone = run.count().skipped,
                 .at_least = step.state == State::more,
                 .all = false};
}

std::string question(const QueueSession& session, const operate::BulkPlan& plan, BulkWords words,
                     const Outlook& outlook) {
  std::string text = std::string(words.verb) + (outlook.all && outlook.left_alone == 0 ? " all " : " ") +
                     (outlook.at_least ? "at least " : "") + messages_text(outlook.changed) + " of " +
                     half_name(session, plan.half);
  text += plan.filter.empty() ? "" : outlook.changed == 1 ? " that matches" : " that match";
  if (outlook.left_alone > 0) {
    text += ", leaving " + std::to_string(outlook.left_alone) + " in flight alone";
  }
  if (plan.rate > 0 && !outlook.at_least) {
    const auto seconds = std::ceil(static_cast<double>(outlook.changed) / plan.rate);
    text += ", in " + short_duration(std::chrono::seconds(static_cast<std::int64_t>(seconds)));
  }
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + "?";
}

Exit nobody_to_ask(const QueueSession& session, const operate::BulkPlan& plan, BulkWords words) {
  const std::string which = plan.limit > 0        ? " at most " + messages_text(plan.limit) + " of "
                            : plan.filter.empty() ? std::string(" every message of ")
                                                  : std::string(" messages of ");
  return Exit::usage("this would " + std::string(words.verb) + which + half_name(session, plan.half) +
                     " and there is no terminal to ask on; add --yes to confirm, or --dry-run to see which");
}

}  // namespace

OrExit<Expected> agree(QueueSession& session, const operate::BulkPlan& plan, BulkWords words,
                       const Arguments& arguments, Console& console) {
  if (plan.dry_run || !plan.ids.empty()) {
    return Expected{};
  }
  const bool asks = !arguments.has("yes");
  if (asks && !console.interactive()) {
    return nobody_to_ask(session, plan, words);
  }
  // Unasked, nobody waits for a count that costs reads.
  if (!asks && (!session.place().in_sqlite() || !plan.filter.empty())) {
    return Expected{};
  }
  SLUICE_TRY(outlook, plan.filter.empty() ? count_half(session, plan) : count_matches(session, plan));
  if (asks && outlook->changed == 0 && !outlook->at_least) {
    return Expected{.messages = 0};  // there is nothing to agree to
  }
  if (asks && !console.confirm(question(session, plan, words, *outlook))) {
    return Exit::failure("nothing was " + std::string(words.done));
  }
  return outlook->at_least ? Expected{} : Expected{.messages = outlook->changed};
}

}  // namespace sluice::cli
