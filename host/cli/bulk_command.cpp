#include "host/cli/bulk_command.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "host/cli/filter_arguments.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {

namespace {

using State = operate::BulkRun::Step::State;

constexpr std::size_t kMaxLimit = 1'000'000'000;
constexpr double kMaxRate = 1'000'000;
// One transaction of the SQLite store, and one page of it.
constexpr std::size_t kSqliteBatch = 500;

std::string half_name(const QueueSession& session, queue::Half half) {
  return (half == queue::Half::dlq ? "the dead-letter half of queue " : "queue ") + session.queue();
}

/// "100/s", "30/m" or "100", as changes a second.
OrExit<double> parse_rate(const Arguments& arguments) {
  if (!arguments.has("rate")) {
    return 0.0;
  }
  std::string text = arguments.get("rate");
  const Exit wrong = Exit::usage("--rate " + text + ": write a number of messages a second, such as 100/s, or 30/m");
  double seconds = 1;
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    const std::string unit = text.substr(slash + 1);
    if (unit != "s" && unit != "m" && unit != "h") {
      return wrong;
    }
    seconds = unit == "s" ? 1 : unit == "m" ? 60 : 3600;
    text.resize(slash);
  }
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string::npos) {
    return wrong;
  }
  char* end = nullptr;
  const double count = std::strtod(text.c_str(), &end);
  if (*end != '\0' || count <= 0 || count / seconds > kMaxRate) {
    return wrong;
  }
  return count / seconds;
}

OrExit<operate::BulkPlan> parse_plan(BulkOrder order, const Arguments& arguments) {
  auto filter = parse_filter(arguments);
  if (filter.has_error()) {
    return filter.error();
  }
  const auto limit = arguments.count("limit", 0, kMaxLimit);
  if (limit.has_error()) {
    return limit.error();
  }
  const auto rate = parse_rate(arguments);
  if (rate.has_error()) {
    return rate.error();
  }
  operate::BulkPlan plan;
  plan.work = std::move(order.work);
  plan.unconditional = order.takes_all && filter->empty();
  plan.filter = std::move(*filter);
  plan.force = arguments.has("force");
  plan.dry_run = arguments.has("dry-run");
  plan.limit = *limit;
  plan.rate = *rate;
  plan.consistent = arguments.has("consistent");
  plan.cursor = arguments.get("resume");
  return plan;
}

/// "message(s) of the dead-letter half of queue orders that match", for a question.
OrExit<std::string> target(QueueSession& session, const operate::BulkPlan& plan) {
  const std::string messages = " messages of " + half_name(session, plan.half);
  if (!plan.filter.empty()) {
    return "the" + messages + " that match";
  }
  const auto stats = session.oper().stats({.half = plan.half, .consistent = plan.consistent}, session.deadline());
  if (stats.has_error()) {
    return session.failure(stats.error());
  }
  return "all " + std::to_string(stats->total()) + messages;
}

/// Exit 0 when the run may begin.
Exit agree(QueueSession& session, const operate::BulkPlan& plan, BulkWords words, const Arguments& arguments,
           Console& console) {
  if (plan.dry_run || arguments.has("yes")) {
    return Exit::ok();
  }
  if (!console.interactive()) {
    return Exit::usage("this would " + std::string(words.verb) +
                       (plan.filter.empty() ? " every message of " : " messages of ") + half_name(session, plan.half) +
                       " and there is no terminal to ask on; add --yes to confirm, or --dry-run to see which");
  }
  const auto what = target(session, plan);
  if (what.has_error()) {
    return what.error();
  }
  std::string question = std::string(words.verb) + " " + *what + "?";
  question.front() = static_cast<char>(question.front() - 'a' + 'A');
  return console.confirm(question) ? Exit::ok() : Exit::failure("nothing was " + std::string(words.done));
}

std::string how_to_go_on(const operate::BulkRun& run) {
  return run.cursor().empty() ? "the same command goes on" : "go on with --resume '" + run.cursor() + "'";
}

/// Waits until then, or until somebody interrupts.
void wait_until(SteadyTime until, const Clock& clock, const InterruptFlag& interrupt) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.steady_now());
  pollfd watched{interrupt.descriptor(), POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000)));
}

/// Steps until the end, a failure, Ctrl-C, or nobody reads.
Exit drive(operate::BulkRun& run, BulkReport& report, const QueueSession& session, Console& console) {
  const InterruptFlag interrupt;
  while (console.writable()) {
    const auto step = run.step();
    report.add(step.outcomes);
    if (!step.outcomes.empty()) {
      console.flush();
      if (!console.output_is_terminal()) {  // there the output itself shows how far it is
        console.progress(report.summary(run.count()));
      }
    }
    if (step.state == State::finished) {
      break;
    }
    if (step.state == State::failed && run.count().seen == 0) {
      const bool wrong_cursor = step.error.code() == ErrorCode::invalid && !run.cursor().empty();
      return wrong_cursor ? Exit::usage("--resume: " + step.error.message()) : session.failure(step.error);
    }
    if (step.state == State::failed) {
      return Exit::failure(session.explained(step.error) + "; " + report.summary(run.count()) + " before it; " +
                           how_to_go_on(run));
    }
    if (step.state == State::wait) {
      wait_until(step.until, session.clock(), interrupt);
    }
    if (interrupt.raised()) {
      return {kExitInterrupted, "interrupted; " + report.summary(run.count()) + "; " + how_to_go_on(run)};
    }
  }
  return run.count().failed == 0
             ? Exit::ok()
             : Exit::failure(std::to_string(run.count().failed) + " of " + std::to_string(run.count().matched) +
                             " messages failed; the output says why");
}

}  // namespace

Flag all_flag() { return {.name = "all", .value = {}, .help = "every message, where no filter chooses"}; }

Flag consistent_flag() {
  return {.name = "consistent", .value = {}, .help = "read the whole table, not its index, which lags behind writes"};
}

Flag dlq_flag() { return {.name = "dlq", .value = {}, .help = "its dead-letter half instead"}; }

std::vector<Flag> bulk_flags() {
  return joined(
      filter_flags(),
      {{.name = "limit", .value = "N", .help = "at most N messages"},
       {.name = "dry-run", .value = {}, .help = "change nothing; list what would be, and its cost in DynamoDB's units"},
       {.name = "rate", .value = "N/s", .help = "at most N messages a second (/m: a minute)"},
       {.name = "force", .value = {}, .help = "messages in flight too; their handlers lose them"},
       {.name = "yes", .value = {}, .help = "do not ask"},
       consistent_flag(),
       {.name = "resume", .value = "CURSOR", .help = "go on where an interrupted run has said it was"}});
}

std::string bulk_flag_given(const Arguments& arguments) {
  for (const char* const name :
       {"all", "where", "older-than", "error-like", "limit", "dry-run", "rate", "yes", "consistent", "resume"}) {
    if (arguments.has(name)) {
      return name;
    }
  }
  return {};
}

Exit run_bulk(BulkOrder order, const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  const BulkWords words = order.words;
  const bool takes_all = order.takes_all;
  const auto half = order.dlq_only || arguments.has("dlq") ? queue::Half::dlq : queue::Half::standard;
  auto plan = parse_plan(std::move(order), arguments);
  if (plan.has_error()) {
    return plan.error();
  }
  if (!takes_all && plan->filter.empty() != arguments.has("all")) {
    return Exit::usage(arguments.has("all")
                           ? "--all and a filter exclude each other; give one"
                           : "say which: --id ID for one, --where, --older-than or --error-like for some, or --all");
  }
  auto session = QueueSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  plan->half = half;
  if (session->place().in_sqlite()) {
    plan->page = kSqliteBatch;
    plan->batch = kSqliteBatch;
  }
  if (Exit refused = agree(*session, *plan, words, arguments, console); refused.code() != kExitOk) {
    return refused;
  }
  BulkReport report(words, plan->dry_run, *output, console);
  operate::BulkRun run(session->oper(), session->clock(), std::move(*plan));
  const Exit end = drive(run, report, *session, console);
  console.end_progress();
  if ((end.code() == kExitFailure || end.code() == kExitUsage) && run.count().seen == 0) {
    return end;  // it never began
  }
  report.finish({session->queue(), half}, run, session->cost());
  return end;
}

}  // namespace sluice::cli
