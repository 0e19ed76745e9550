#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/process_mark.hpp"
#include "base/text/visible.hpp"
#include "host/cli/commands/bulk.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cost/prices.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/mover.hpp"

namespace sluice::cli {

namespace {

using State = operate::Mover::Step::State;

constexpr int kMostFailures = 10;
constexpr Duration kFirstRest = std::chrono::milliseconds(250);
constexpr Duration kLongestRest = std::chrono::seconds(4);
constexpr std::size_t kMostRefusals = 10'000;

std::string and_so_many(std::uint64_t count, std::string_view what) {
  return count == 0 ? std::string() : ", " + std::to_string(count) + " " + std::string(what);
}

/// What a move by command needs to know beside its plan. A value.
struct MoveOrder {
  operate::MovePlan plan;
  std::optional<std::uint64_t> expected;  ///< messages, where somebody has counted them
  /// Jobs of the old queue that are at work, "JOB on HOST", where messages with a group stay because of them.
  std::vector<std::string> at_work;
  std::string reason;  ///< for the audit
};

/// Steps a move until it has come to its end, fails, or somebody interrupts it; shows how it goes, and what came of it.
/// For one use, on one thread.
class MoveRun {
 public:
  /// The references outlive it.
  MoveRun(operate::Mover& mover, const MoveOrder& order, QueueSession& session, Console& console)
      : mover_(mover),
        order_(order),
        session_(session),
        console_(console),
        prices_(session.host().cost),
        progress_(session.clock().steady_now(), order.expected) {}

  Exit run() {
    const End end = drive();
    console_.end_progress();
    report();
    return exit_of(end);
  }
  /// Why the move has not come to its end, for the audit; empty: it has.
  const std::string& stopped_by() const { return stopped_by_; }

 private:
  enum class End { finished, interrupted, failed };

  End drive() {
    const InterruptFlag interrupt;
    while (true) {
      const auto step = mover_.step();
      note(step.refusals);
      if (step.state == State::finished) {
        return End::finished;
      }
      if (step.state == State::failed) {
        error_ = step.error;
        if (!worth_another(step.error)) {
          return End::failed;
        }
        const Duration pause = std::min(kLongestRest, kFirstRest * (1 << std::min(failures_, 5)));
        interrupt.wait(pause);
      } else {
        failures_ = 0;
        show();
      }
      if (step.state == State::wait) {
        interrupt.wait(std::max<Duration>(step.until - session_.clock().steady_now(), Duration(1)));
      }
      if ((interrupt.raised() || !console_.writable()) && (mover_.at_rest() || failures_ > 3)) {
        return End::interrupted;
      }
    }
  }

  /// False: there is no sense in trying again.
  bool worth_another(const Error& error) {
    const bool passes =
        error.transient() || error.code() == ErrorCode::unknown_outcome || error.code() == ErrorCode::timeout;
    return ++failures_ <= kMostFailures && passes;
  }

  void note(const std::vector<operate::Mover::Refusal>& refusals) {
    for (const auto& refusal : refusals) {
      if (console_.shows_text()) {
        console_.end_progress();
        console_.out("stays  " + visible(refusal.id) + "  " + visible(refusal.error.message()) + "\n");
      }
      if (refusals_.size() < kMostRefusals) {
        refusals_.push_back(refusal);
      }
    }
  }

  void show() { console_.progress(summary() + left() + pace()); }

  std::string summary() const {
    const operate::MoveCount& count = mover_.count();
    std::string text = (order_.plan.dry_run ? "would move " : "") + std::to_string(count.carried) +
                       (order_.plan.dry_run ? "" : " moved");
    if (count.dead_letters > 0) {
      text += " (" + std::to_string(count.dead_letters) + " dead letters)";
    }
    return text + and_so_many(count.refused, "stay, refused");
  }

  std::string left() const {
    const operate::MoveCount& count = mover_.count();
    return and_so_many(count.left.in_flight, "in flight") + and_so_many(count.left.waiting, "waiting for others") +
           and_so_many(count.left.behind, "behind one that was refused") +
           and_so_many(count.left.elsewhere, "shards still with their hosts") +
           and_so_many(count.left.grouped, "left for their groups' order") +
           and_so_many(count.left.later, "came later");
  }

  std::string pace() const {
    std::string text = progress_.text(mover_.count().carried, session_.clock().steady_now());
    if (const auto cost = session_.cost()) {
      text += ", " + money(*cost);
    }
    return text;
  }

  /// "$0.0123": what so many units cost.
  std::string money(const cost::Spent& spent) const { return prices_.text(prices_.of(spent)); }

  void report() {
    if (console_.shows_json()) {
      return report_json();
    }
    console_.out(summary() + left() + "\n");
    const auto spent = session_.cost();
    if (!spent) {
      return;
    }
    if (order_.plan.dry_run) {
      const cost::Spent& would = mover_.planned_cost();
      console_.out("cost: " + fixed_decimal(would.write_units, 1) + " write units, " +
                   fixed_decimal(would.read_units, 1) + " read units and about " +
                   fixed_decimal(with_planned({}, would).requests, 0) + " requests, " + money(would) + " (" +
                   prices_.origin() + "); this look has cost " + fixed_decimal(spent->requests, 0) + " requests and " +
                   fixed_decimal(spent->read_units, 1) + " read units\n");
    } else {
      console_.out("cost: " + cost::text_of(*spent, mover_.count().carried, "message") + ", " + money(*spent) + " (" +
                   prices_.origin() + ")\n");
    }
  }

  void report_json() {
    const operate::MoveCount& count = mover_.count();
    const auto refused = [](JsonWriter& each, const operate::Mover::Refusal& refusal) {
      put_object(each, "ID", refusal.id, "Error", refusal.error.message());
    };
    const bool dry_run = order_.plan.dry_run;
    console_.out(json_line("from", order_.plan.pair.from, "to", order_.plan.pair.to,
                           member_if(dry_run, "dry_run", true), dry_run ? "matched" : "moved", count.carried,
                           "dead_letters", count.dead_letters, "resumed", count.resumed, "refused", count.refused,
                           "in_flight", count.left.in_flight, "waiting", count.left.waiting + count.left.behind,
                           "shards_with_hosts", count.left.elsewhere, "left_for_order", count.left.grouped,
                           "came_later", count.left.later, "failures", array_of(refusals_, refused), "rate",
                           figure(progress_.rate(count.carried, session_.clock().steady_now()), 1), "cost",
                           [this](JsonWriter& member) { write_cost(member); }));
  }

  void write_cost(JsonWriter& json) const {
    const auto spent = session_.cost();
    if (!spent) {
      return json.null();
    }
    const cost::Spent all = with_planned(*spent, mover_.planned_cost());
    put_object(json, "requests", figure(all.requests, 0), "read_units", figure(all.read_units, 1), "write_units",
               figure(all.write_units, 1), "price", money(all));
  }

  Exit exit_of(End end) {
    constexpr const char* kAgain = "; the same command again goes on";
    switch (end) {
      case End::failed:
        stopped_by_ = session_.explained(error_);
        return Exit::failure(stopped_by_ + " (" + summary() + ")" + kAgain);
      case End::interrupted:
        if (order_.plan.follow && mover_.at_rest()) {
          return Exit::ok();  // who follows is ended so
        }
        stopped_by_ = console_.output_failure() == 0 ? "interrupted" : "nobody reads its output";
        return {kExitInterrupted, stopped_by_ + "; " + summary() + kAgain};
      case End::finished:
        break;
    }
    const operate::MoveCount& count = mover_.count();
    if (count.left.grouped > 0) {
      return Exit::failure(std::to_string(count.left.grouped) + " messages that belong to a group stay, because " +
                           (order_.at_work.empty() ? "a job" : order_.at_work.front()) + " works on queue " +
                           order_.plan.pair.from +
                           " and could run a later one before an earlier one has run in queue " + order_.plan.pair.to +
                           "; pause it and run this again, or carry them with --any-order");
    }
    if (count.refused > 0) {
      return Exit::failure(std::to_string(count.refused) + " messages stay in queue " + order_.plan.pair.from +
                           "; the output says why");
    }
    return Exit::ok();
  }

  operate::Mover& mover_;
  const MoveOrder& order_;
  QueueSession& session_;
  Console& console_;
  const cost::Prices prices_;
  const BulkProgress progress_;
  std::vector<operate::Mover::Refusal> refusals_;
  Error error_;
  std::string stopped_by_;
  int failures_ = 0;  ///< in a row
};

using queue::Half;

constexpr std::size_t kTablePage = 250;
/// So few lie hidden in a table at a time that hosts find them as soon as they are shown.
constexpr std::size_t kTableBatch = 25;
constexpr std::size_t kFileBatch = 250;
const std::vector<Half> kBothHalves{Half::standard, Half::dlq};

operate::MoverName this_process() {
  return {.machine = this_machine(), .pid = ::getpid(), .process = process_mark(::getpid())};
}

/// A queue, opened.
struct Side {
  std::unique_ptr<queue::NoticeBoard> board;
  queue::SourceTraits traits;
};
/// Both queues; the operator of the old one is the session's.
struct Sides {
  Side from;
  Side to;
  std::unique_ptr<queue::Operator> target;
};

OrExit<void> check_words(const Arguments& arguments) {
  if (arguments.get("from") == arguments.get("to")) {
    return Exit::usage("--from and --to name the same queue");
  }
  for (const char* const name : {"from", "to"}) {
    if (config::outbox_named(arguments.get(name))) {
      return Exit::usage("--" + std::string(name) + " " + arguments.get(name) +
                         ": an outbox is a table of the application's, and cannot be moved");
    }
  }
  return {};
}

OrExit<operate::MovePlan> parse_plan(const Arguments& arguments) {
  SLUICE_PASS_ON(check_words(arguments));
  SLUICE_TRY(rate, parse_rate(arguments));
  SLUICE_TRY(quiet, arguments.duration("quiet-for", std::chrono::seconds(10)));
  operate::MovePlan plan;
  plan.pair.from = arguments.get("from");
  plan.pair.to = arguments.get("to");
  if (arguments.has("dlq")) {
    plan.halves = {Half::dlq};
  } else if (arguments.has("no-dlq")) {
    plan.halves = {Half::standard};
  }
  plan.follow = arguments.has("follow");
  plan.until_empty = arguments.has("until-empty");
  plan.quiet = *quiet;
  plan.dry_run = arguments.has("dry-run");
  plan.rate = *rate;
  plan.drop_priorities = arguments.has("drop-priority");
  return plan;
}

/// Two names of one table are one queue.
OrExit<void> check_tables(const config::HostConfig& host, const operate::MovePlan& plan) {
  const config::StoreConfig& from = host.store_of(plan.pair.from);
  const config::StoreConfig& to = host.store_of(plan.pair.to);
  // A leased table holds many queues.
  const bool of_its_own = !host.leased(plan.pair.from) || !host.leased(plan.pair.to);
  if (from.kind == config::StoreKind::dynamodb && to.kind == from.kind && from.region == to.region && of_its_own &&
      from.endpoint == to.endpoint && host.queue(plan.pair.from).table == host.queue(plan.pair.to).table) {
    return Exit::usage("queues " + plan.pair.from + " and " + plan.pair.to + " are both table " +
                       host.queue(plan.pair.from).table + ", so that there is nothing to move");
  }
  return {};
}

/// The same file is the same place from whatever folder it is named.
std::string place_of(const queue::NoticeBoard& board, const config::StoreConfig& store) {
  std::error_code unknown;
  const std::string& place = board.traits().place;
  const auto whole = store.kind == config::StoreKind::sqlite ? std::filesystem::weakly_canonical(place, unknown)
                                                             : std::filesystem::path(place);
  return unknown ? place : whole.string();
}

OrExit<Side> open_side(QueueSession& session, const std::string& queue, std::string& place) {
  SLUICE_TRY(board, session.checked(session.queues().open_board(queue), queue));
  SLUICE_TRY(source, session.checked(session.queues().open_source({queue}), queue));
  place = place_of(**board, session.host().store_of(queue));
  return Side{std::move(*board), (*source)->traits()};
}

OrExit<Sides> open_sides(QueueSession& session, operate::MovePlan& plan) {
  SLUICE_PASS_ON(check_known(session.queues(), plan.pair.to, session.deadline()));
  SLUICE_TRY(target, session.checked(session.queues().open_operator(plan.pair.to), plan.pair.to));
  SLUICE_TRY(from, open_side(session, plan.pair.from, plan.pair.from_place));
  SLUICE_TRY(to, open_side(session, plan.pair.to, plan.pair.to_place));
  plan.target_has_priorities = to->traits.priorities;
  plan.from_tariff = tariff_of(session.host(), plan.pair.from);
  plan.to_tariff = tariff_of(session.host(), plan.pair.to);
  const bool any_table = plan.from_tariff.billed() || plan.to_tariff.billed();
  plan.page = any_table ? kTablePage : kFileBatch;
  plan.batch = any_table ? kTableBatch : kFileBatch;
  return Sides{std::move(*from), std::move(*to), std::move(*target)};
}

/// Jobs that work on the old queue, as its board tells of them: those that take messages of the standard half and are
/// not paused.
OrExit<std::vector<std::string>> jobs_at_work(QueueSession& session) {
  SLUICE_TRY(fleet, session.checked(fleet::Fleet::open(session.queues(), {session.queue()}, session.random())));
  SLUICE_TRY(view, session.checked((*fleet)->hosts(session.deadline())));
  std::vector<std::string> jobs;
  for (const fleet::KnownHost& host : view->hosts) {
    for (const fleet::JobRecord& job : host.record.jobs) {
      const bool takes = !job.dead_letters && !job.paused;
      if (host.pulse != fleet::Pulse::silent && fleet::draws_from(job.queue, session.queue()) && takes) {
        jobs.push_back("job " + job.name + " on host " + host.record.name);
      }
    }
  }
  return jobs;
}

/// How many messages there are; asks whether to move them where somebody is there to be asked.
OrExit<std::optional<std::uint64_t>> agree(QueueSession& session, const operate::MovePlan& plan,
                                           const Arguments& arguments, Console& console) {
  const bool asks = !arguments.has("yes") && !plan.dry_run;
  if (asks && !console.interactive()) {
    return Exit::usage("this would move the messages of queue " + plan.pair.from + " to " + plan.pair.target() +
                       " and there is no terminal to ask on; add --yes to confirm, or --dry-run to see how many");
  }
  if (!asks && plan.from_tariff.billed()) {
    return std::optional<std::uint64_t>();  // to count them costs reads
  }
  std::uint64_t total = 0;
  for (const Half half : plan.halves) {
    SLUICE_TRY(stats, session.checked(session.oper().stats({.half = half, .exact = true}, session.deadline())));
    total += stats->total();
  }
  SLUICE_PASS_ON(confirmed(arguments, console,
                           "Move " + counted(total, "message") + " of queue " + plan.pair.from + " to " +
                               plan.pair.target() + (plan.follow ? ", and what comes" : "") +
                               "? Deduplication windows, unique keys and idempotency keys stay behind.",
                           "moved"));
  return std::optional(total);
}

/// Takes the move on, or says why not. Waits until another mover of the pair that does not tell any more is taken for
/// dead.
OrExit<bool> enter(operate::MoveNotice& notice, QueueSession& session, Console& console) {
  const InterruptFlag interrupt;
  for (bool told = false;; told = true) {
    SLUICE_TRY(entry, notice.enter(session.deadline()));
    if (entry->ours) {
      return entry->found;
    }
    if (!told) {
      console.note("another process was at this move a moment ago; waiting until it is known to have ended");
    }
    if (!interrupt.wait(std::max<Duration>(entry->again - session.clock().steady_now(), Duration(1)))) {
      return Exit(kExitInterrupted, "interrupted; nothing was moved");
    }
  }
}

Exit move_live(QueueSession& session, Sides& sides, MoveOrder& order, Console& console) {
  operate::MovePlan& plan = order.plan;
  operate::MoveNotice notice(*sides.from.board, session.clock(), plan.pair, this_process());
  SLUICE_TRY(found, enter(notice, session, console));
  if (*found) {
    console.note("going on with a move that was broken off");
  }
  plan.resumed = plan.resumed || *found;
  session.oper().begin({.what = "move queue " + plan.pair.from + " to " + plan.pair.target(),
                        .to = plan.pair.to,
                        .reason = order.reason});
  const auto end_before = [&](const Error& error) {
    session.finish_deed({}, session.explained(error));
    static_cast<void>(notice.leave(!plan.resumed, session.deadline()));
    return session.failure(error);
  };
  if (const auto noted = session.oper().note_begun(session.deadline()); !noted) {
    return end_before(noted.error());
  }
  // Where hosts own the queue's shards they hand them over, and get them back at the end.
  auto ownership = session.queues().take_ownership(plan.pair.from, plan.resumed ? kBothHalves : plan.halves);
  if (!ownership) {
    return end_before(ownership.error());
  }
  queue::Operator& from = *ownership ? (*ownership)->oper() : session.oper();
  operate::Mover mover({from, *sides.target, *sides.from.board, *sides.to.board, ownership->get()}, session.clock(),
                       &notice, plan);
  MoveRun run(mover, order, session, console);
  Exit end = run.run();
  if (*ownership && !(*ownership)->give_back()) {
    console.note("some shards of queue " + plan.pair.from +
                 " could not be given back; its hosts take them when this process's lease has run out");
  }
  static_cast<void>(notice.leave(mover.nothing_taken(), session.deadline()));
  session.finish_deed({.changed = mover.count().carried, .failed = mover.count().refused}, run.stopped_by());
  return end;
}

Exit move_queue(const Arguments& arguments, Console& console) {
  SLUICE_TRY(plan, parse_plan(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::apart));
  SLUICE_PASS_ON(check_tables(session->host(), *plan));
  MoveOrder order{.plan = std::move(*plan), .expected = {}, .at_work = {}, .reason = arguments.get("reason")};
  SLUICE_TRY(sides, open_sides(*session, order.plan));
  order.plan.resumed = arguments.has("adopt");
  if (sides->from.traits.groups && !arguments.has("any-order")) {
    SLUICE_TRY(at_work, jobs_at_work(*session));
    order.plan.leave_groups = !at_work->empty();
    order.at_work = std::move(*at_work);
  }
  SLUICE_TRY(expected, agree(*session, order.plan, arguments, console));
  order.expected = *expected;
  if (order.plan.dry_run) {
    operate::Mover mover({session->oper(), *sides->target, *sides->from.board, *sides->to.board}, session->clock(),
                         nullptr, order.plan);
    return MoveRun(mover, order, *session, console).run();
  }
  return move_live(*session, *sides, order, console);
}

std::vector<Flag> flags() {
  std::vector<Flag> all = with_store_flags(
      {alone(required({"from", "QUEUE", "the queue that is moved"})),
       alone(required({"to", "QUEUE", "where to"})),
       against("no-dlq", {"dlq", {}, "only its dead-letter half [default: both halves]"}),
       {"no-dlq", {}, "all but its dead-letter half"},
       {"follow", {}, "also what is sent while it runs, until Ctrl-C"},
       only_with("follow", {"until-empty", {}, "with --follow: end when the queue is empty and nothing comes"}),
       {"quiet-for", "TIME", "how long nothing may have come for that [default: 10s]"},
       kRateFlag,
       against("follow", {"dry-run", {}, "change nothing; count what would be moved, and what it would cost"}),
       kYesFlag,
       {"any-order", {}, "messages with a group too, although a job works on the old queue; their order may be lost"},
       {"drop-priority", {}, "where the new queue has no priorities, all come as normal ones"},
       {"adopt", {}, "take up what a broken-off move of these queues has left, although its notice is lost"},
       kReasonFlag},
      Outboxes::not_taken);
  for (const char* const name : {"queue", "table", "index"}) {
    all = without_flag(std::move(all), name);
  }
  return all;
}

}  // namespace

std::vector<Command> move_commands() {
  return {
      {
          .name = "move",
          .summary = "Carry a live queue to another one, in whatever stores they lie",
          .usage = "FROM TO [OPTION]...",
          .description =
              "Producers and consumers may go on. Each message is carried whole (id, times, counts, failure, group, "
              "attributes), and can be worked on in one of the two queues at a time: nothing is lost or doubled, also "
              "when the move is killed. What somebody works on is left to him until it is done or comes back; what is "
              "delayed keeps its time; dead letters are moved as such. Ctrl-C ends it between two batches; the same "
              "command again goes on.\n\n"
              "Both queues are those of one host file, or tables of these names. Deduplication windows, unique keys "
              "and idempotency keys stay behind. Hosts that own shards of a leased queue hand them over to the move, "
              "shard by shard as what they have at work is settled, and have them again when it has ended. Messages "
              "with a group keep their order in the new queue; while a job works on the old one they stay there, "
              "unless it is paused. docs/run/moving-queues.md says how to switch producers and hosts.",
          .flags = flags(),
          .examples = "sluice move orders orders2 --dry-run\n"
                      "sluice move orders orders2 --rate 200/s --yes\n"
                      "sluice move orders orders2 --follow --until-empty --yes",
          .run = move_queue,
      },
  };
}

}  // namespace sluice::cli
