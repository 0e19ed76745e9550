#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "config/words.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/queue_report.hpp"
#include "host/operate/count_pace.hpp"

namespace sluice::cli {

namespace {

constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

using Paces = std::map<std::string, operate::CountPace>;
// Long enough to even out batches, short enough to show what was changed just now.
constexpr Duration kWindow = std::chrono::seconds(15);

/// Reports of what was asked for, and the queues that could not be counted.
struct Look {
  std::vector<QueueReport> reports;
  std::vector<std::string> failures;
  bool one = false;  ///< of a queue that was named
  WallTime now{};
  std::optional<fleet::FleetView> hosts{};  ///< with --cost
  cost::Prices prices{};
};

/// How a look is made.
struct Wanted {
  bool exact = false;
  FleetSession* fleet = nullptr;  ///< null: costs are not asked for
};

OrExit<Look> look(QueueSession& session, const Wanted& wanted) {
  Look seen;
  seen.one = !session.queue().empty();
  const config::HostConfig& host = session.host();
  std::set<const void*> silent;  // stores that have let us wait in vain
  const SteadyTime began = session.clock().steady_now();
  const auto names = seen.one ? std::vector<std::string>{session.queue()} : session.all_queues(seen.failures);
  if (host.stores.empty() && !seen.failures.empty() && session.clock().steady_now() - began >= kStorePatience) {
    silent.insert(&host.store);
  }
  for (const std::string& name : names) {
    const void* const store = store_identity(host, name);
    if (silent.contains(store)) {
      seen.failures.push_back("queue " + name + " is not counted, as its store does not answer");
      continue;
    }
    const SteadyTime begun = session.clock().steady_now();
    auto report = read_report(session, name, {queue::Half::standard, queue::Half::dlq}, wanted.exact);
    if (report.has_value()) {
      seen.reports.push_back(std::move(*report));
    } else if (seen.one) {
      return report.error();
    } else {
      // One reason for all of them is told once.
      if (const std::string why = report.error().lines().front();
          seen.failures.empty() || seen.failures.back() != why) {
        seen.failures.push_back(why);
      }
      if (session.clock().steady_now() - begun > kStorePatience) {
        silent.insert(store);
      }
    }
  }
  seen.now = session.clock().wall_now();
  if (wanted.fleet != nullptr) {
    SLUICE_TRY(hosts, wanted.fleet->hosts_now());
    seen.hosts = std::move(*hosts);
    seen.prices = cost::Prices(session.host().cost);
  }
  return seen;
}

/// How old the numbers of a queue are.
Duration age_of(const QueueReport& report) { return report.standard.counts.age.value_or(Duration::zero()); }

/// A queue as a look has found it.
struct CountedQueue {
  const QueueReport& report;
  const Look& look;
  const operate::CountPace* pace = nullptr;  ///< how fast it grows or shrinks; null: nobody watches it
};

void describe(const CountedQueue& counted, operate::Fields& fields) {
  const QueueReport& report = counted.report;
  const queue::QueueStats& counts = report.standard.counts;
  const queue::QueueStats& dead = report.dlq.counts;
  JsonWriter* const json = fields.json();
  const auto count = [&fields](const char* key, const operate::Column& column, std::uint64_t number,
                               const queue::QueueStats& of) {
    const Colour colour = number > 0 && key == std::string_view("dlq") ? Colour::red : Colour::none;
    fields.member(key, number);
    fields.cell(column, {std::to_string(number) + (of.at_least ? "+" : ""), colour});
  };
  const auto span = [&](const char* key, const char* title, std::optional<Duration> time) {
    fields.seconds(key, operate::kNowhere, time);
    fields.cell(operate::figures(title), time ? short_duration(*time) : "-");
  };
  if (json != nullptr) {
    write_queue_stats(*json, report.standard);
  }
  fields.text("queue", operate::names("QUEUE", 16), report.queue);
  count("total", operate::figures("TOTAL", 2), counts.total(), counts);
  count("ready", operate::figures("READY"), counts.ready, counts);
  fields.number("in_flight", operate::figures("IN FLIGHT"), counts.in_flight);
  count("delayed", operate::figures("DELAYED", 1), counts.delayed, counts);
  if (counts.excluded) {
    fields.number("excluded", operate::figures("EXCLUDED", 1), *counts.excluded);
  } else {
    fields.cell(operate::figures("EXCLUDED", 1), "-");
  }
  count("dlq", operate::figures("DLQ"), dead.total(), dead);
  span("oldest_ready_seconds", "OLDEST READY", report.oldest_ready(counted.look.now));
  fields.seconds("age_seconds", operate::kNowhere, age_of(report));
  fields.member("approximate", counts.at_least);
  fields.member("at_least", counts.at_least);
  fields.member("dlq_approximate", dead.at_least);
  if (counted.pace != nullptr) {
    const auto rate = counted.pace->per_second();
    fields.member("change_per_second", rate, 3);
    fields.cell(operate::figures("CHANGE"), rate ? (*rate > 0 ? "+" : "") + fixed_decimal(*rate, 1) + "/s" : "-");
    span("empty_in_seconds", "EMPTY IN", counted.pace->empty_in());
  }
  if (json == nullptr) {
    return;
  }
  write_errors(*json, "dlq_errors", report.dlq);
  write_errors(*json, "retry_errors", report.standard);
  write_read_units(*json, report);
  if (const Look& look = counted.look; look.hosts) {
    const auto costs = operate::summarize_costs(*look.hosts, report.queue, look.prices);
    fields.record("cost", operate::Priced<operate::CostSummary>{costs, look.prices});
  }
}

std::vector<CountedQueue> counted_queues(const Look& seen, const Paces* paces) {
  return mapped(seen.reports, [&](const QueueReport& report) {
    return CountedQueue{report, seen, paces == nullptr ? nullptr : &paces->at(report.queue)};
  });
}

std::string as_json(const Look& seen, JsonWriter::Layout layout, const Paces* paces = nullptr) {
  JsonWriter json(layout);
  const auto all = counted_queues(seen, paces);
  seen.one ? operate::write_object(json, all.front(), seen.now) : operate::write_all(json, all, seen.now);
  return json.take_line();
}

/// `excluding`: with what no job takes; `watched`: with how fast the queues grow or shrink.
RowsView rows_view(const Screen& screen, bool excluding, bool watched) {
  RowsView view{.screen = screen,
                .columns = {"QUEUE", "READY", "IN FLIGHT", "DELAYED", "TOTAL", "DLQ", "OLDEST READY"}};
  if (excluding) {
    view.columns.emplace_back("EXCLUDED");
  }
  if (watched) {
    view.columns.insert(view.columns.end(), {"CHANGE", "EMPTY IN"});
  }
  return view;
}

/// The counts, and under them why messages lie in the DLQ or wait for another attempt.
std::string as_text(const Look& seen, const Screen& screen, const Paces* paces = nullptr) {
  const bool excluding = std::any_of(seen.reports.begin(), seen.reports.end(), [](const QueueReport& report) {
    return report.standard.counts.excluded.value_or(0) > 0;
  });
  std::string text = rows_of(counted_queues(seen, paces), seen.now, rows_view(screen, excluding, paces != nullptr)) +
                     read_units_text(seen.reports);
  for (const QueueReport& report : seen.reports) {
    if (report.standard.counts.age) {
      text += wrapped(report.queue + " as it was " + short_duration(age_of(report)) + " ago" +
                          (report.standard.counts.at_least ? ", and at least so much" : "") + "; --exact counts.\n",
                      screen);
    } else if (report.standard.counts.at_least) {
      text +=
          wrapped(report.queue + " has at least so much, as no host tells what lies in it; --exact counts.\n", screen);
    }
  }
  if (seen.hosts) {
    const std::string queue = seen.one ? seen.reports.front().queue : std::string();
    text += "\n" + cost_rows_text(operate::summarize_costs(*seen.hosts, queue, seen.prices), seen.prices, screen);
  }
  for (const QueueReport& report : seen.reports) {
    const std::string dead = error_table(report.dlq, seen.now, screen);
    if (!dead.empty()) {
      text += "\nIn the dead-letter half of " + report.queue + ":\n" + dead;
    }
    const std::string retried = error_table(report.standard, seen.now, screen);
    if (!retried.empty()) {
      text += "\nFailed and to be retried in " + report.queue + ":\n" + retried;
    }
  }
  return text;
}

/// Shows a look each interval until Ctrl-C or until nobody reads.
class Watch {
 public:
  Watch(QueueSession& session, const Wanted& wanted, Console& console)
      : session_(session), wanted_(wanted), console_(console), rows_(rows_view(console.screen(), false, true)) {}

  Exit run(Duration interval) {
    const InterruptFlag interrupt;
    every_ = config::format_duration(interval);
    for (bool first = true; console_.writable(); first = false) {
      const auto seen = look(session_, wanted_);
      if (seen.has_value()) {
        note_paces(*seen);
        show(*seen);
      } else if (first) {
        return seen.error();
      } else {
        console_.note(seen.error().lines().front());
      }
      if (!interrupt.wait(interval)) {
        break;
      }
    }
    return Exit::ok();
  }

 private:
  void note_paces(const Look& seen) {
    for (const QueueReport& report : seen.reports) {
      auto& pace = paces_.try_emplace(report.queue, kWindow).first->second;
      pace.add(session_.clock().steady_now().time_since_epoch(), report.standard.counts.total());
    }
  }

  void show(const Look& seen) {
    if (console_.output_is_terminal()) {
      const Screen screen = console_.screen();
      console_.out(kClearScreen);
      console_.out(console_.shows_text() ? headline(seen.now, screen.colours) + as_text(seen, screen, &paces_)
                                         : as_json(seen, JsonWriter::Layout::indented, &paces_));
    } else if (console_.shows_json()) {
      console_.out(as_json(seen, JsonWriter::Layout::compact, &paces_));
    } else {
      for (const CountedQueue& queue : counted_queues(seen, &paces_)) {
        rows_.add_record(operate::row_of(queue, seen.now));
      }
      console_.out(rows_.take());
    }
    console_.flush();
    for (const std::string& failure : seen.failures) {
      console_.note(failure);
    }
  }

  /// Tells a screen that stands still from one whose queue does.
  std::string headline(WallTime now, bool colours) const {
    const std::string text = operate::to_the_second(now) + ", every " + every_ + "; Ctrl-C ends";
    return tinted(text, Colour::dim, colours) + "\n\n";
  }

  QueueSession& session_;
  const Wanted wanted_;
  Console& console_;
  std::string every_;
  TextTable rows_;  ///< where there is no terminal: one headline for all
  Paces paces_;
};

Exit stats(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
  if (session->queue().empty()) {
    SLUICE_PASS_ON(check_job_files(session->host()));
  }
  std::optional<FleetSession> fleet;
  if (arguments.has("cost")) {
    SLUICE_TRY(opened, FleetSession::open(arguments));
    fleet.emplace(std::move(*opened));
  }
  const Wanted wanted{arguments.has("exact"), fleet ? &*fleet : nullptr};
  if (arguments.has("watch")) {
    SLUICE_TRY(interval, arguments.duration("interval", std::chrono::seconds(2), std::chrono::milliseconds(100),
                                            std::chrono::hours(24)));
    return Watch(*session, wanted, console).run(*interval);
  }
  SLUICE_TRY(seen, look(*session, wanted));
  console.out(console.shows_text() ? as_text(*seen, console.screen()) : as_json(*seen, JsonWriter::Layout::indented));
  return Exit::failed_if_any(std::move(seen->failures));
}

Exit dlq(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, QueueSession::open(arguments));
  SLUICE_TRY(report, read_report(*session, session->queue(), {queue::Half::dlq}, true));
  if (console.shows_text()) {
    const std::string errors = error_table(report->dlq, session->clock().wall_now(), console.screen());
    return print(counted(report->dlq.counts.total(), "message") + " in the dead-letter half of queue " + report->queue +
                     "\n" + read_units_text({*report}) + (errors.empty() ? "" : "\n" + errors),
                 console);
  }
  return print(json_line([&report](JsonWriter& json) {
                 write_dlq_stats(json, report->dlq);
                 json.member("queue", report->queue);
                 write_errors(json, "dlq_errors", report->dlq);
                 write_read_units(json, *report);
               }),
               console);
}

/// A queue that somebody knows.
struct KnownQueue {
  std::string name;
  std::string store;        ///< of [stores.NAME]; empty: the default one
  std::string shown_store;  ///< for people
  std::string kind;         ///< of store, or of an application's database
  std::string place;        ///< the table or the file that it lies in
  std::vector<std::string> jobs;
  bool configured = false;    ///< the host file has a section for it
  bool has_messages = false;  ///< or has had some
};

void describe(const KnownQueue& queue, operate::Fields& fields) {
  fields.text("queue", operate::names("QUEUE", 16), queue.name);
  fields.member("store", queue.store);
  fields.cell(operate::names("STORE", 9, 1), queue.shown_store);
  fields.member("kind", queue.kind);
  fields.text("place", operate::names("LIES IN", 20), queue.place);
  fields.member("jobs", queue.jobs);
  fields.cell(operate::prose("JOBS", 16),
              queue.jobs.empty() ? operate::Cell("-", Colour::yellow) : operate::Cell(sluice::joined(queue.jobs)));
  fields.member("in_host_file", queue.configured);
  fields.member("made_by_messages", queue.has_messages);
}

/// Where a queue lies, by the host file.
void place(KnownQueue& queue, const config::HostConfig& host) {
  if (const config::OutboxConfig* outbox = host.outbox(queue.name)) {
    queue.shown_store = "(outbox)";
    queue.kind = config::word_of(outbox->kind);
    queue.place = "table " + (outbox->schema.empty() ? "" : outbox->schema + ".") + outbox->table;
    return;
  }
  const config::StoreConfig& store = host.store_named(queue.store);
  const bool sqlite = store.kind == config::StoreKind::sqlite;
  queue.shown_store = queue.store.empty() ? "(default)" : queue.store;
  queue.kind = config::word_of(store.kind);
  const bool as_files_say = host.queue(queue.name).store == queue.store;
  queue.place = sqlite ? store.path : "table " + (as_files_say ? host.queue(queue.name).table : config::kLeasedTable);
}

/// All queues that the host file, its jobs or messages know; and why a store cannot be asked, a line for each.
std::vector<KnownQueue> find_queues(QueueSession& session, std::vector<std::string>& failures) {
  const config::HostConfig& host = session.host();
  std::map<std::pair<std::string, std::string>, KnownQueue> known;
  const auto entry = [&known](const std::string& name, const std::string& store) -> KnownQueue& {
    KnownQueue& queue = known[{name, store}];
    queue.name = name;
    queue.store = store;
    return queue;
  };
  const auto jobs = config::load_job_files(host, config::process_environment()).jobs;
  for (const std::string& name : config::queue_names(host, jobs)) {
    entry(name, host.queue(name).store).configured = host.queues.contains(name) || host.outbox(name) != nullptr;
  }
  for (const config::JobConfig& job : jobs) {
    for (const std::string& name : job.queue_names()) {
      entry(name, host.queue(name).store).jobs.push_back(job.name);
    }
  }
  for (const std::string& store : host.store_names()) {
    const auto made = session.queues().made_by_messages_in(store, session.deadline());
    if (made.has_error()) {
      failures.push_back(made.error().message());
      continue;
    }
    for (const std::string& name : *made) {
      entry(name, store).has_messages = true;
    }
  }
  std::vector<KnownQueue> all;
  for (auto& [key, queue] : known) {
    place(queue, host);
    all.push_back(std::move(queue));
  }
  return all;
}

Exit queues(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
  SLUICE_PASS_ON(check_job_files(session->host()));
  std::vector<std::string> failures;
  auto all = find_queues(*session, failures);
  std::erase_if(all,
                [named = session->queue()](const KnownQueue& queue) { return !named.empty() && queue.name != named; });
  const std::string_view nothing =
      failures.empty() ? "no job, host file or message knows a queue yet" : "no job or host file knows a queue";
  show_all(all, session->clock().wall_now(), {}, nothing, console);
  if (all.empty() && console.shows_json()) {
    console.flush();
    console.note(nothing);
  }
  return Exit::failed_if_any(std::move(failures));
}

}  // namespace

std::vector<Command> count_commands() {
  return {
      {
          .name = "stats",
          .alias = "qstat",
          .summary = "Count the messages of one queue, or of all, by state",
          .usage = "[QUEUE] [--exact] [--cost] [--watch [--interval TIME]] [OPTION]...",
          .description =
              "Prints a JSON object for one queue, an array of them for all that the host file, its jobs or messages "
              "know: the first hundred ids, those of them that are hidden, and the counts. total = ready + in_flight + "
              "delayed; dlq counts the dead-letter half, whose errors are grouped. With DynamoDB it says what the look "
              "cost in "
              "read units. `qstat` is another name for it.\n\n"
              "The numbers are counted for this look, on SQLite and in DynamoMQ's tables; age_seconds is then 0. "
              "Where the hosts that own a queue know them, theirs are shown, with their age: of what they have not "
              "read all there is at least so much (at_least, +). Where no host works on such a queue, a megabyte of "
              "each shard is counted. --exact counts all the same, which reads the whole queue, and has ids and "
              "errors. --cost adds what the last hour has cost, as `sluice cost` has it.\n\n"
              "--watch shows it again and again until Ctrl-C, with how fast each queue grows or shrinks and when it "
              "is empty: on a terminal in place, otherwise one line each time.",
          .flags = with_store_flags({{"exact", {}, "count, whatever older numbers there are"},
                                     {"cost", {}, "with what the last hour has cost"},
                                     {"watch", {}, "go on until Ctrl-C"},
                                     only_with("watch", {"interval", "TIME", "how often [default: 2s]"})}),
          .examples = "sluice stats orders\n"
                      "sluice stats --watch --output text",
          .run = stats,
      },
      {
          .name = "dlq",
          .summary = "Count what lies in the dead-letter half, and why",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "Prints the first hundred ids, the total, and the causes of their failures: errors that differ in "
              "numbers, ids, addresses and paths alone are one. Of each cause it says how many there are, when, by "
              "which handler and on which host, and its fingerprint: `sluice redrive --error FINGERPRINT` brings back "
              "what failed for it, `sluice ls --dlq --error FINGERPRINT` lists it.",
          .flags = with_store_flags({}),
          .examples = "sluice dlq orders --output text",
          .run = dlq,
      },
      {
          .name = "queues",
          .summary = "List the queues that jobs, the host file or messages know",
          .usage = "[QUEUE] [OPTION]...",
          .description =
              "Of each: the store that it lies in, the file or table there, and the jobs that work on it. The queues "
              "of a SQLite file and of the table sluice-queues are all listed, whoever made them; of other tables "
              "those that a job or the host file names. "
              "`sluice stats` counts their messages.",
          .flags = with_store_flags({}),
          .examples = "sluice queues\n"
                      "sluice queues --json | jq -r '.[] | select(.jobs == []) | .queue'",
          .run = queues,
      },
  };
}

}  // namespace sluice::cli
