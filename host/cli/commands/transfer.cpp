#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/copy.hpp"
#include "host/operate/line_reader.hpp"
#include "host/operate/record_json.hpp"
#include "host/operate/watcher.hpp"

namespace sluice::cli {

namespace {

using operate::LineReader;

std::string records(std::uint64_t count) { return counted(count, "record"); }

Exit run_export(operate::Exporter& exporter, QueueSession& session, Console& console) {
  const InterruptFlag interrupt;
  std::string lines;
  for (bool more = true; more && console.writable();) {
    if (interrupt.raised()) {
      return {kExitInterrupted, "interrupted after " + records(exporter.exported()) +
                                    "; what is written is whole lines, and the rest is missing: run it again"};
    }
    const auto step = exporter.step(lines, session.deadline());
    console.out(lines);
    console.flush();
    lines.clear();
    if (step.has_error()) {
      return Exit::failure(session.explained(step.error()) + "; " + records(exporter.exported()) +
                           " are written, the rest is missing: run it again");
    }
    more = *step;
    if (!console.output_is_terminal()) {
      console.progress(records(exporter.exported()) + " exported");
    }
  }
  return Exit::ok();
}

Exit export_queue(const Arguments& arguments, Console& console) {
  SLUICE_TRY(limit, arguments.count("limit", 0, 1'000'000'000));
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  operate::Exporter exporter(session->oper(), session->clock(),
                             {.halves = halves_of(arguments),
                              .filter = std::move(*filter),
                              .limit = *limit,
                              .consistent = arguments.has("consistent")});
  Exit exit = run_export(exporter, *session, console);
  console.end_progress();
  if (const auto cost = session->cost(); cost && console.output_failure() == 0) {
    console.note("exported " + records(exporter.exported()) +
                 "; DynamoDB: " + cost::text_of(*cost, exporter.exported(), "record"));
  } else if (exit.code() == kExitOk && console.error_is_terminal() && !console.output_is_terminal()) {
    console.note("exported " + records(exporter.exported()));
  }
  return exit;
}

/// One run over the lines of a file. For one use.
class ImportRun {
 public:
  ImportRun(QueueSession& session, bool keep_going, bool keep_leases, Console& console)
      : session_(session),
        console_(console),
        keep_going_(keep_going),
        importer_(session.oper(), session.clock(), {.keep_leases = keep_leases}) {}

  Exit run(int input) {
    const InterruptFlag interrupt;
    LineReader reader(input, interrupt.descriptor(), operate::kMaxRecordLine);
    auto status = LineReader::Status::stopped;
    while (!interrupt.raised()) {
      std::string_view text;
      status = reader.next(text);
      const bool goes_on =
          status == LineReader::Status::line ? take(text) : status == LineReader::Status::too_long && pass_over();
      if (!goes_on) {
        break;
      }
    }
    const int reason = errno;
    // What was read before an error or an interruption is good, and is kept.
    if (store_error_.empty()) {
      flush();
    }
    console_.end_progress();
    return finish(interrupt.raised() ? LineReader::Status::stopped : status, reason);
  }

  const operate::Importer::Counts& counts() const { return importer_.counts(); }
  std::uint64_t lines() const { return line_; }
  /// Why it has not come to its end, for the audit; empty: it has.
  const std::string& stopped_by() const { return stopped_by_; }
  std::string so_far() const {
    return std::to_string(counts().imported) + " imported, " + std::to_string(counts().existing) + " there already";
  }

 private:
  /// False when this line ends the run.
  bool take(std::string_view text) {
    ++line_;
    if (const auto refusal = importer_.add(line_, text)) {
      return note(*refusal);
    }
    return !importer_.full() || flush();
  }

  /// The same of a line that was not read.
  bool pass_over() { return note(importer_.refuse(++line_, "longer than 128 MiB, which no record is")); }

  bool note(const operate::Importer::Refusal& refusal) {
    const std::string text = "line " + std::to_string(refusal.line) + ": " + refusal.reason;
    if (keep_going_) {
      console_.note(text);
      return true;
    }
    if (stopped_by_.empty()) {
      stopped_by_ = text;
    }
    return false;
  }

  bool flush() {
    const auto refusals = importer_.flush(session_.deadline());
    if (refusals.has_error()) {
      store_error_ = session_.explained(refusals.error());
      return false;
    }
    bool going_on = true;
    for (const auto& refusal : *refusals) {
      going_on = note(refusal) && going_on;
    }
    console_.progress("line " + std::to_string(line_) + ", " + so_far());
    return going_on;
  }

  Exit finish(LineReader::Status status, int reason) {
    constexpr const char* kAgain = "; the same command again passes over what is there and goes on";
    if (!store_error_.empty()) {
      stopped_by_ = store_error_;
      return Exit::failure("stopped at line " + std::to_string(importer_.unwritten_line()) + " (" + so_far() +
                           "): " + store_error_ + kAgain);
    }
    if (!stopped_by_.empty()) {
      return Exit::failure(stopped_by_ + "; stopped there (" + so_far() +
                           "); mend the line and run it again, or pass over such lines with --on-error continue");
    }
    if (status == LineReader::Status::stopped) {
      stopped_by_ = "interrupted";
      return {kExitInterrupted, "interrupted after line " + std::to_string(line_) + " (" + so_far() + ")" + kAgain};
    }
    if (status == LineReader::Status::failed) {
      stopped_by_ = "line " + std::to_string(line_ + 1) + ": cannot read: " + std::strerror(reason);
      return Exit::failure(stopped_by_ + " (" + so_far() + ")" + kAgain);
    }
    if (counts().refused > 0) {
      return Exit::failure(std::to_string(counts().refused) + " of " + std::to_string(line_) +
                           " lines were not imported; mend them and run it again, what is there stays as it is");
    }
    return Exit::ok();
  }

  QueueSession& session_;
  Console& console_;
  const bool keep_going_;
  operate::Importer importer_;
  std::uint64_t line_ = 0;
  std::string store_error_;  ///< why the store could not go on; empty: it could
  std::string stopped_by_;
};

void report(const ImportRun& run, const std::string& queue, Console& console) {
  const auto& counts = run.counts();
  console.out(console.shows_text() ? run.so_far() + ", " + std::to_string(counts.refused) + " refused, of " +
                                         std::to_string(run.lines()) + " lines\n"
                                   : json_line("queue", queue, "lines", run.lines(), "imported", counts.imported,
                                               "existing", counts.existing, "refused", counts.refused));
}

Exit import_queue(const Arguments& arguments, Console& console) {
  if (arguments.has("file") == arguments.reads_stdin()) {
    return Exit::usage("where are the records? give --file FILE, or - for standard input");
  }
  SLUICE_TRY(file, arguments.has("file") ? open_named(arguments, "file") : Descriptor());
  SLUICE_TRY(session, QueueSession::open(arguments));
  session->oper().begin({.what = "import into queue " + session->queue(), .reason = arguments.get("reason")});
  ImportRun run(*session, arguments.get("on-error") == "continue", arguments.has("keep-leases"), console);
  Exit exit = run.run(file->open() ? file->get() : STDIN_FILENO);
  session->finish_deed({run.counts().imported, run.counts().existing, run.counts().refused}, run.stopped_by());
  report(run, session->queue(), console);
  if (const auto cost = session->cost()) {
    console.note("imported " + std::to_string(run.counts().imported) +
                 " records; DynamoDB: " + cost::text_of(*cost, run.counts().imported, "record"));
  }
  return exit;
}

using operate::Event;
using operate::EventKind;

constexpr std::size_t kLongestEventName = std::string_view("dead lettered").size();

Colour colour_of_event(EventKind kind) {
  switch (kind) {
    case EventKind::dead_lettered:
      return Colour::red;
    case EventKind::retrying:
    case EventKind::expired:
      return Colour::yellow;
    case EventKind::gone:
    case EventKind::redriven:
      return Colour::green;
    case EventKind::claimed:
    case EventKind::released:
    case EventKind::out_of_view:
      return Colour::dim;
    default:
      return Colour::none;
  }
}

bool tells_failure(const Event& event) {
  return !event.message.record.failure.empty() &&
         (event.kind == EventKind::retrying || event.kind == EventKind::dead_lettered);
}

bool tells_due_time(const Event& event) {
  return event.message.state == queue::MessageState::delayed && event.kind != EventKind::gone;
}

std::string event_line(const Event& event) {
  const queue::StoredMessage& message = event.message.record;
  const auto failure = [&](JsonWriter& json) {
    if (tells_failure(event)) {
      put_members(json, "error", message.failure.error, "attempts", message.failure.attempts, "handler",
                  message.failure.handler, "host", message.failure.host);
    }
  };
  JsonWriter json(JsonWriter::Layout::compact);
  put_object(json, "at", event.seen_at, "event", to_string(event.kind), "id", message.message.id, "queue_type",
             to_string(message.half), "receive_count", message.message.attempt, "version", message.version,
             member_if(tells_due_time(event), "due_at", event.message.due_at()), failure);
  return json.take_line();
}

/// "23:14:00.906", UTC as everywhere.
std::string clock_text(WallTime time) { return format_timestamp(time).substr(11, 12); }

std::vector<TextTable::Cell> event_row(const Event& event) {
  std::string name(to_string(event.kind));
  std::replace(name.begin(), name.end(), '_', ' ');
  name.resize(kLongestEventName, ' ');  // rows come one by one, and stay aligned
  std::string detail = tells_due_time(event) ? "due " + clock_text(event.message.due_at()) : std::string();
  if (tells_failure(event)) {
    detail += (detail.empty() ? "" : ", ") + event.message.record.failure.error;
  }
  return {clock_text(event.seen_at),
          {name, colour_of_event(event.kind)},
          event.message.record.message.id,
          "received " + std::to_string(event.message.record.message.attempt) + "x",
          detail};
}

/// Waits for the next look; at once on Ctrl-C, and when nobody reads standard output any more: true then.
bool wait_or_lose_reader(const InterruptFlag& interrupt, Duration interval) {
  std::array<pollfd, 2> watched{pollfd{interrupt.descriptor(), POLLIN, 0}, pollfd{STDOUT_FILENO, 0, 0}};
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(interval).count();
  ::poll(watched.data(), watched.size(), static_cast<int>(milliseconds));
  return !interrupt.raised() && (watched[1].revents & (POLLERR | POLLNVAL)) != 0;
}

/// Looks until somebody ends it. For one use.
class Tail {
 public:
  Tail(QueueSession& session, operate::LookRequest request, Console& console)
      : session_(session),
        request_(std::move(request)),
        console_(console),
        rows_({{}, {}, {.least = 20}, {.spare = 1}, {.least = 16, .prose = true}}, console.screen()) {}

  Exit run(Duration interval) {
    const InterruptFlag interrupt;
    while (console_.writable() && !interrupt.raised()) {
      if (auto failed = look()) {
        return *failed;
      }
      if (wait_or_lose_reader(interrupt, interval)) {
        return Exit::silent(kExitBrokenPipe);
      }
    }
    return Exit::ok();
  }

  std::uint64_t looks() const { return looks_; }

 private:
  /// A failure that does not pass by itself.
  std::optional<Error> look() {
    auto found = operate::take_look(session_.oper(), request_, session_.clock(), session_.deadline());
    if (!found) {
      if (!found.error().transient()) {
        return found.error();
      }
      if (found.error().message() != last_trouble_) {
        last_trouble_ = found.error().message();
        console_.note(last_trouble_ + "; looking again");
      }
      return std::nullopt;
    }
    last_trouble_.clear();
    ++looks_;
    tell_limits(*found);
    for (const Event& event : before_ ? operate::events_between(*before_, *found) : std::vector<Event>()) {
      if (console_.shows_text()) {
        rows_.add(event_row(event));
      } else {
        console_.out(event_line(event));
      }
    }
    before_ = std::move(*found);
    console_.out(rows_.take());
    console_.flush();
    return std::nullopt;
  }

  void tell_limits(const operate::Snapshot& found) {
    if (!found.whole() && !told_window_) {
      told_window_ = true;
      console_.note("there are more than " + std::to_string(request_.limit) +
                    " records; of the standard half the oldest are watched, of the dead-letter half the youngest: "
                    "--limit N widens the view");
    }
    if (const auto cost = session_.cost(); cost && looks_ == 1) {
      console_.note("watching " + session_.queue() + "; one look costs " + cost::text_of(*cost, 0, "look") +
                    "; --interval and --limit change that");
    }
  }

  QueueSession& session_;
  const operate::LookRequest request_;
  Console& console_;
  TextTable rows_;
  std::optional<operate::Snapshot> before_;  ///< the look before this one
  std::string last_trouble_;
  bool told_window_ = false;
  std::uint64_t looks_ = 0;
};

Exit tail(const Arguments& arguments, Console& console) {
  SLUICE_TRY(interval, arguments.duration("interval", std::chrono::seconds(1), std::chrono::milliseconds(50),
                                          std::chrono::hours(24)));
  SLUICE_TRY(limit, arguments.count("limit", 1000, 100'000));
  SLUICE_TRY(filter, parse_filter(arguments));
  SLUICE_TRY(session, QueueSession::open(arguments));
  const std::vector both{queue::Half::standard, queue::Half::dlq};
  Tail watch(*session,
             {.halves = arguments.has("dlq") ? std::vector{queue::Half::dlq} : both,
              .limit = *limit,
              .filter = std::move(*filter)},
             console);
  Exit exit = watch.run(*interval);
  if (const auto cost = session->cost(); cost && exit.code() == kExitOk) {
    console.note(std::to_string(watch.looks()) + " looks; DynamoDB: " + cost::text_of(*cost, watch.looks(), "look"));
  }
  return exit;
}

}  // namespace

std::vector<Command> copy_commands() {
  return {
      {
          .name = "export",
          .summary = "Write a queue's records as lines of JSON, for `sluice import`",
          .usage = "[QUEUE] [--dlq | --both] [OPTION]...",
          .description =
              "Each line is a whole record: body, attributes, times to the nanosecond, counts, version, failure, and "
              "\"item\", the record as DynamoDB JSON, where it holds sets, binary or attributes that nobody here "
              "knows. Deduplication windows, unique keys and idempotency keys stay behind. Nothing is claimed or "
              "changed.\n\n"
              "What is sent, worked on or moved meanwhile may be missing or come twice; stop hosts and producers for "
              "an exact copy. On DynamoDB only items that the index shows are records; it lags behind writes, by "
              "seconds at worst, and --consistent reads the whole table instead, in no order.",
          .flags = with_store_flags(joined({{"dlq", {}, "the dead-letter half instead"},
                                            against("dlq", {"both", {}, "both halves, the dead-letter half last"}),
                                            {"limit", "N", "write at most N records"},
                                            kConsistentFlag},
                                           filter_flags())),
          .examples = "sluice export orders --both > orders.jsonl\n"
                      "sluice export a --config here.toml |\n"
                      "  sluice import a --config there.toml -",
          .run = export_queue,
      },
      {
          .name = "import",
          .summary = "Read records that `sluice export` wrote into a queue",
          .usage = "[QUEUE] (--file FILE | -) [OPTION]...",
          .description =
              "Records keep everything: id, half, body, attributes, times, counts, version and failure. One whose id "
              "is in the queue already is passed over and counted, so a second run does not duplicate and goes on "
              "where the first ended. A delayed record stays delayed; one in flight comes in visible, unless "
              "--keep-leases is given.\n\n"
              "A line that is no record stops the run, after what came before it is written, and its number is named. "
              "Ctrl-C ends it between two batches. Prints a JSON object with the counts; exit 1 when a line was "
              "refused.\n\n"
              "A queue that no job, host file or earlier message knows is refused without --create.",
          .flags = with_store_flags(
              {{"file", "FILE", "the file of records"},
               one_of({"on-error", "stop|continue", "what a line that is no record does [default: stop]"}),
               {"keep-leases", {}, "what is in flight stays hidden until its time"},
               kCreateFlag,
               kReasonFlag}),
          .examples = "sluice import orders --file orders.jsonl\n"
                      "zcat backup.jsonl.gz | sluice import orders --on-error continue -",
          .stdin_operand = true,
          .run = import_queue,
      },
      {
          .name = "tail",
          .summary = "Show what happens in a queue, as it happens",
          .usage = "[QUEUE] [--dlq] [--interval TIME] [--limit N] [OPTION]...",
          .description =
              "Looks at the queue again and again and tells what has changed: arrived, claimed, retrying with its "
              "error, released, expired (the lease ran out), dead_lettered with its reason, redriven, edited, and "
              "gone (done, discarded or removed). One JSON object a line, or a row with --output text. Ends on "
              "Ctrl-C.\n\n"
              "It compares looks and follows no log: what comes and goes between two of them is not seen, and several "
              "claims of a message between them are one. With more than --limit records in a half the oldest of the "
              "standard and the youngest of the dead-letter half are watched; one that leaves the view is "
              "out_of_view, which may mean gone. Nothing is claimed or changed. On DynamoDB each look reads that many "
              "records, and says what it costs.",
          .flags = with_store_flags(joined({{"dlq", {}, "only the dead-letter half"},
                                            {"interval", "TIME", "between two looks, 50ms to 24h [default: 1s]"},
                                            {"limit", "N", "look at so many records of each half [default: 1000]"}},
                                           filter_flags())),
          .examples = "sluice tail orders --output text\n"
                      "sluice tail orders --dlq | jq -r .error",
          .run = tail,
      },
  };
}

}  // namespace sluice::cli
