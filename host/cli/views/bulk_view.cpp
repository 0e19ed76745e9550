#include "host/cli/views/bulk_view.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "base/text/decimal.hpp"
#include "base/text/visible.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

using Fate = operate::BulkOutcome::Fate;

// A run stops when nothing works; these are failures in between.
constexpr std::size_t kMaxFailures = 10'000;
// What adding up shares of a request may be off by.
constexpr double kRounding = 1e-6;
// Before, a rate is that of a single batch.
constexpr Duration kFirstRate = std::chrono::milliseconds(500);

/// "moved_to_the_front".
std::string key_of(std::string_view words) {
  std::string key(words);
  std::replace_if(
      key.begin(), key.end(), [](char byte) { return byte == ' ' || byte == '-'; }, '_');
  return key;
}

/// What a dry run cost, and what the run that it stands for would.
struct Estimate {
  std::uint64_t requests = 0;
  double read_units = 0;
  double write_units = 0;
};

Estimate estimate(const operate::BulkRun& run, const runtime::DynamoDbCost& spent) {
  return {.requests = spent.requests + static_cast<std::uint64_t>(std::ceil(run.planned_cost().requests - kRounding)),
          .read_units = spent.read_units + run.planned_cost().read_units,
          .write_units = run.planned_cost().write_units};
}

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

std::string half_name(const QueueSession& session, queue::Half half) {
  return (half == queue::Half::dlq ? "the dead-letter half of queue " : "queue ") + session.queue();
}

/// Where everything matches, the counts of the half say it.
OrExit<Outlook> count_half(QueueSession& session, const operate::BulkPlan& plan) {
  SLUICE_TRY(stats, session.checked(session.oper().stats(
                        {.half = plan.half, .consistent = plan.consistent, .exact = true}, session.deadline())));
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
                     (outlook.at_least ? "at least " : "") + counted(outlook.changed, "message") + " of " +
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
  const std::string which = plan.limit > 0        ? " at most " + counted(plan.limit, "message") + " of "
                            : plan.filter.empty() ? std::string(" every message of ")
                                                  : std::string(" messages of ");
  return Exit::usage("this would " + std::string(words.verb) + which + half_name(session, plan.half) +
                     " and there is no terminal to ask on; add --yes to confirm, or --dry-run to see which");
}

}  // namespace

BulkReport::BulkReport(BulkWords words, bool dry_run, Output output, Console& console)
    : words_(words), dry_run_(dry_run), output_(output), console_(console) {
  if (output_ == Output::json) {
    json_.begin_object();
    json_.key(dry_run_ ? "matches" : "successes");
  }
}

std::string BulkReport::summary(const operate::BulkCount& count) const {
  std::string text = (dry_run_ ? "would " + std::string(words_.verb) + " " : std::string()) +
                     std::to_string(count.done) + (dry_run_ ? std::string() : " " + std::string(words_.done));
  text += ", " + std::to_string(count.skipped) + " skipped";
  return count.failed > 0 ? text + ", " + std::to_string(count.failed) + " failed" : text;
}

void BulkReport::add(const std::vector<operate::BulkOutcome>& outcomes) {
  for (const operate::BulkOutcome& outcome : outcomes) {
    if (output_ == Output::text) {
      add_line(outcome);
    } else if (outcome.fate == Fate::done || outcome.fate == Fate::planned) {
      add_id(outcome.id);
    } else if (outcome.fate == Fate::failed && failures_.size() < kMaxFailures) {
      failures_.push_back(outcome);
    } else if (outcome.fate == Fate::skipped && skipped_.size() < kMaxFailures) {
      skipped_.push_back(outcome);
    }
  }
  if (output_ == Output::json && any_id_) {
    console_.out(json_.take_text());
  }
}

void BulkReport::add_id(const std::string& id) {
  if (!any_id_) {
    json_.begin_array();
    any_id_ = true;
  }
  json_.value(id);
}

void BulkReport::add_line(const operate::BulkOutcome& outcome) {
  std::string line;
  switch (outcome.fate) {
    case Fate::done:
      line = words_.done;
      break;
    case Fate::planned:
      line = "would " + std::string(words_.verb);
      break;
    case Fate::skipped:
      line = "skipped";
      break;
    case Fate::failed:
      line = "failed";
      break;
  }
  line += "  " + visible(outcome.id);
  if (!outcome.error.message().empty()) {
    line += "  " + visible(outcome.error.message());
  } else if (outcome.was_in_flight) {
    line += outcome.fate == Fate::planned ? "  is in flight" : "  was in flight";
  }
  console_.out(line + "\n");
}

void BulkReport::write_reasons(std::string_view name, const std::vector<operate::BulkOutcome>& outcomes) {
  put_members(json_, name, array_of(outcomes, [](JsonWriter& json, const operate::BulkOutcome& outcome) {
                put_object(json, "ID", outcome.id, "Error", outcome.error.message());
              }));
}

void BulkReport::write_cost(const operate::BulkRun& run, const runtime::DynamoDbCost& spent) {
  const Estimate would = estimate(run, spent);
  put_object(json_, "requests", would.requests, "read_units", figure(would.read_units, 1), "write_units",
             figure(would.write_units, 1), "spent_requests", spent.requests, "spent_read_units",
             figure(spent.read_units, 1));
}

void BulkReport::finish(const queue::QueueAddress& address, const operate::BulkRun& run,
                        const std::optional<runtime::DynamoDbCost>& spent) {
  const operate::BulkCount& count = run.count();
  if (output_ == Output::text) {
    console_.out(summary(count) + "\n");
    if (dry_run_ && spent) {
      const Estimate would = estimate(run, *spent);
      console_.out("cost: " + std::to_string(would.requests) + " requests, " + fixed_decimal(would.read_units, 1) +
                   " read units, " + fixed_decimal(would.write_units, 1) + " write units; this look has cost " +
                   std::to_string(spent->requests) + " requests and " + fixed_decimal(spent->read_units, 1) +
                   " read units\n");
    }
    return;
  }
  if (!any_id_) {
    json_.begin_array();
  }
  json_.end_array();
  if (!dry_run_) {
    write_reasons("failures", failures_);
  }
  put_members(json_, "queue", address.queue, "queue_type", queue::to_string(address.half));
  if (dry_run_) {
    put_members(json_, "dry_run", true, "matched", count.done);
  } else {
    json_.member(key_of(words_.done), count.done);
  }
  json_.member("skipped", count.skipped);
  if (!skipped_.empty()) {
    write_reasons("skips", skipped_);
  }
  if (!dry_run_) {
    json_.member("failed", count.failed);
  }
  if (!run.complete() && !run.cursor().empty()) {
    json_.member("resume", run.cursor());
  }
  if (dry_run_) {
    json_.key("cost");
    spent ? write_cost(run, *spent) : json_.null();
  }
  json_.end_object();
  console_.out(json_.take_line());
}

std::string BulkProgress::text(const operate::BulkCount& count, SteadyTime now) const {
  const std::uint64_t through = count.done + count.failed;
  if (now - began_ < kFirstRate || through == 0) {
    return {};
  }
  const double rate = static_cast<double>(through) / std::chrono::duration<double>(now - began_).count();
  std::string text = ", " + fixed_decimal(rate, rate < 10 ? 1 : 0) + "/s";
  if (expected_ && through < *expected_) {
    const auto left =
        std::chrono::seconds(static_cast<std::int64_t>(std::ceil(static_cast<double>(*expected_ - through) / rate)));
    text += ", " + short_duration(left) + " left";
  }
  return text;
}

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
