#include "host/cli/commands/bulk.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/shell_word.hpp"
#include "base/text/decimal.hpp"
#include "base/text/joined.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/visible.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/queue/message.hpp"

namespace sluice::cli {

namespace {

using State = operate::BulkRun::Step::State;

using Fate = operate::BulkOutcome::Fate;

// On a terminal; --ids shows the others.
constexpr std::uint64_t kShownFailures = 10;
// A run stops when nothing works; these are failures in between.
constexpr std::size_t kMaxFailures = 10'000;
// Before, a rate is that of a single batch.
constexpr Duration kFirstRate = std::chrono::milliseconds(500);

/// "moved_to_the_front".
std::string key_of(std::string_view words) {
  std::string key(words);
  std::replace_if(
      key.begin(), key.end(), [](char byte) { return byte == ' ' || byte == '-'; }, '_');
  return key;
}

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

/// "20s"; no more than 64 bits hold.
std::string time_for(double seconds) {
  constexpr double kLongest = 9e9;
  return short_duration(std::chrono::seconds(static_cast<std::int64_t>(std::min(std::ceil(seconds), kLongest))));
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
    text += ", in " + time_for(static_cast<double>(outlook.changed) / plan.rate);
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

/// How many messages a run will change, as far as somebody has counted.
using Expected = std::optional<std::uint64_t>;

/// Asks whether to do what the plan says, and says in numbers what that is: the limit, what a filter matches (it is
/// counted first, for a few seconds at most), what stays because it is in flight. Without a terminal it wants --yes.
/// Nothing is asked for a dry run, for --yes, and for messages that are named one by one.
OrExit<Expected> agree(QueueSession& session, const operate::BulkPlan& plan, BulkWords words,
                       const Arguments& arguments, Console& console) {
  if (plan.dry_run || !plan.ids.empty()) {
    return Expected();
  }
  const bool asks = !arguments.has("yes");
  if (asks && !console.interactive()) {
    return nobody_to_ask(session, plan, words);
  }
  // Unasked, nobody waits for a count that costs reads.
  if (!asks && (session.place().looks_are_billed() || !plan.filter.empty())) {
    return Expected();
  }
  SLUICE_TRY(outlook, plan.filter.empty() ? count_half(session, plan) : count_matches(session, plan));
  SLUICE_PASS_ON(confirmed(arguments, console, question(session, plan, words, *outlook), words.done));
  return outlook->at_least ? Expected() : Expected(outlook->changed);
}

constexpr std::size_t kMaxLimit = 1'000'000'000;
// One transaction of a store that is no table in DynamoDB, and one page of it.
constexpr std::size_t kUnbilledBatch = 500;

OrExit<operate::BulkPlan> parse_plan(const BulkOrder& order, operate::BulkWork work, const Arguments& arguments) {
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(limit, arguments.count("limit", 0, kMaxLimit));
  SLUICE_TRY(rate, parse_rate(arguments));
  operate::BulkPlan plan;
  plan.work = std::move(work);
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
  if (const auto resumed = plan.resume_at(arguments.get("resume")); !resumed) {
    return Exit::usage("--resume \"" + arguments.get("resume") + "\" " + resumed.error().message());
  }
  return plan;
}

/// Whether it is said which messages are meant, and in one way.
OrExit<void> check_choice(const BulkOrder& order, const operate::BulkPlan& plan, const Arguments& arguments) {
  if (!plan.ids.empty()) {
    for (const char* const name : {"all", "resume"}) {
      if (arguments.has(name)) {
        return Exit::usage("an id and --" + std::string(name) + " exclude each other; give one" +
                           (plan.ids.size() > 1 ? "" : ", and " + plan.ids.front() + " is taken for an id") +
                           (arguments.plain_id().empty() ? "" : ", as nobody knows a queue of that name"));
      }
    }
    return {};
  }
  if (order.takes_all || plan.filter.empty() == arguments.has("all")) {
    return {};
  }
  return Exit::usage(arguments.has("all") ? "--all and a filter exclude each other; give one"
                                          : "say which: ID for one, --where, --older-than, --error or --error-like for "
                                            "some, or --all");
}

/// An edit for the audit: of a body, which may be secret, the place and how much is set there.
std::string set_text(const std::string& text) {
  const std::size_t end = text.find('=');
  return "--set " + (text.starts_with("data")
                         ? text.substr(0, end) + " (" + counted(text.size() - end - 1, "byte") + ")"
                         : shell_word(text));
}

/// What is about to be done, for the audit.
fleet::AuditEntry deed_of(const operate::BulkPlan& plan, const Arguments& arguments, const QueueSession& session) {
  fleet::AuditEntry deed{.what = std::string(arguments.command()->name) + " ", .reason = arguments.get("reason")};
  deed.what += plan.ids.empty()       ? half_name(session, plan.half)
               : plan.ids.size() == 1 ? "message " + plan.ids.front() + " of queue " + session.queue()
                                      : counted(plan.ids.size(), "message") + " of queue " + session.queue();
  std::vector<std::string> which;
  for (const char* const name : {"where", "older-than", "error", "error-like", "for", "limit", "rate"}) {
    if (arguments.has(name)) {
      which.push_back("--" + std::string(name) + " " + shell_word(arguments.get(name)));
    }
  }
  for (const char* const name : {"all", "force", "resume"}) {
    if (arguments.has(name)) {
      which.push_back("--" + std::string(name));
    }
  }
  for (const std::string& text : arguments.all("set")) {
    which.push_back(set_text(text));
  }
  for (const std::string& text : arguments.all("unset")) {
    which.push_back("--unset " + text);
  }
  if (plan.ids.size() > 1) {
    which.insert(which.end(), plan.ids.begin(), plan.ids.end());
  }
  deed.filter = sluice::joined(which, " ");
  return deed;
}

operate::DeedCount deed_count(const operate::BulkCount& count) { return {count.done, count.skipped, count.failed}; }

/// Steps a bulk run until the end, a failure, Ctrl-C, or nobody reads, and shows it as it goes: one JSON object with
/// DynamoMQ's lists first, a line for each message, or counts and the first failures. Ids go out as they come and are
/// not kept. For one use, on one thread.
class Drive {
 public:
  /// `lists`: text has a line for each message. The references outlive it.
  Drive(BulkWords words, const operate::BulkPlan& plan, bool lists, Expected expected, QueueSession& session,
        Console& console)
      : words_(words),
        plan_(plan),
        lists_(lists),
        session_(session),
        console_(console),
        run_(session.oper(), session.clock(), plan),
        progress_(session.clock().steady_now(), expected),
        ids_(plan.dry_run ? "matches" : "successes", console) {}

  Exit run() {
    Exit end = drive();
    console_.end_progress();
    session_.finish_deed(deed_count(run_.count()), stopped_by_);
    const bool never_began = (end.code() == kExitFailure || end.code() == kExitUsage) && run_.count().seen == 0;
    if (!never_began) {
      console_.shows_text() ? finish_text() : finish_json();
    }
    return end;
  }

 private:
  using Outcomes = std::vector<operate::BulkOutcome>;

  Exit drive() {
    const InterruptFlag interrupt;
    stopped_by_ = "nobody reads its output";
    while (console_.writable()) {
      const auto step = run_.step();
      add(step.outcomes);
      if (!step.outcomes.empty()) {
        show_progress();
      }
      if (step.state == State::finished) {
        stopped_by_.clear();
        break;
      }
      if (step.state == State::failed) {
        stopped_by_ = step.error.message();
        return failed(step.error);
      }
      if (step.state == State::wait) {
        show_progress();
        interrupt.wait(step.until - session_.clock().steady_now());
      }
      if (interrupt.raised()) {
        stopped_by_ = "interrupted";
        return {kExitInterrupted, "interrupted; " + summary() + "; " + how_to_go_on()};
      }
    }
    if (run_.count().failed > 0) {
      return Exit::failure(std::to_string(run_.count().failed) + " of " + std::to_string(run_.count().matched) +
                           " messages failed; the output says why");
    }
    return Exit::ok();
  }

  void add(const Outcomes& outcomes) {
    for (const operate::BulkOutcome& outcome : outcomes) {
      if (console_.shows_text()) {
        if (lists_ || (outcome.fate == Fate::failed && shown_failures_++ < kShownFailures)) {
          add_line(outcome);
        }
      } else if (outcome.fate == Fate::done || outcome.fate == Fate::planned) {
        ids_.add([&outcome](JsonWriter& json) { json.value(outcome.id); });
      } else if (Outcomes& kept = outcome.fate == Fate::failed ? failures_ : skipped_; kept.size() < kMaxFailures) {
        kept.push_back(outcome);
      }
    }
    ids_.flush();
  }

  void add_line(const operate::BulkOutcome& outcome) {
    if (console_.output_is_terminal()) {
      console_.end_progress();
    }
    const std::string fate = outcome.fate == Fate::done      ? std::string(words_.done)
                             : outcome.fate == Fate::planned ? "would " + std::string(words_.verb)
                             : outcome.fate == Fate::skipped ? "skipped"
                                                             : "failed";
    std::string line = fate + "  " + visible(outcome.id);
    if (!outcome.error.message().empty()) {
      line += "  " + visible(outcome.error.message());
    } else if (outcome.was_in_flight) {
      line += outcome.fate == Fate::planned ? "  is in flight" : "  was in flight";
    }
    console_.out(line + "\n");
  }

  void show_progress() {
    console_.flush();
    const std::string pace = progress_.text(run_.count().done + run_.count().failed, session_.clock().steady_now());
    // On a terminal nothing comes between JSON, and between lines of text only what they do not show themselves.
    if (!console_.output_is_terminal() || (console_.shows_text() && (!lists_ || !pace.empty()))) {
      console_.progress(summary() + pace);
    }
  }

  Exit failed(const Error& error) const {
    if (run_.count().seen > 0) {
      return Exit::failure(session_.explained(error) + "; " + summary() + " before it; " + how_to_go_on());
    }
    const bool wrong_cursor = error.code() == ErrorCode::invalid && !plan_.cursor.empty();
    return wrong_cursor ? Exit::usage("--resume: " + error.message()) : session_.failure(error);
  }

  /// "12 removed, 3 skipped, 1 failed".
  std::string summary() const {
    const operate::BulkCount& count = run_.count();
    std::string text = plan_.dry_run ? "would " + std::string(words_.verb) + " " + std::to_string(count.done)
                                     : std::to_string(count.done) + " " + std::string(words_.done);
    text += ", " + std::to_string(count.skipped) + " skipped";
    return count.failed > 0 ? text + ", " + std::to_string(count.failed) + " failed" : text;
  }

  std::string how_to_go_on() const {
    const std::string token = run_.resume_token();
    return token.empty() ? "the same command goes on" : "go on with --resume '" + token + "'";
  }

  void finish_text() const {
    const bool more = !lists_ && (shown_failures_ > kShownFailures || (plan_.dry_run && run_.count().done > 0));
    console_.out(summary() + (more ? "; --ids lists them" : "") + "\n");
    if (const auto spent = session_.cost(); plan_.dry_run && spent) {
      const cost::Spent would = with_planned(*spent, run_.planned_cost());
      console_.out("cost: " + fixed_decimal(would.requests, 0) + " requests, " + fixed_decimal(would.read_units, 1) +
                   " read units, " + fixed_decimal(would.write_units, 1) + " write units; this look has cost " +
                   fixed_decimal(spent->requests, 0) + " requests and " + fixed_decimal(spent->read_units, 1) +
                   " read units\n");
    }
  }

  /// The counts, the place where a run that is not complete goes on, and after a dry run what it would have cost.
  void finish_json() {
    const auto reasons = [](const Outcomes& outcomes) {
      return array_of(outcomes, [](JsonWriter& json, const operate::BulkOutcome& outcome) {
        put_object(json, "ID", outcome.id, "Error", outcome.error.message());
      });
    };
    const operate::BulkCount& count = run_.count();
    const bool dry = plan_.dry_run;
    const bool of_one_half = plan_.ids.empty() || plan_.half == queue::Half::dlq;  // those that are named lie in either
    ids_.finish(member_if(!dry, "failures", reasons(failures_)), "queue", session_.queue(), "queue_type",
                or_null(of_one_half, queue::to_string(plan_.half)), member_if(dry, "dry_run", true),
                dry ? "matched" : key_of(words_.done), count.done, "skipped", count.skipped,
                member_if(!skipped_.empty(), "skips", reasons(skipped_)), member_if(!dry, "failed", count.failed),
                member_if(!run_.complete() && !run_.resume_token().empty(), "resume", run_.resume_token()),
                member_if(dry, "cost", [this](JsonWriter& json) { write_cost(json); }));
  }

  void write_cost(JsonWriter& json) const {
    const auto spent = session_.cost();
    if (!spent) {
      return json.null();
    }
    const cost::Spent would = with_planned(*spent, run_.planned_cost());
    put_object(json, "requests", figure(would.requests, 0), "read_units", figure(would.read_units, 1), "write_units",
               figure(would.write_units, 1), "spent_requests", figure(spent->requests, 0), "spent_read_units",
               figure(spent->read_units, 1));
  }

  const BulkWords words_;
  const operate::BulkPlan& plan_;
  const bool lists_;
  QueueSession& session_;
  Console& console_;
  operate::BulkRun run_;
  const BulkProgress progress_;
  JsonList ids_;
  std::uint64_t shown_failures_ = 0;  ///< and those that would have been the next ones
  Outcomes failures_;
  Outcomes skipped_;
  std::string stopped_by_;  ///< for the audit
};

void say(const BulkOrder& order, const std::string& id, Console& console) {
  if (console.shows_text()) {
    console.out(std::string(order.words.done) + "  " + visible(id) + "\n");
  } else if (!order.shows_message) {
    console.out(json_line("id", id, "result", order.words.done));
  }
}

/// Says what became of the one message that a command was to change: as text a line and the message, as JSON the
/// message as it is now, or where the command does not show it an object with its id and the result. Warns where
/// somebody was at work with it.
Exit show_changed(QueueSession& session, const BulkOrder& order, const operate::BulkOutcome& outcome,
                  Console& console) {
  if (outcome.was_in_flight && !order.any_state) {
    console.note("warning: message " + outcome.id +
                 " was in flight; whoever works on it has lost it, and what he comes to counts for nothing");
  }
  say(order, outcome.id, console);
  if (!order.shows_message) {
    return Exit::ok();
  }
  const auto changed = session.oper().get(outcome.id, session.deadline());
  if (changed.has_error() && changed.error().code() == ErrorCode::not_found) {
    // The change took effect; a host that is at work was quicker than this look.
    console.note("message " + outcome.id + " is gone again: it has been worked off meanwhile");
    return Exit::ok();
  }
  if (changed.has_error()) {
    return session.failure(changed.error());
  }
  if (console.shows_text()) {
    console.out("\n");
  }
  return show_message(*changed, session.clock().wall_now(), console);
}

/// Changes the one message that was named, and says what became of it.
Exit change_one(QueueSession& session, const BulkOrder& order, operate::BulkPlan plan, const Arguments& arguments,
                Console& console) {
  operate::BulkRun run(session.oper(), session.clock(), std::move(plan));
  operate::BulkOutcome outcome;
  for (auto step = run.step(); step.state != State::finished; step = run.step()) {
    if (step.state == State::failed) {
      session.finish_deed(deed_count(run.count()), step.error.message());
      return session.failure(step.error);
    }
    if (!step.outcomes.empty()) {
      outcome = std::move(step.outcomes.front());
    }
  }
  session.finish_deed(deed_count(run.count()));
  if (outcome.fate == operate::BulkOutcome::Fate::done) {
    return show_changed(session, order, outcome, console);
  }
  if (outcome.fate == operate::BulkOutcome::Fate::failed) {
    return session.failure(outcome.error);
  }
  const std::string mend = arguments.command()->flag("force") == nullptr ? "; wait for its handler"
                                                                         : "; wait for its handler, or add --force";
  return Exit::failure("message " + outcome.id + " " + outcome.error.message() + (outcome.was_in_flight ? mend : ""));
}

/// What is done to each message.
OrExit<queue::Change> change_of(queue::ChangeAction action, const Arguments& arguments) {
  queue::Change change{.id = {}, .action = action};
  if (action == queue::ChangeAction::delay) {
    SLUICE_TRY(span, arguments.duration("for", Duration{}));
    change.after = *span;
  }
  if (action == queue::ChangeAction::dead_letter && arguments.has("reason")) {
    change.failure.error = arguments.get("reason");
    change.failure.failed_at = SystemClock().wall_now();
  }
  return change;
}

constexpr Flag kAllFlag{"all", {}, "every message, where no filter chooses"};

/// The filter's flags, and --limit, --dry-run, --ids, --rate, --yes, --force, --resume and --reason.
std::vector<Flag> bulk_flags() {
  return joined(
      filter_flags(),
      {{"limit", "N", "at most N messages"},
       {"dry-run", {}, "change nothing; say what would be, and its cost in DynamoDB's units"},
       kIdsFlag,
       kRateFlag,
       {"force", {}, "messages in flight too; their handlers lose them"},
       kYesFlag,
       kConsistentFlag,
       filled({"resume", "CURSOR", "go on where an interrupted run has said it was, with the rest of its --limit"}),
       kReasonFlag});
}

/// Runs a command that does it.
auto bulk(BulkOrder order) {
  return [order](const Arguments& arguments, Console& console) -> Exit {
    SLUICE_TRY(change, change_of(order.action, arguments));
    return run_bulk(order, std::move(*change), arguments, console);
  };
}

}  // namespace

double BulkProgress::rate(std::uint64_t through, SteadyTime now) const {
  const std::chrono::duration<double> took = now - began_;
  return took < kFirstRate ? 0 : static_cast<double>(through) / took.count();
}

std::string BulkProgress::text(std::uint64_t through, SteadyTime now) const {
  const double per_second = rate(through, now);
  if (per_second <= 0) {
    return {};
  }
  std::string text = ", " + fixed_decimal(per_second, per_second < 10 ? 1 : 0) + "/s";
  if (expected_ && through < *expected_) {
    text += ", " + time_for(static_cast<double>(*expected_ - through) / per_second) + " left";
  }
  return text;
}

cost::Spent with_planned(cost::Spent spent, const cost::Spent& planned) {
  constexpr double kRounding = 1e-6;  // what adding up shares of a request may be off by
  spent += planned;
  spent.requests = std::ceil(spent.requests - kRounding);
  return spent;
}

std::vector<Flag> choice_flags() { return joined({kIdFlag, kDlqFlag, kAllFlag}, bulk_flags()); }

Exit run_bulk(const BulkOrder& order, operate::BulkWork work, const Arguments& arguments, Console& console) {
  SLUICE_TRY(plan, parse_plan(order, std::move(work), arguments));
  SLUICE_PASS_ON(check_choice(order, *plan, arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  plan->tariff = tariff_of(session->host(), session->queue());
  if (!session->place().looks_are_billed()) {
    plan->page = kUnbilledBatch;
    plan->batch = kUnbilledBatch;
  }
  if (!plan->unconditional) {
    SLUICE_TRY(at_work, at_work_as_hosts_tell(*session, arguments));
    plan->at_work = std::move(*at_work);
  }
  session->oper().begin(deed_of(*plan, arguments, *session));
  if (plan->ids.size() == 1 && !plan->dry_run) {
    return change_one(*session, order, std::move(*plan), arguments, console);
  }
  SLUICE_TRY(expected, agree(*session, *plan, order.words, arguments, console));
  // Of messages that were named each one matters.
  const bool lists = !plan->ids.empty() || lists_ids(arguments, console);
  return Drive(order.words, *plan, lists, *expected, *session, console).run();
}

std::vector<Command> bulk_commands() {
  return {
      {
          .name = "purge",
          .summary = "Remove every message of a queue",
          .usage = "[QUEUE] [ID... | FILTER] [--dlq] [--yes] [OPTION]...",
          .description =
              "Asks first when there is a terminal, and wants --yes when there is none. Messages in flight go too; "
              "their handlers' outcomes are then lost. With a filter only what matches goes, and what is in flight "
              "stays unless there is --force. What is sent meanwhile stays, and so does what moves to the other half "
              "before its turn. On DynamoDB it sees what the index shows, which lags behind writes, by seconds at "
              "worst; --consistent reads the whole table instead. With IDs it removes these alone and asks nothing, "
              "as `sluice delete` does.\n\n"
              "Prints a JSON object with the ids and counts. Ctrl-C ends it between two batches and says how to go on.",
          .flags = with_store_flags(joined({kIdFlag, kDlqFlag}, bulk_flags())),
          .examples = "sluice purge orders --dlq --yes\n"
                      "sluice purge orders --dlq --older-than 30d --dry-run\n"
                      "sluice purge orders --where 'data.type = \"test\"' --rate 100/s --yes",
          .run = bulk({.words = {.verb = "remove", .done = "removed"},
                       .action = queue::ChangeAction::remove,
                       .takes_all = true,
                       .named_in_any_state = true,
                       .shows_message = false}),
      },
      {
          .name = "cancel",
          .summary = "Remove messages that no handler works on",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--dlq] [OPTION]...",
          .description =
              "For messages that wait or are delayed. One in flight is left alone, and so is one that a handler takes "
              "at this moment; for a message that is named by its ID the exit code is then 1.",
          .flags = with_store_flags(without_flag(choice_flags(), "force")),
          .examples = "sluice cancel orders A-101",
          .run = bulk({.words = {.verb = "cancel", .done = "canceled"},
                       .action = queue::ChangeAction::remove,
                       .shows_message = false}),
      },
      {
          .name = "delay",
          .summary = "Put messages off",
          .usage = "[QUEUE] (ID... | FILTER | --all) --for TIME [--dlq] [OPTION]...",
          .description =
              "They are not due before that time, as if they were sent now with a delay; receive counts stay. What is "
              "in flight is left alone. Of one ID it prints the message.",
          .flags = with_store_flags(joined({required({"for", "TIME", "from now on, such as 10m"})}, choice_flags())),
          .examples = "sluice delay orders A-101 --for 10m",
          .run = bulk({.words = {.verb = "delay", .done = "delayed"}, .action = queue::ChangeAction::delay}),
      },
      {
          .name = "delete",
          .summary = "Remove messages for good",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--dlq] [OPTION]...",
          .description =
              "A message that is named by its ID goes in whatever state and half it is, with a warning where somebody "
              "works on it; `sluice cancel` spares one that is in flight. With a filter it removes what matches and "
              "is not in flight. Says what became of each, or prints a JSON object with the ids and counts; Ctrl-C "
              "ends it between two batches and says how to go on.",
          .flags = with_store_flags(choice_flags()),
          .examples = "sluice delete orders A-101\n"
                      "sluice delete orders --where 'attributes.tenant = \"acme\"' --dry-run",
          .run = bulk({.words = {.verb = "remove", .done = "removed"},
                       .action = queue::ChangeAction::remove,
                       .named_in_any_state = true,
                       .shows_message = false}),
      },
      {
          .name = "fail",
          .summary = "Give messages back, so that they are due at once",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--dlq] [OPTION]...",
          .description =
              "For messages that were received, or that wait for their next attempt. Receive count and place in the "
              "queue stay. A host that works on one loses its claim. Of one ID it prints the message.",
          .flags = with_store_flags(without_flag(choice_flags(), "force")),
          .examples = "sluice fail orders A-101\n"
                      "sluice fail orders --where 'state = \"delayed\"' --yes",
          .run = bulk({.words = {.verb = "give back", .done = "given back"},
                       .action = queue::ChangeAction::set_visibility,
                       .any_state = true}),
      },
      {
          .name = "invalid",
          .summary = "Move messages to the dead-letter half",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--reason TEXT] [OPTION]...",
          .description =
              "A message that is named by its ID moves in whatever state it is; a host that works on it loses its "
              "claim. With a filter those in flight stay. One that lies there already stays as it is. `sluice redrive "
              "ID` brings it back.",
          .flags = with_store_flags(joined(
              {{"reason", "TEXT", "kept as its error, and for `sluice audit` [default: what it failed with last]"}},
              without_flag(without_flag(choice_flags(), "dlq"), "reason"))),
          .examples = "sluice invalid orders A-101 --reason 'no such customer'",
          .run = bulk({.words = {.verb = "dead-letter", .done = "dead-lettered"},
                       .action = queue::ChangeAction::dead_letter,
                       .named_in_any_state = true,
                       .shows_message = false}),
      },
      {
          .name = "move-to-front",
          .summary = "Make messages the next to be worked on",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--dlq] [OPTION]...",
          .description =
              "They are due at once and stand before all others of their half, by an older sent_at. What is in flight "
              "is left alone. Of one ID it prints the message.\n\n"
              "A running host first ends what it has claimed already. On DynamoDB it then finds the message with its "
              "next look at the front, within a second.",
          .flags = with_store_flags(choice_flags()),
          .examples = "sluice move-to-front orders A-101",
          .run = bulk({.words = {.verb = "move to the front", .done = "moved to the front"},
                       .action = queue::ChangeAction::move_to_front}),
      },
      {
          .name = "redrive",
          .summary = "Move messages from the dead-letter half back to work",
          .usage = "[QUEUE] (ID... | FILTER | --all) [OPTION]...",
          .description =
              "They come back as newly sent: due at once, behind those that wait, with a receive count of zero. One "
              "that somebody works on in the dead-letter half stays there.\n\n"
              "Of one ID it prints the message; otherwise what became of each, or a JSON object with the ids and "
              "counts. --error takes the fingerprint that `sluice dlq` shows of a cause. Ctrl-C ends it between two "
              "batches and says how to go on.",
          .flags = with_store_flags(joined({kIdFlag, kAllFlag}, without_flag(bulk_flags(), "force"))),
          .examples = "sluice redrive orders A-101\n"
                      "sluice redrive orders --error 3f2a90c1 --rate 50/s\n"
                      "sluice redrive orders --error-like 'connection refused' --dry-run\n"
                      "sluice redrive orders --all --rate 50/s --yes",
          .run = bulk({.words = {.verb = "redrive", .done = "redriven"},
                       .action = queue::ChangeAction::redrive,
                       .dlq_only = true}),
      },
      {
          .name = "reset",
          .summary = "Make messages as if they had just been sent",
          .usage = "[QUEUE] (ID... | FILTER | --all) [--dlq] [OPTION]...",
          .description =
              "In the standard half, wherever they were; receive count zero, no failure, all times now. Their content "
              "stays to the last digit, and their versions grow, so that whoever works on one loses it. A message "
              "that is named by its ID is reset in whatever state it is. Of one ID it prints the message.",
          .flags = with_store_flags(choice_flags()),
          .examples = "sluice reset orders A-101",
          .run = bulk({.words = {.verb = "reset", .done = "reset"},
                       .action = queue::ChangeAction::reset,
                       .named_in_any_state = true}),
      },
  };
}

}  // namespace sluice::cli
