#include <utility>

#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/queue_report.hpp"
#include "host/cli/views/schedule_text.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

/// Beside a list for people: which hosts are not well, and why. Programs have it in the records of hosts.
void warn_of_hosts(const fleet::FleetView& view, const FleetSession& session, Console& console) {
  for (const std::string& line : operate::host_warnings(view, session.clock().wall_now())) {
    console.note("warning: " + line);
  }
}

Exit hosts(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, session->hosts_now());
  operate::keep_queue(arguments.get("queue"), view->hosts);
  show_all(view->hosts, session->clock().wall_now(), host_columns(),
           "no host works on these queues; `sluice run` starts one", console);
  warn_of_hosts(*view, *session, console);
  return troubles_of(view->troubles);
}

/// What hosts have told of the schedules; what cannot be read is left out.
ScheduleNotices told_of_schedules(FleetSession& session, Deadline deadline) {
  ScheduleNotices told;
  for (const config::JobConfig& job : session.jobs()) {
    for (const config::ScheduleConfig& schedule : job.schedules) {
      const auto board = session.queues().queues().open_board(schedule.queue);
      const auto found = board ? (*board)->read(queue::Topic::schedules, schedule.name, deadline)
                               : Result<queue::Notice>(board.error());
      const auto notice = found && found->version != 0 ? runtime::ScheduleNotice::read(found->text) : std::nullopt;
      if (notice) {
        told.emplace(std::pair(schedule.queue, schedule.name), *notice);
      }
    }
  }
  return told;
}

/// A job, and the file that has its schedules here.
struct ShownJob {
  const operate::JobSummary& summary;
  const config::JobConfig& file;
  const ScheduleNotices& told;
};

void describe(const ShownJob& job, operate::Fields& fields) {
  describe(job.summary, fields);
  if (fields.json() != nullptr) {
    write_schedules(*fields.json(), job.file, fields.now(), &job.told);
  }
}

/// Under the name of each job, the times of its schedules.
std::string schedules_text(const std::vector<ShownJob>& jobs, WallTime now) {
  std::string text;
  for (const ShownJob& job : jobs) {
    text += job.file.schedules.empty() ? "" : job.file.name + ":\n";
    for (const std::string& line : schedule_lines(job.file, now, &job.told)) {
      text += line + "\n";
    }
  }
  return text;
}

Exit jobs(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  const Deadline deadline = Deadline::after(session->clock(), kStorePatience);  // for all that stores are asked
  SLUICE_TRY(view, session->hosts_now());
  const auto steering = session->fleet().steering(deadline);
  if (!steering && view->troubles.empty()) {
    view->troubles.push_back({"what operators want", steering.error()});
  }
  auto summaries =
      operate::summarize_jobs(jobs_of(session->jobs()), *view, steering ? *steering : fleet::SteeringView());
  operate::keep_queue(arguments.get("queue"), summaries);
  const ScheduleNotices told = told_of_schedules(*session, deadline);
  static const config::JobConfig kNone;  // of a job that hosts alone know
  std::vector<ShownJob> found;
  for (const operate::JobSummary& summary : summaries) {
    const auto* const file =
        find_where(session->jobs(), [&summary](const config::JobConfig& job) { return job.name == summary.name; });
    found.push_back({summary, file == nullptr ? kNone : *file, told});
  }
  const WallTime now = session->clock().wall_now();
  show_all(found, now, job_columns(), "no job is known: neither do files here have one, nor does a host run one",
           console);
  if (console.shows_text()) {
    console.out(wrapped(schedules_text(found, now), console.screen()));
  }
  warn_of_hosts(*view, *session, console);
  return troubles_of(view->troubles);
}

/// That no host tells of a handler at work, who has told nothing of late, and what is in flight all the same.
std::string nothing_at_work(FleetSession& session, const fleet::FleetView& view) {
  const Deadline deadline = Deadline::after(session.clock(), std::chrono::seconds(5));
  std::string in_flight;
  for (const std::string& queue : session.queue_names()) {
    auto counter = session.queues().open_counter(queue);
    const auto count = counter ? counter->step(deadline) : Result<operate::QueueCount>(counter.error());
    if (count && count->standard.in_flight > 0) {
      in_flight += (in_flight.empty() ? "" : ", ") + std::to_string(count->standard.in_flight) + " of queue " + queue;
    }
  }
  const std::string quiet = operate::quiet_hosts(view, true);
  const bool all_tell = quiet.empty() && view.troubles.empty();
  return std::string(all_tell ? "no handler is at work" : "no host that answers has a handler at work") +
         (quiet.empty() ? "" : "; not heard of: " + quiet) +
         (in_flight.empty() ? ""
                            : "; in flight all the same: " + in_flight +
                                  ", claimed by a host that does not answer or is gone, or taken by `sluice receive`");
}

/// Those of the job and queue that the operand, --job and --queue name.
OrExit<void> keep_chosen(std::vector<operate::HandlerAtWork>& found, const Arguments& arguments,
                         FleetSession& session) {
  const auto keep = [&found](std::string fleet::RunningRecord::*of, const std::string& name) {
    std::erase_if(found, [&](const operate::HandlerAtWork& at_work) { return at_work.handler.*of != name; });
  };
  if (arguments.has("queue")) {
    keep(&fleet::RunningRecord::queue, arguments.get("queue"));
  }
  if (const std::string job = arguments.get("job"); !job.empty()) {
    SLUICE_PASS_ON(or_usage(session.names().job(fleet::Wish::pause, job)));
    keep(&fleet::RunningRecord::job, job);
  }
  if (const std::string name = arguments.get("name"); !name.empty()) {
    SLUICE_TRY(thing, or_usage(session.names().thing(fleet::Wish::pause, name)));
    keep(thing->target == fleet::Target::queue ? &fleet::RunningRecord::queue : &fleet::RunningRecord::job, name);
  }
  return {};
}

Exit running(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  const InterruptFlag interrupt;
  SLUICE_TRY(view, look_in_detail(*session, interrupt));
  auto found = operate::handlers_at_work(*view);
  const bool some_work = !found.empty();
  SLUICE_PASS_ON(keep_chosen(found, arguments, *session));
  std::string none;
  if (found.empty() && console.shows_text()) {  // what is in flight costs reads
    none = some_work ? "no handler is at work on it" : nothing_at_work(*session, *view);
  }
  show_all(found, session->clock().wall_now(), running_columns(), none, console);
  warn_of_hosts(*view, *session, console);
  for (const std::string& line : untold_work(*view, false)) {
    console.note("sluice running: " + line);
  }
  return troubles_of(view->troubles);
}

Exit audit(const Arguments& arguments, Console& console) {
  SLUICE_TRY(limit, arguments.count("limit", 50, 10'000));
  fleet::AuditQuery query{.limit = *limit};
  query.since = parse_timestamp(arguments.get("since"));
  if (arguments.has("since") && !query.since) {
    const auto ago = config::parse_duration(arguments.get("since"));
    if (!ago) {
      return Exit::usage("--since " + arguments.get("since") +
                         " is no time such as 2026-01-31T12:00:00Z, and no duration such as 2h");
    }
    query.since = SystemClock().wall_now() - *ago;
  }
  SLUICE_TRY(session, FleetSession::open(arguments));
  const config::HostConfig& host = session->queues().host();
  const std::string& queue = session->queues().queue();
  // Without a host file all that stands on the one board there is is about its table.
  if (!queue.empty() && !host.file.empty()) {
    query.names = {queue};
    if (!host.leased(queue)) {
      query.names.push_back(host.queue(queue).table);  // as those name it who have no host file
    }
  }
  SLUICE_TRY(found, session->checked(session->fleet().audit(query, session->deadline())));
  const std::string since = found->kept_since ? " since " + format_timestamp(*found->kept_since) : std::string();
  show_all(found->deeds, session->clock().wall_now(), {}, "nobody has steered or changed anything here" + since,
           console);
  if (found->kept_since) {
    console.note("the audit is kept only" + since);
  }
  return Exit::ok();
}

Exit cost(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, session->hosts_now());
  const cost::Prices prices(session->queues().host().cost);
  const auto costs = operate::summarize_costs(*view, session->queues().queue(), prices);
  console.out(console.shows_json() ? cost_json(costs, prices) : cost_text(costs, prices, console.screen()));
  return troubles_of(view->troubles);
}

}  // namespace

std::vector<Command> fleet_commands() {
  return {
      {
          .name = "hosts",
          .summary = "Show the hosts that work on the queues",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "Every host keeps a small record in the store of its queues: name, version, address, jobs and rates. A "
              "row for each host; its label, NAME:PID, is what `drain`, `reload` and `log-level` take, as they take "
              "the name. SEEN is the age of the record: a host that is late is busy or cut off, and one that is "
              "silent has ended without a word; it is shown for an hour, as is one whose drain was not clean. JSON has "
              "the jobs of each host too.",
          .flags = with_store_flags({}),
          .examples = "sluice hosts\n"
                      "sluice hosts --output json | jq -r '.[] | select(.pulse != \"fresh\") | .host'",
          .run = hosts,
      },
      {
          .name = "jobs",
          .summary = "Show the jobs, who runs them, how fast, and what is steered",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "A row for each job that the job files here have or a host runs. WORKERS is what is in force on all its "
              "hosts, and beside it what the files say where that differs; LIMIT is its rate_limit, of all hosts "
              "together where it does not say \"per host\"; STEERED is what operators want of it: "
              "`pause`, `scale`. Rates are sums of all hosts, times those of the slowest one. Below stand the "
              "schedules of the files here, with the time of which a message was sent last, what was missed, the times "
              "at which they are due next, and whether a host has one of them otherwise.",
          .flags = with_store_flags({}),
          .examples = "sluice jobs\n"
                      "sluice jobs --output json | jq '.[] | select(.paused)'",
          .run = jobs,
      },
      {
          .name = "running",
          .summary = "Show what the workers of all hosts run, the longest first",
          .usage = "[QUEUE-OR-JOB] [OPTION]...",
          .description =
              "A row for each handler at work: its message, since when, how long until its time-out, host, worker, "
              "job, handler and attempt. Hosts of this machine are asked at their control sockets; others are asked "
              "through the store to tell in detail, which takes them a moment. `stuck` is a handler that ignores its "
              "stop token.",
          .flags = with_store_flags({alone({"name", "QUEUE-OR-JOB", "of whichever has this name"}),
                                     filled({"job", "JOB", "of this job only"})}),
          .examples = "sluice running\n"
                      "sluice running mailer --output json | jq -r '.[] | select(.stuck) | .message'",
          .run = running,
      },
      {
          .name = "audit",
          .summary = "Show who has steered or changed what, the newest first",
          .usage = "[QUEUE] [--limit N] [--since TIME] [OPTION]...",
          .description =
              "Every pause, scale, drain, reload, cancel and log-level leaves a line, and so does every change of "
              "messages: purge, delete, redrive, edit, import, move and the like, of one message or many. It says "
              "when, who (USER@MACHINE), what, which messages, why (--reason), and what came of it. A change is noted "
              "before the first message is changed, and finished after the last: \"begun, not finished\" is one that "
              "runs, or whose process was killed. Without its line nothing is changed.\n\n"
              "The store keeps the last 128 chapters of 8 KB, which is some 5,000 deeds of all queues that lie in one "
              "file or table; where older ones are wanted, it says since when they are kept. A move is found under "
              "both of its queues. What programs do through the client library is no operator's deed.",
          .flags = with_store_flags({{"limit", "N", "how many [default: 50]"},
                                     {"since", "TIME", "of the last 2h, say, or since 2026-01-31T12:00:00Z"}}),
          .examples = "sluice audit --limit 10\n"
                      "sluice audit orders --since 24h\n"
                      "sluice audit --output json | jq '.[] | select(.state == \"begun\")'",
          .run = audit,
      },
      {
          .name = "cost",
          .summary = "Show what the last hour has cost, and what another layout would have",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "Every host counts what DynamoDB's answers report of each call, by queue and job, and tells the sum of "
              "the last hour in its record. A row for each queue and job: messages claimed; requests, read and write "
              "units a message; money for a million of them, for the hour, and for a month at this pace. \"(shared)\" "
              "is what no job has caused by itself, such as the hosts' own records. With [cost] attribute in the host "
              "file there is a row for each value of it too.\n\n"
              "Below that, what the same messages would have come to in other layouts: those of DynamoMQ's table, of "
              "the leased one, of SQS and of SQLite, by published rules, the storage of what lay there until it was "
              "handed out included. Prices are those of [cost] in the host file, else DynamoDB's on demand in "
              "us-east-1; their day is told. Hosts that have ended tell nothing.",
          .flags = with_store_flags({}),
          .examples = "sluice cost\n"
                      "sluice cost orders --json | jq .money_per_month",
          .run = cost,
      },
  };
}

}  // namespace sluice::cli
