#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "host/cli/bulk_command.hpp"
#include "host/cli/command.hpp"
#include "host/cli/commands/move_run.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/tariffs.hpp"
#include "host/fleet/fleet.hpp"

namespace sluice::cli {

namespace {

using queue::Half;

constexpr std::size_t kTablePage = 250;
/// So few lie hidden in a table at a time that hosts find them as soon as they are shown.
constexpr std::size_t kTableBatch = 25;
constexpr std::size_t kFileBatch = 250;
const std::vector<Half> kBothHalves{Half::standard, Half::dlq};

operate::MoverName this_process() {
  std::array<char, 256> machine{};
  const bool named = ::gethostname(machine.data(), machine.size() - 1) == 0;
  return {.machine = named ? machine.data() : "?", .pid = ::getpid()};
}

bool has_ended(const operate::MoverName& mover) {
  return mover.machine == this_process().machine && ::kill(static_cast<pid_t>(mover.pid), 0) != 0 && errno == ESRCH;
}

/// Both queues, opened.
struct Sides {
  std::unique_ptr<queue::Operator> from;
  std::unique_ptr<queue::Operator> to;
  std::unique_ptr<queue::NoticeBoard> from_board;
  std::unique_ptr<queue::NoticeBoard> to_board;
  queue::SourceTraits from_traits;
  queue::SourceTraits to_traits;
};

Exit check_words(const Arguments& arguments) {
  if (arguments.get("from") == arguments.get("to")) {
    return Exit::usage("--from and --to name the same queue");
  }
  for (const char* const name : {"from", "to"}) {
    if (config::outbox_named(arguments.get(name))) {
      return Exit::usage("--" + std::string(name) + " " + arguments.get(name) +
                         ": an outbox is a table of the application's, and cannot be moved");
    }
  }
  if (arguments.has("dlq") && arguments.has("no-dlq")) {
    return Exit::usage("--dlq and --no-dlq exclude each other; without them both halves are moved");
  }
  if (arguments.has("until-empty") && !arguments.has("follow")) {
    return Exit::usage("--until-empty says when --follow ends; without --follow a move ends by itself");
  }
  if (arguments.has("follow") && arguments.has("dry-run")) {
    return Exit::usage("--dry-run looks once, and --follow again and again; give one");
  }
  return Exit::ok();
}

OrExit<operate::MovePlan> parse_plan(const Arguments& arguments) {
  if (Exit wrong = check_words(arguments); wrong.code() != kExitOk) {
    return wrong;
  }
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
Exit check_tables(const config::HostConfig& host, const operate::MovePlan& plan) {
  const config::StoreConfig& from = host.store_of(plan.pair.from);
  const config::StoreConfig& to = host.store_of(plan.pair.to);
  // A leased table holds many queues.
  const bool of_its_own = !host.leased(plan.pair.from) || !host.leased(plan.pair.to);
  if (from.kind == config::StoreKind::dynamodb && to.kind == from.kind && from.region == to.region && of_its_own &&
      from.endpoint == to.endpoint && host.queue(plan.pair.from).table == host.queue(plan.pair.to).table) {
    return Exit::usage("queues " + plan.pair.from + " and " + plan.pair.to + " are both table " +
                       host.queue(plan.pair.from).table + ", so that there is nothing to move");
  }
  return Exit::ok();
}

template <typename Opened>
bool took(Result<Opened> opened, Opened& into, Error& error) {
  if (!opened) {
    error = opened.error();
    return false;
  }
  into = std::move(*opened);
  return true;
}

/// The same file is the same place from whatever folder it is named.
std::string place_of(const queue::NoticeBoard& board, const config::StoreConfig& store) {
  std::error_code unknown;
  const std::string& place = board.traits().place;
  const auto whole = store.kind == config::StoreKind::sqlite ? std::filesystem::weakly_canonical(place, unknown)
                                                             : std::filesystem::path(place);
  return unknown ? place : whole.string();
}

OrExit<Sides> open_sides(QueueSession& session, operate::MovePlan& plan) {
  Sides sides;
  Error error;
  std::unique_ptr<queue::Source> from;
  std::unique_ptr<queue::Source> to;
  runtime::HostQueues& queues = session.queues();
  const std::string& one = plan.pair.from;
  const std::string& other = plan.pair.to;
  if (!took(queues.open_operator(one), sides.from, error) || !took(queues.open_board(one), sides.from_board, error) ||
      !took(queues.open_source({one}), from, error)) {
    return Exit::failure(session.place().explained(error, one));
  }
  if (!took(queues.open_operator(other), sides.to, error) || !took(queues.open_board(other), sides.to_board, error) ||
      !took(queues.open_source({other}), to, error)) {
    return Exit::failure(session.place().explained(error, other));
  }
  sides.from_traits = from->traits();
  sides.to_traits = to->traits();
  plan.pair.from_place = place_of(*sides.from_board, session.host().store_of(one));
  plan.pair.to_place = place_of(*sides.to_board, session.host().store_of(other));
  plan.target_has_priorities = sides.to_traits.priorities;
  plan.from_tariff = tariff_of(session.host(), one);
  plan.to_tariff = tariff_of(session.host(), other);
  const bool any_table = plan.from_tariff.billed() || plan.to_tariff.billed();
  plan.page = any_table ? kTablePage : kFileBatch;
  plan.batch = any_table ? kTableBatch : kFileBatch;
  return sides;
}

/// Jobs that work on the queue, as its board tells of them: those that take messages of the standard half and are not
/// paused.
OrExit<std::vector<std::string>> jobs_at_work(QueueSession& session, const std::string& queue) {
  SeededRandom random;
  const auto fleet = fleet::Fleet::open(session.queues(), {queue}, random);
  const auto view = fleet ? (*fleet)->hosts(session.deadline()) : Result<fleet::FleetView>(fleet.error());
  if (!view) {
    return Exit::failure(session.place().explained(view.error(), queue));
  }
  std::vector<std::string> jobs;
  for (const fleet::KnownHost& host : view->hosts) {
    for (const fleet::JobRecord& job : host.record.jobs) {
      const bool works_on_it = ("," + job.queue + ",").find("," + queue + ",") != std::string::npos;
      const bool takes = !job.dead_letters && !job.paused;
      if (host.pulse != fleet::Pulse::silent && works_on_it && takes) {
        jobs.push_back("job " + job.name + " on host " + host.record.name);
      }
    }
  }
  return jobs;
}

/// How many messages there are; asks whether to move them where somebody is there to be asked.
OrExit<std::optional<std::uint64_t>> agree(QueueSession& session, Sides& sides, const operate::MovePlan& plan,
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
    const auto stats = sides.from->stats({.half = half, .exact = true}, session.deadline());
    if (!stats) {
      return Exit::failure(session.place().explained(stats.error(), plan.pair.from));
    }
    total += stats->total();
  }
  if (asks &&
      !console.confirm("Move " + std::to_string(total) + (total == 1 ? " message" : " messages") + " of queue " +
                       plan.pair.from + " to " + plan.pair.target() + (plan.follow ? ", and what comes" : "") +
                       "? Deduplication windows, unique keys and idempotency keys stay behind.")) {
    return Exit::failure("nothing was moved");
  }
  return std::optional(total);
}

/// Takes the move on, or says why not. Waits until another mover of the pair that does not tell any more is taken for
/// dead.
OrExit<bool> enter(operate::MoveNotice& notice, QueueSession& session, Console& console) {
  const InterruptFlag interrupt;
  for (bool told = false;; told = true) {
    const auto entry = notice.enter(session.deadline());
    if (!entry) {
      return Exit::failure(entry.error().message());
    }
    if (entry->ours) {
      return entry->found;
    }
    if (!told) {
      console.note("another process was at this move a moment ago; waiting until it is known to have ended");
    }
    if (!wait_for_look(interrupt, std::max<Duration>(entry->again - session.clock().steady_now(), Duration(1)))) {
      return Exit(kExitInterrupted, "interrupted; nothing was moved");
    }
  }
}

Exit move_live(QueueSession& session, Sides& sides, MoveOrder& order, Output output, Console& console) {
  operate::MovePlan& plan = order.plan;
  operate::MoveNotice notice(*sides.from_board, session.clock(), plan.pair, this_process(), has_ended);
  SLUICE_TRY(found, enter(notice, session, console));
  if (*found) {
    console.note("going on with a move that was broken off");
  }
  plan.resumed = plan.resumed || *found;
  const std::string deed = "move queue " + plan.pair.from + " to " + plan.pair.target();
  if (auto noted = fleet::note_deeds(*sides.from_board, this_operator(), {deed}, session.deadline()); !noted) {
    static_cast<void>(notice.leave(!plan.resumed, session.deadline()));
    return Exit::failure("the audit: " + session.place().explained(noted.error(), plan.pair.from));
  }
  // Where hosts own the queue's shards they hand them over, and get them back at the end.
  auto ownership = session.queues().take_custody(plan.pair.from, plan.resumed ? kBothHalves : plan.halves);
  if (!ownership) {
    static_cast<void>(notice.leave(!plan.resumed, session.deadline()));
    return Exit::failure(session.place().explained(ownership.error(), plan.pair.from));
  }
  queue::Operator& from = *ownership ? (*ownership)->oper() : *sides.from;
  operate::Mover mover({from, *sides.to, *sides.from_board, *sides.to_board, ownership->get()}, session.clock(),
                       &notice, plan);
  Exit end = MoveRun(mover, order, session, output, console).run();
  if (*ownership && !(*ownership)->give_back()) {
    console.note("some shards of queue " + plan.pair.from +
                 " could not be given back; its hosts take them when this process's lease has run out");
  }
  static_cast<void>(notice.leave(mover.nothing_taken(), session.deadline()));
  const std::string done = deed + ": " + std::to_string(mover.count().carried) + " moved";
  static_cast<void>(fleet::note_deeds(*sides.from_board, this_operator(), {done}, session.deadline()));
  return end;
}

Exit move_queue(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(plan, parse_plan(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
  if (Exit wrong = check_tables(session->host(), *plan); wrong.code() != kExitOk) {
    return wrong;
  }
  MoveOrder order{.plan = std::move(*plan), .expected = {}, .at_work = {}};
  SLUICE_TRY(sides, open_sides(*session, order.plan));
  order.plan.resumed = arguments.has("adopt");
  if (sides->from_traits.groups && !arguments.has("any-order")) {
    SLUICE_TRY(at_work, jobs_at_work(*session, order.plan.pair.from));
    order.plan.leave_groups = !at_work->empty();
    order.at_work = std::move(*at_work);
  }
  SLUICE_TRY(expected, agree(*session, *sides, order.plan, arguments, console));
  order.expected = *expected;
  if (order.plan.dry_run) {
    operate::Mover mover({*sides->from, *sides->to, *sides->from_board, *sides->to_board}, session->clock(), nullptr,
                         order.plan);
    return MoveRun(mover, order, *session, *output, console).run();
  }
  return move_live(*session, *sides, order, *output, console);
}

std::vector<Flag> flags() {
  std::vector<Flag> all = with_store_flags(
      {{.name = "from", .value = "QUEUE", .help = "the queue that is moved", .required = true},
       {.name = "to", .value = "QUEUE", .help = "where to", .required = true},
       {.name = "dlq", .value = {}, .help = "only its dead-letter half [default: both halves]"},
       {.name = "no-dlq", .value = {}, .help = "all but its dead-letter half"},
       {.name = "follow", .value = {}, .help = "also what is sent while it runs, until Ctrl-C"},
       {.name = "until-empty", .value = {}, .help = "with --follow: end when the queue is empty and nothing comes"},
       {.name = "quiet-for", .value = "TIME", .help = "how long nothing may have come for that [default: 10s]"},
       {.name = "rate", .value = "N/s", .help = "at most N messages a second (/m: a minute)"},
       {.name = "dry-run", .value = {}, .help = "change nothing; count what would be moved, and what it would cost"},
       {.name = "yes", .value = {}, .help = "do not ask"},
       {.name = "any-order",
        .value = {},
        .help = "messages with a group too, although a job works on the old queue; their order may be lost"},
       {.name = "drop-priority", .value = {}, .help = "where the new queue has no priorities, all come as normal ones"},
       {.name = "adopt",
        .value = {},
        .help = "take up what a broken-off move of these queues has left, although its notice is lost"}},
      Outboxes::not_taken);
  for (const char* const name : {"queue", "table", "index"}) {
    all = without_flag(std::move(all), name);
  }
  return all;
}

}  // namespace

Command move_command() {
  return {
      .name = "move",
      .group = "Queues",
      .summary = "Carry a live queue to another one, in whatever stores they lie",
      .usage = "--from QUEUE --to QUEUE [OPTION]...",
      .description =
          "Producers and consumers may go on. Each message is carried whole (id, times, counts, failure, group, "
          "attributes), and can be worked on in one of the two queues at a time: nothing is lost or doubled, also when "
          "the move is killed. What somebody works on is left to him until it is done or comes back; what is delayed "
          "keeps its time; dead letters are moved as such. Ctrl-C ends it between two batches; the same command again "
          "goes on.\n\n"
          "Both queues are those of one host file, or tables of these names. Deduplication windows, unique keys and "
          "idempotency keys stay behind. Hosts that own shards of a leased queue hand them over to the move, shard by "
          "shard "
          "as what they have at work is settled, and have them again when it has ended. Messages with a group keep "
          "their order in the new queue; while a job works on "
          "the old one they stay there, unless it is paused. docs/run/moving-queues.md says how to switch producers "
          "and hosts.",
      .flags = flags(),
      .examples =
          "sluice move --from orders --to orders2 --dry-run\n"
          "sluice move --from orders --to orders2 --rate 200/s --yes\n"
          "sluice move --from orders --to orders2 --follow --until-empty --yes",
      .run = move_queue,
  };
}

}  // namespace sluice::cli
