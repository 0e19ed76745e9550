#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/message_text.hpp"
#include "host/cli/queue_report.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kInterval = std::chrono::seconds(2);
constexpr Duration kShortestInterval = std::chrono::milliseconds(100);
constexpr std::string_view kClearScreen = "\x1b[H\x1b[2J";

/// Reports of what was asked for, and the queues that could not be counted.
struct Look {
  std::vector<QueueReport> reports;
  std::vector<std::string> failures;
  bool one = false;  ///< of a queue that was named
  WallTime now{};
};

std::string seconds_text(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed, 3);
  return {text.data(), end.ptr};
}

OrExit<Look> look(QueueSession& session) {
  Look seen;
  seen.one = !session.queue().empty();
  const auto names = seen.one ? std::vector<std::string>{session.queue()} : known_queues(session.host());
  for (const std::string& name : names) {
    auto report = read_report(session, name);
    if (report.has_value()) {
      seen.reports.push_back(std::move(*report));
    } else if (seen.one) {
      return report.error();
    } else {
      seen.failures.push_back(report.error().lines().front());
    }
  }
  seen.now = session.clock().wall_now();
  return seen;
}

void write(JsonText& json, const QueueReport& report, WallTime now) {
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
  write_errors(json, report);
  json.end_object();
}

std::string as_json(const Look& seen, JsonText::Layout layout) {
  JsonText json(layout);
  if (seen.one) {
    write(json, seen.reports.front(), seen.now);
    return json.take_line();
  }
  json.begin_array();
  for (const QueueReport& report : seen.reports) {
    write(json, report, seen.now);
  }
  json.end_array();
  return json.take_line();
}

TextTable counts_table(bool colours) {
  return {{{.title = "QUEUE"},
           {.title = "READY", .right = true},
           {.title = "IN FLIGHT", .right = true},
           {.title = "DELAYED", .right = true},
           {.title = "TOTAL", .right = true},
           {.title = "DLQ", .right = true},
           {.title = "OLDEST READY", .right = true}},
          colours};
}

void add_counts(TextTable& table, const Look& seen) {
  for (const QueueReport& report : seen.reports) {
    const queue::QueueStats& counts = report.standard.counts;
    const std::uint64_t dead = report.dlq.counts.total();
    const auto oldest = report.oldest_ready(seen.now);
    table.add({report.queue,
               std::to_string(counts.ready),
               std::to_string(counts.in_flight),
               std::to_string(counts.delayed),
               std::to_string(counts.total()),
               {std::to_string(dead), dead == 0 ? Colour::none : Colour::red},
               oldest ? short_duration(*oldest) : "-"});
  }
}

/// The counts, and under them why messages lie in the DLQ.
std::string as_text(const Look& seen, bool colours) {
  TextTable table = counts_table(colours);
  add_counts(table, seen);
  std::string text = table.take() + read_units_text(seen.reports);
  for (const QueueReport& report : seen.reports) {
    const std::string errors = error_table(report, seen.now, colours);
    if (!errors.empty()) {
      text += "\nIn the dead-letter half of " + report.queue + ":\n" + errors;
    }
  }
  return text;
}

/// Shows a look each interval until Ctrl-C or until nobody reads.
class Watch {
 public:
  Watch(QueueSession& session, Console& console, Output output)
      : session_(session), console_(console), output_(output), rows_(counts_table(console.output_has_colour())) {}

  Exit run(Duration interval) {
    const InterruptFlag interrupt;
    every_ = config::format_duration(interval);
    for (bool first = true; console_.writable(); first = false) {
      const auto seen = look(session_);
      if (seen.has_value()) {
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
  void show(const Look& seen) {
    if (console_.output_is_terminal()) {
      const bool colours = console_.output_has_colour();
      console_.out(kClearScreen);
      console_.out(output_ == Output::text ? headline(seen.now, colours) + as_text(seen, colours)
                                           : as_json(seen, JsonText::Layout::indented));
    } else if (output_ == Output::json) {
      console_.out(as_json(seen, JsonText::Layout::compact));
    } else {
      add_counts(rows_, seen);
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
  Console& console_;
  const Output output_;
  std::string every_;
  TextTable rows_;  ///< where there is no terminal: one headline for all
};

Exit watch(const Arguments& arguments, QueueSession& session, Output output, Console& console) {
  const auto interval = arguments.duration("interval", kInterval);
  if (interval.has_error()) {
    return interval.error();
  }
  if (*interval < kShortestInterval || *interval > std::chrono::hours(24)) {
    return Exit::usage("--interval " + arguments.get("interval") + ": write a time from 100ms to 1d");
  }
  // Redrawn JSON helps nobody who did not ask for it.
  const bool unasked = !arguments.has("output") && console.output_is_terminal();
  return Watch(session, console, unasked ? Output::text : output).run(*interval);
}

Exit stats(const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  if (arguments.has("interval") && !arguments.has("watch")) {
    return Exit::usage("--interval goes with --watch only");
  }
  auto session = QueueSession::open(arguments, QueueSession::Queue::optional);
  if (session.has_error()) {
    return session.error();
  }
  if (session->queue().empty()) {
    if (auto jobs = check_job_files(session->host()); jobs.code() != kExitOk) {
      return jobs;
    }
  }
  if (arguments.has("watch")) {
    return watch(arguments, *session, *output, console);
  }
  auto seen = look(*session);
  if (seen.has_error()) {
    return seen.error();
  }
  console.out(*output == Output::text ? as_text(*seen, console.output_has_colour())
                                      : as_json(*seen, JsonText::Layout::indented));
  return seen->failures.empty() ? Exit::ok() : Exit(kExitFailure, std::move(seen->failures));
}

}  // namespace

Command stats_command() {
  return {
      .name = "stats",
      .alias = "qstat",
      .group = "Queues",
      .summary = "Count the messages of one queue, or of all, by state",
      .usage = "[--watch [--interval TIME]] [OPTION]...",
      .description =
          "Prints a JSON object for one queue, an array of them for all that the host file and its jobs "
          "name: the first hundred ids, those of them that are hidden, and the counts. total = ready + in_flight + "
          "delayed; dlq counts the dead-letter half, whose errors are grouped. With DynamoDB it says what the look "
          "cost in read units. `qstat` is another name for it.\n\n"
          "--watch shows it again and again until Ctrl-C: on a terminal in place, otherwise one line each time.",
      .flags = with_store_flags({{.name = "watch", .value = {}, .help = "go on until Ctrl-C"},
                                 {.name = "interval", .value = "TIME", .help = "how often [default: 2s]"}}),
      .examples =
          "sluice stats --queue orders\n"
          "sluice stats --watch --output text",
      .run = stats,
  };
}

}  // namespace sluice::cli
