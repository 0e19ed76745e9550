#include "host/cli/bulk_command.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "host/cli/filter_arguments.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/tariffs.hpp"
#include "host/cli/views/bulk_progress.hpp"
#include "host/cli/views/bulk_prompt.hpp"
#include "host/cli/views/message_view.hpp"

namespace sluice::cli {

namespace {

using State = operate::BulkRun::Step::State;

constexpr std::size_t kMaxLimit = 1'000'000'000;
constexpr double kMaxRate = 1'000'000;
// One transaction of the SQLite store, and one page of it.
constexpr std::size_t kSqliteBatch = 500;

OrExit<operate::BulkPlan> parse_plan(const BulkOrder& order, const Arguments& arguments) {
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(limit, arguments.count("limit", 0, kMaxLimit));
  SLUICE_TRY(rate, parse_rate(arguments));
  operate::BulkPlan plan;
  plan.work = order.work;
  plan.ids = message_ids(arguments);
  plan.half = order.dlq_only || arguments.has("dlq") ? queue::Half::dlq : queue::Half::standard;
  plan.this_half_only = arguments.has("dlq");
  plan.unconditional = order.takes_all && filter->empty() && plan.ids.empty();
  plan.any_state = order.any_state || (order.named_in_any_state && !plan.ids.empty());
  plan.filter = std::move(*filter);
  plan.force = arguments.has("force");
  plan.dry_run = arguments.has("dry-run");
  plan.limit = *limit;
  plan.rate = *rate;
  plan.consistent = arguments.has("consistent");
  plan.cursor = arguments.get("resume");
  return plan;
}

/// Whether it is said which messages are meant, and in one way.
Exit check_choice(const BulkOrder& order, const operate::BulkPlan& plan, const Arguments& arguments) {
  if (!plan.ids.empty()) {
    for (const char* const name : {"all", "resume"}) {
      if (arguments.has(name)) {
        return Exit::usage("an id and --" + std::string(name) + " exclude each other; give one");
      }
    }
    return Exit::ok();
  }
  if (order.takes_all || plan.filter.empty() == arguments.has("all")) {
    return Exit::ok();
  }
  return Exit::usage(arguments.has("all") ? "--all and a filter exclude each other; give one"
                                          : "say which: ID for one, --where, --older-than, --error or --error-like for "
                                            "some, or --all");
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
class Drive {
 public:
  Drive(operate::BulkRun& run, BulkReport& report, const QueueSession& session, Console& console,
        std::optional<std::uint64_t> expected)
      : run_(run),
        report_(report),
        session_(session),
        console_(console),
        progress_(session.clock().steady_now(), expected) {}

  Exit run() {
    const InterruptFlag interrupt;
    while (console_.writable()) {
      const auto step = run_.step();
      if (console_.output_is_terminal() && !step.outcomes.empty()) {
        console_.end_progress();
      }
      report_.add(step.outcomes);
      if (!step.outcomes.empty()) {
        show();
      }
      if (step.state == State::finished) {
        break;
      }
      if (step.state == State::failed) {
        return failed(step.error);
      }
      if (step.state == State::wait) {
        show();
        wait_until(step.until, session_.clock(), interrupt);
      }
      if (interrupt.raised()) {
        return {kExitInterrupted, "interrupted; " + report_.summary(run_.count()) + "; " + how_to_go_on(run_)};
      }
    }
    if (run_.count().failed > 0) {
      return Exit::failure(std::to_string(run_.count().failed) + " of " + std::to_string(run_.count().matched) +
                           " messages failed; the output says why");
    }
    return Exit::ok();
  }

 private:
  void show() {
    console_.flush();
    const std::string pace = progress_.text(run_.count(), session_.clock().steady_now());
    // On a terminal nothing comes between JSON, and between lines of text only what they do not show themselves.
    if (!console_.output_is_terminal() || (!report_.is_json() && !pace.empty())) {
      console_.progress(report_.summary(run_.count()) + pace);
    }
  }

  Exit failed(const Error& error) const {
    if (run_.count().seen > 0) {
      return Exit::failure(session_.explained(error) + "; " + report_.summary(run_.count()) + " before it; " +
                           how_to_go_on(run_));
    }
    const bool wrong_cursor = error.code() == ErrorCode::invalid && !run_.cursor().empty();
    return wrong_cursor ? Exit::usage("--resume: " + error.message()) : session_.failure(error);
  }

  operate::BulkRun& run_;
  BulkReport& report_;
  const QueueSession& session_;
  Console& console_;
  const BulkProgress progress_;
};

/// Changes the one message that was named, and says what became of it.
Exit change_one(QueueSession& session, const BulkOrder& order, operate::BulkPlan plan, Output output,
                Console& console) {
  operate::BulkRun run(session.oper(), session.clock(), std::move(plan));
  operate::BulkOutcome outcome;
  for (auto step = run.step(); step.state != State::finished; step = run.step()) {
    if (step.state == State::failed) {
      return session.failure(step.error);
    }
    if (!step.outcomes.empty()) {
      outcome = std::move(step.outcomes.front());
    }
  }
  if (outcome.fate == operate::BulkOutcome::Fate::done) {
    return show_changed(session, order, outcome, output, console);
  }
  if (outcome.error.code() == ErrorCode::not_found && order.absent_is_success) {
    console.note("there is no message " + outcome.id + "; nothing was " + std::string(order.words.done));
    return Exit::ok();
  }
  if (outcome.fate == operate::BulkOutcome::Fate::failed) {
    return session.failure(outcome.error);
  }
  const std::string mend = order.can_be_forced ? "; wait for its handler, or add --force" : "; wait for its handler";
  return Exit::failure("message " + outcome.id + " " + outcome.error.message() + (outcome.was_in_flight ? mend : ""));
}

}  // namespace

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

std::vector<Flag> choice_flags() { return joined({id_flag(), dlq_flag(), all_flag()}, bulk_flags()); }

std::vector<Flag> without_flag(std::vector<Flag> flags, std::string_view name) {
  flags.erase(std::remove_if(flags.begin(), flags.end(), [name](const Flag& flag) { return flag.name == name; }),
              flags.end());
  return flags;
}

Exit run_bulk(const BulkOrder& order, const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(plan, parse_plan(order, arguments));
  if (Exit wrong = check_choice(order, *plan, arguments); wrong.code() != kExitOk) {
    return wrong;
  }
  SLUICE_TRY(session, QueueSession::open(arguments));
  plan->tariff = tariff_of(session->host(), session->queue());
  if (session->place().in_sqlite()) {
    plan->page = kSqliteBatch;
    plan->batch = kSqliteBatch;
  }
  if (plan->ids.size() == 1 && !plan->dry_run) {
    return change_one(*session, order, std::move(*plan), *output, console);
  }
  SLUICE_TRY(expected, agree(*session, *plan, order.words, arguments, console));
  const queue::QueueAddress address{session->queue(), plan->half};
  BulkReport report(order.words, plan->dry_run, *output, console);
  operate::BulkRun run(session->oper(), session->clock(), std::move(*plan));
  Exit end = Drive(run, report, *session, console, expected->messages).run();
  console.end_progress();
  if ((end.code() == kExitFailure || end.code() == kExitUsage) && run.count().seen == 0) {
    return end;  // it never began
  }
  report.finish(address, run, session->cost());
  return end;
}

}  // namespace sluice::cli
