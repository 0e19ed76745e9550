#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/views/cost_report.hpp"
#include "host/cli/views/message_view.hpp"
#include "host/cli/views/queue_pace.hpp"
#include "host/cli/views/queue_report.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kInterval = std::chrono::seconds(2);
constexpr Duration kShortestInterval = std::chrono::milliseconds(100);
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

using Paces = std::map<std::string, QueuePace>;

/// Reports of what was asked for, and the queues that could not be counted.
struct Look {
  std::vector<QueueReport> reports;
  std::vector<std::string> failures;
  bool one = false;  ///< of a queue that was named
  WallTime now{};
  std::optional<fleet::FleetView> hosts{};  ///< with --cost
  cost::Prices prices{};
};

std::string decimal_text(double number, int digits = 3) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

std::string one_decimal(double number) { return decimal_text(number, 1); }

std::string seconds_text(Duration duration) { return decimal_text(std::chrono::duration<double>(duration).count()); }

/// How a look is made.
struct Wanted {
  bool exact = false;
  FleetSession* fleet = nullptr;  ///< null: costs are not asked for
};

OrExit<Look> look(QueueSession& session, const Wanted& wanted) {
  Look seen;
  seen.one = !session.queue().empty();
  const auto names = seen.one ? std::vector<std::string>{session.queue()} : known_queues(session.host());
  for (const std::string& name : names) {
    auto report = read_report(session, name, Halves::both, wanted.exact);
    if (report.has_value()) {
      seen.reports.push_back(std::move(*report));
    } else if (seen.one) {
      return report.error();
    } else {
      seen.failures.push_back(report.error().lines().front());
    }
  }
  seen.now = session.clock().wall_now();
  if (wanted.fleet != nullptr) {
    SLUICE_TRY(hosts, wanted.fleet->hosts());
    seen.hosts = std::move(*hosts);
    seen.prices = cost::Prices(session.host().cost);
  }
  return seen;
}

void write_pace(JsonWriter& json, const QueuePace& pace) {
  const auto write = [&json](std::string_view name, const std::optional<double>& number) {
    json.key(name);
    if (number) {
      json.word(decimal_text(*number));
    } else {
      json.null();
    }
  };
  const auto left = pace.empty_in();
  write("change_per_second", pace.per_second());
  write("empty_in_seconds",
        left ? std::optional(std::chrono::duration<double>(*left).count()) : std::optional<double>());
}

/// "~20140", "~20140+" where there may be more.
std::string count_text(std::uint64_t count, const queue::QueueStats& of) {
  return std::to_string(count) + (of.at_least ? "+" : "");
}

/// Why the numbers are not the last word.
std::string caveat_text(const queue::QueueStats& counts) { return counts.at_least ? ", and at least so much" : ""; }

/// How old the numbers of a queue are.
Duration age_of(const QueueReport& report) { return report.standard.counts.age.value_or(Duration::zero()); }

void write(JsonWriter& json, const QueueReport& report, const Look& seen, const Paces& paces) {
  const WallTime now = seen.now;
  const queue::QueueStats& counts = report.standard.counts;
  json.begin_object();
  write_queue_stats(json, report.standard);
  json.member("queue", report.queue);
  json.member("total", counts.total());
  json.member("ready", counts.ready);
  json.member("in_flight", counts.in_flight);
  json.member("delayed", counts.delayed);
  json.member("dlq", report.dlq.counts.total());
  json.key("oldest_ready_seconds");
  if (const auto oldest = report.oldest_ready(now)) {
    json.word(seconds_text(*oldest));
  } else {
    json.null();
  }
  json.key("age_seconds");
  json.word(seconds_text(age_of(report)));
  json.member("approximate", counts.at_least);
  json.member("at_least", counts.at_least);
  json.member("dlq_approximate", report.dlq.counts.at_least);
  if (const auto pace = paces.find(report.queue); pace != paces.end()) {
    write_pace(json, pace->second);
  }
  write_errors(json, "dlq_errors", report.dlq);
  write_errors(json, "retry_errors", report.standard);
  write_read_units(json, report);
  if (seen.hosts) {
    json.key("cost");
    json.begin_object();
    write_costs(json, operate::summarize_costs(*seen.hosts, report.queue, seen.prices), seen.prices);
    json.end_object();
  }
  json.end_object();
}

std::string as_json(const Look& seen, JsonWriter::Layout layout, const Paces& paces = {}) {
  JsonWriter json(layout);
  if (seen.one) {
    write(json, seen.reports.front(), seen, paces);
    return json.take_line();
  }
  json.begin_array();
  for (const QueueReport& report : seen.reports) {
    write(json, report, seen, paces);
  }
  json.end_array();
  return json.take_line();
}

/// "-48.2/s"; "-" where there is no pace yet.
std::string pace_text(const QueuePace& pace) {
  const auto rate = pace.per_second();
  return rate ? (*rate > 0 ? "+" : "") + one_decimal(*rate) + "/s" : "-";
}

/// `watched`: with how fast the queues grow or shrink.
TextTable counts_table(bool colours, bool watched) {
  std::vector<TextTable::Column> columns{{.title = "QUEUE"},
                                         {.title = "READY", .right = true},
                                         {.title = "IN FLIGHT", .right = true},
                                         {.title = "DELAYED", .right = true},
                                         {.title = "TOTAL", .right = true},
                                         {.title = "DLQ", .right = true},
                                         {.title = "OLDEST READY", .right = true}};
  if (watched) {
    columns.push_back({.title = "CHANGE", .right = true});
    columns.push_back({.title = "EMPTY IN", .right = true});
  }
  return {std::move(columns), colours};
}

void add_counts(TextTable& table, const Look& seen, const Paces* paces) {
  for (const QueueReport& report : seen.reports) {
    const queue::QueueStats& counts = report.standard.counts;
    const std::uint64_t dead = report.dlq.counts.total();
    const auto oldest = report.oldest_ready(seen.now);
    std::vector<TextTable::Cell> cells{report.queue,
                                       count_text(counts.ready, counts),
                                       std::to_string(counts.in_flight),
                                       count_text(counts.delayed, counts),
                                       count_text(counts.total(), counts),
                                       {count_text(dead, report.dlq.counts), dead == 0 ? Colour::none : Colour::red},
                                       oldest ? short_duration(*oldest) : "-"};
    if (paces != nullptr) {
      const QueuePace& pace = paces->at(report.queue);
      const auto left = pace.empty_in();
      cells.emplace_back(pace_text(pace));
      cells.emplace_back(left ? short_duration(*left) : "-");
    }
    table.add(std::move(cells));
  }
}

/// The counts, and under them why messages lie in the DLQ or wait for another attempt.
std::string as_text(const Look& seen, bool colours, const Paces* paces = nullptr) {
  TextTable table = counts_table(colours, paces != nullptr);
  add_counts(table, seen, paces);
  std::string text = table.take() + read_units_text(seen.reports);
  for (const QueueReport& report : seen.reports) {
    if (report.standard.counts.age) {
      text += report.queue + " as it was " + short_duration(age_of(report)) + " ago" +
              caveat_text(report.standard.counts) + "; --exact counts.\n";
    } else if (report.standard.counts.at_least) {
      text += report.queue + " has at least so much, as no host tells what lies in it; --exact counts.\n";
    }
  }
  if (seen.hosts) {
    const std::string queue = seen.one ? seen.reports.front().queue : std::string();
    text += "\n" + cost_rows_text(operate::summarize_costs(*seen.hosts, queue, seen.prices), seen.prices, colours);
  }
  for (const QueueReport& report : seen.reports) {
    const std::string dead = error_table(report.dlq, seen.now, colours);
    if (!dead.empty()) {
      text += "\nIn the dead-letter half of " + report.queue + ":\n" + dead;
    }
    const std::string retried = error_table(report.standard, seen.now, colours);
    if (!retried.empty()) {
      text += "\nFailed and to be retried in " + report.queue + ":\n" + retried;
    }
  }
  return text;
}

/// Shows a look each interval until Ctrl-C or until nobody reads.
class Watch {
 public:
  Watch(QueueSession& session, const Wanted& wanted, Console& console, Output output)
      : session_(session),
        wanted_(wanted),
        console_(console),
        output_(output),
        rows_(counts_table(console.output_has_colour(), true)) {}

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
      pollfd watched{interrupt.descriptor(), POLLIN, 0};
      ::poll(&watched, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(interval).count()));
      if (interrupt.raised()) {
        break;
      }
    }
    return Exit::ok();
  }

 private:
  void note_paces(const Look& seen) {
    for (const QueueReport& report : seen.reports) {
      paces_[report.queue].add(session_.clock().steady_now(), report.standard.counts.total());
    }
  }

  void show(const Look& seen) {
    if (console_.output_is_terminal()) {
      const bool colours = console_.output_has_colour();
      console_.out(kClearScreen);
      console_.out(output_ == Output::text ? headline(seen.now, colours) + as_text(seen, colours, &paces_)
                                           : as_json(seen, JsonWriter::Layout::indented, paces_));
    } else if (output_ == Output::json) {
      console_.out(as_json(seen, JsonWriter::Layout::compact, paces_));
    } else {
      add_counts(rows_, seen, &paces_);
      console_.out(rows_.take());
    }
    console_.flush();
    for (const std::string& failure : seen.failures) {
      console_.note(failure);
    }
  }

  /// Tells a screen that stands still from one whose queue does.
  std::string headline(WallTime now, bool colours) const {
    constexpr std::size_t kToTheSecond = std::string_view("2006-01-02T15:04:05").size();
    const std::string text = format_timestamp(now).substr(0, kToTheSecond) + "Z, every " + every_ + "; Ctrl-C ends";
    return (colours ? coloured(text, Colour::dim) : text) + "\n\n";
  }

  QueueSession& session_;
  const Wanted wanted_;
  Console& console_;
  const Output output_;
  std::string every_;
  TextTable rows_;  ///< where there is no terminal: one headline for all
  Paces paces_;
};

Exit watch(const Arguments& arguments, QueueSession& session, const Wanted& wanted, Output output, Console& console) {
  SLUICE_TRY(interval, arguments.duration("interval", kInterval));
  if (*interval < kShortestInterval || *interval > std::chrono::hours(24)) {
    return Exit::usage("--interval " + arguments.get("interval") + ": write a time from 100ms to 1d");
  }
  return Watch(session, wanted, console, output).run(*interval);
}

Exit stats(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  if (arguments.has("interval") && !arguments.has("watch")) {
    return Exit::usage("--interval goes with --watch only");
  }
  SLUICE_TRY(session, QueueSession::open(arguments, QueueSession::Queue::optional));
  if (session->queue().empty()) {
    if (auto jobs = check_job_files(session->host()); jobs.code() != kExitOk) {
      return jobs;
    }
  }
  std::optional<FleetSession> fleet;
  if (arguments.has("cost")) {
    SLUICE_TRY(opened, FleetSession::open(arguments));
    fleet.emplace(std::move(*opened));
  }
  const Wanted wanted{arguments.has("exact"), fleet ? &*fleet : nullptr};
  if (arguments.has("watch")) {
    return watch(arguments, *session, wanted, *output, console);
  }
  SLUICE_TRY(seen, look(*session, wanted));
  console.out(*output == Output::text ? as_text(*seen, console.output_has_colour())
                                      : as_json(*seen, JsonWriter::Layout::indented));
  return seen->failures.empty() ? Exit::ok() : Exit(kExitFailure, std::move(seen->failures));
}

}  // namespace

Command stats_command() {
  return {
      .name = "stats",
      .alias = "qstat",
      .group = "Queues",
      .summary = "Count the messages of one queue, or of all, by state",
      .usage = "[--exact] [--cost] [--watch [--interval TIME]] [OPTION]...",
      .description =
          "Prints a JSON object for one queue, an array of them for all that the host file and its jobs "
          "name: the first hundred ids, those of them that are hidden, and the counts. total = ready + in_flight + "
          "delayed; dlq counts the dead-letter half, whose errors are grouped. With DynamoDB it says what the look "
          "cost in read units. `qstat` is another name for it.\n\n"
          "The numbers are counted for this look, on SQLite and in DynamoMQ's tables; age_seconds is then 0. Where the "
          "hosts that own a queue know them, theirs are shown, with their age: of what they have not read all "
          "there is at least so much (at_least, +). Where no host works on such a queue, a megabyte of each shard is "
          "counted. --exact counts all the same, which reads the whole queue, and has ids "
          "and errors. --cost adds what the last hour has cost, as `sluice cost` has it.\n\n"
          "--watch shows it again and again until Ctrl-C, with how fast each queue grows or shrinks and when it is "
          "empty: on a terminal in place, otherwise one line each time.",
      .flags = with_store_flags({{.name = "exact", .value = {}, .help = "count, whatever older numbers there are"},
                                 {.name = "cost", .value = {}, .help = "with what the last hour has cost"},
                                 {.name = "watch", .value = {}, .help = "go on until Ctrl-C"},
                                 {.name = "interval", .value = "TIME", .help = "how often [default: 2s]"}}),
      .examples =
          "sluice stats --queue orders\n"
          "sluice stats --watch --output text",
      .run = stats,
  };
}

}  // namespace sluice::cli
