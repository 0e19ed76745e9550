#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/random.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/visible.hpp"
#include "config/syntax.hpp"
#include "host/cli/command.hpp"
#include "host/cli/commands/bulk.hpp"
#include "host/cli/convert/conversion.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/queue/error_groups.hpp"
#include "host/runtime/host_queues.hpp"

namespace sluice::cli {

namespace {

using queue::outbox::AdminSession;
using queue::outbox::Finding;
using queue::outbox::TableCounts;

constexpr Duration kCallTime = std::chrono::seconds(60);
constexpr std::size_t kPruneBatch = 5000;
constexpr std::string_view kInterrupted = "interrupted";

/// One outbox of the host file. A resource that can be moved.
struct ChosenOutbox {
  std::string name;
  config::HostConfig host;
  std::unique_ptr<SystemClock> clock = std::make_unique<SystemClock>();
  std::unique_ptr<SeededRandom> random = std::make_unique<SeededRandom>();
  runtime::OpenOutbox open{};
  bool named = false;  ///< by `producer`

  queue::outbox::Database& database() const { return open.queues->database(); }
  Deadline deadline() const { return Deadline::after(*clock, kCallTime); }
  /// A database's answer; exit 1 where it has none.
  template <typename T>
  OrExit<T> checked(Result<T> answer) const {
    return or_exit(kExitFailure, std::move(answer), "outbox " + name + ": ");
  }
};

OrExit<std::string> chosen_name(const Arguments& arguments, const config::HostConfig& host) {
  if (!arguments.get("outbox").empty()) {
    return arguments.get("outbox");
  }
  if (host.outboxes.size() == 1) {
    return host.outboxes.begin()->first;
  }
  const auto names = mapped(host.outboxes, [](const auto& outbox) { return outbox.first; });
  return Exit::usage(names.empty() ? host.file + " has no [outbox.NAME]"
                                   : "which outbox? name one of " + sluice::joined(names) + " of " + host.file);
}

OrExit<ChosenOutbox> choose(const Arguments& arguments) {
  SLUICE_TRY(host, load_host_file(arguments));
  SLUICE_TRY(name, chosen_name(arguments, *host));
  ChosenOutbox outbox{.name = *std::move(name)};
  SLUICE_TRY(open, or_exit(kExitConfiguration,
                           runtime::open_outbox(
                               *host, outbox.name,
                               {.clock = *outbox.clock, .random = *outbox.random, .jobs = counting_jobs(*host)})));
  outbox.open = *std::move(open);
  outbox.named = !host->outboxes.at(outbox.name).producer.empty();
  outbox.host = std::move(*host);
  return outbox;
}

Exit print_ddl(const Arguments& arguments, Console& console) {
  SLUICE_TRY(outbox, choose(arguments));
  return print(outbox->database().ddl(arguments.has("in-use")), console);
}

struct Status {
  std::string outbox;
  TableCounts counts;
  std::vector<Finding> findings;
  bool usable = true;
};

Result<Status> look(const ChosenOutbox& outbox, bool sent) {
  SLUICE_TRY(desk, outbox.database().open_admin(outbox.deadline()));
  Status status{.outbox = outbox.name, .counts = {}, .findings = {}};
  SLUICE_TRY(findings, (*desk)->inspect(outbox.deadline()));
  status.findings = std::move(*findings);
  for (const Finding& finding : status.findings) {
    status.usable = status.usable && !finding.fatal;
  }
  if (status.usable) {
    const queue::outbox::CountRequest wanted{.sent = sent, .details = true, .jobs = outbox.open.queues->jobs()};
    SLUICE_TRY(counts, (*desk)->count(wanted, outbox.deadline()));
    status.counts = std::move(*counts);
    std::map<std::string, std::uint64_t> causes;
    for (const auto& [error, rows] : status.counts.by_error) {
      causes[queue::folded_error(error)] += rows;
    }
    status.counts.by_error = std::move(causes);
  }
  if (status.usable && !outbox.named) {
    SLUICE_TRY(source, (*desk)->source_id(outbox.deadline()));
    if (!source->doubt.empty()) {
      status.findings.push_back({.text = source->doubt});
    }
  }
  return status;
}

void describe(const Status& status, operate::Fields& fields) {
  const TableCounts& counts = status.counts;
  fields.member("outbox", status.outbox);
  fields.member("usable", status.usable);
  if (status.usable) {
    fields.number("pending", {"pending"}, counts.ready + counts.waiting);
    fields.member("ready", counts.ready);
    fields.number("waiting", {"of these waiting for a retry"}, counts.waiting);
    fields.number("excluded", {"excluded by the lists of all jobs"}, counts.excluded);
    fields.number("dead", {"dead letters"}, counts.dead);
    if (counts.sent) {
      fields.number("sent", {"sent and kept"}, *counts.sent);
    }
    if (counts.oldest) {
      const auto age = std::chrono::duration_cast<std::chrono::seconds>(*counts.oldest);
      fields.member("oldest_pending_seconds", age.count());
      fields.cell({"oldest pending"}, config::format_duration(age) + " old");
    }
    if (counts.oldest_id) {
      fields.text("oldest_pending_id", {"oldest pending row"}, std::to_string(*counts.oldest_id));
    }
    fields.member("by_type", counts.by_type);
    fields.member("by_error", counts.by_error);
  }
  if (fields.json() != nullptr) {
    put_members(*fields.json(), "findings", array_of(status.findings, [](JsonWriter& json, const Finding& finding) {
      put_object(json, "fatal", finding.fatal, "text", finding.text);
    }));
  }
}

std::string text_of(const Status& status, const Screen& screen) {
  TextTable table({{}, {}}, {.colours = screen.colours});
  for (auto& [column, cell] : operate::row_of(status, WallTime{})) {
    table.add({std::string(column.title), std::move(cell)});
  }
  for (const auto& [title, counts] :
       {std::pair("type ", &status.counts.by_type), std::pair("error ", &status.counts.by_error)}) {
    for (const auto& [what, count] : *counts) {
      table.add({title + what, std::to_string(count)});
    }
  }
  for (const Finding& finding : status.findings) {
    table.add(
        {finding.fatal ? TextTable::Cell("wrong", Colour::red) : TextTable::Cell("could be better", Colour::yellow),
         finding.text});
  }
  return wrapped(table.take(), screen);
}

Exit print_status(const Arguments& arguments, Console& console) {
  SLUICE_TRY(outbox, choose(arguments));
  SLUICE_TRY(status, outbox->checked(look(*outbox, arguments.has("sent"))));
  console.out(console.shows_json() ? json_of(*status, {}) : text_of(*status, console.screen()));
  return status->usable ? Exit::ok() : Exit::failure("outbox " + outbox->name + " cannot be published from");
}

struct Pruned {
  std::uint64_t rows = 0;
  std::string stopped_by{};  ///< "interrupted", or what the database says; empty: all are gone
};

/// Batch by batch, so that no transaction is long.
Pruned prune_all(const ChosenOutbox& outbox, AdminSession& desk, Duration age, Console& console) {
  const InterruptFlag interrupt;
  const BulkProgress progress(outbox.clock->steady_now(), std::nullopt);
  Pruned pruned;
  while (true) {
    const auto gone = desk.prune({.sent_before = age, .limit = kPruneBatch}, outbox.deadline());
    if (!gone) {
      pruned.stopped_by = gone.error().message();
      break;
    }
    pruned.rows += *gone;
    console.progress(std::to_string(pruned.rows) + " rows deleted" +
                     progress.text(pruned.rows, outbox.clock->steady_now()));
    if (*gone < kPruneBatch) {
      break;
    }
    if (interrupt.raised()) {
      pruned.stopped_by = kInterrupted;
      break;
    }
  }
  console.end_progress();
  return pruned;
}

Exit report_pruned(const ChosenOutbox& outbox, bool dry_run, std::uint64_t rows, Console& console) {
  return show_result(console, std::to_string(rows) + (dry_run ? " rows would be deleted\n" : " rows deleted\n"),
                     "outbox", outbox.name, "dry_run", dry_run, "deleted", dry_run ? 0 : rows, "old_enough", rows);
}

Exit prune(const Arguments& arguments, Console& console) {
  SLUICE_TRY(age, arguments.duration("sent-older-than", Duration::zero()));
  const bool dry_run = arguments.has("dry-run");
  if (!dry_run && !arguments.has("yes") && !console.interactive()) {
    return Exit::usage("rows are deleted for good; say --yes, as there is no terminal to ask on, or --dry-run");
  }
  SLUICE_TRY(outbox, choose(arguments));
  SLUICE_TRY(desk, outbox->checked(outbox->database().open_admin(outbox->deadline())));
  if (dry_run || !arguments.has("yes")) {
    SLUICE_TRY(old_enough, outbox->checked((*desk)->prune({.sent_before = *age, .dry_run = true}, outbox->deadline())));
    if (dry_run) {
      return report_pruned(*outbox, true, *old_enough, console);
    }
    SLUICE_PASS_ON(confirmed(arguments, console,
                             "Delete " + std::to_string(*old_enough) + " rows that were sent more than " +
                                 config::format_duration(*age) + " ago?",
                             "deleted"));
  }
  OpenQueues own(outbox->host);
  SLUICE_TRY(audit, outbox->checked(operate::AuditedOperator::open(
                        own.queues, std::string(config::kOutboxPrefix) + outbox->name, this_operator(), own.random)));
  (*audit)->begin({.what = "outbox prune " + outbox->name,
                   .filter = "--sent-older-than " + arguments.get("sent-older-than"),
                   .reason = arguments.get("reason")});
  if (const auto begun = (*audit)->note_begun(outbox->deadline()); !begun) {
    static_cast<void>((*audit)->finish({}, {}, outbox->deadline()));
    return Exit::failure(begun.error().message());
  }
  const Pruned pruned = prune_all(*outbox, **desk, *age, console);
  if (const auto ended = (*audit)->finish({.changed = pruned.rows}, pruned.stopped_by, outbox->deadline()); !ended) {
    QueueSession::warn(open_deed(ended.error().message()));
  }
  const Exit reported = report_pruned(*outbox, false, pruned.rows, console);
  return pruned.stopped_by.empty()           ? reported
         : pruned.stopped_by == kInterrupted ? Exit(kExitInterrupted, "interrupted; what was deleted stays deleted")
                                             : Exit::failure("outbox " + outbox->name + ": " + pruned.stopped_by);
}

std::vector<Flag> with_outbox_flags(const std::vector<Flag>& own) {
  return joined(joined({alone({"outbox", "NAME", "of [outbox.NAME] in the host file [default: the only one]"})}, own),
                {kConfigFlag});
}

using convert::Conversion;
using convert::NewFile;

/// Passwords may stand in it, so that nobody but its owner reads it. It is among `made` once it is there.
OrExit<void> write_new(const std::filesystem::path& path, const std::string& text,
                       std::vector<std::filesystem::path>& made) {
  SLUICE_PASS_ON(make_folder_of(path));
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.open()) {
    made.push_back(path);
  } else if (errno == EEXIST) {
    return Exit::failure(path.string() + " is there already and is not overwritten; name another folder");
  }
  return file.open() && write_all(file.get(), text)
             ? OrExit<void>()
             : Exit::failure("cannot write " + path.string() + ": " + std::strerror(errno));
}

/// All of them, or none.
OrExit<void> write_files(const std::filesystem::path& folder, const std::vector<NewFile>& files) {
  std::vector<std::filesystem::path> made;
  for (const NewFile& file : files) {
    if (auto written = write_new(folder / file.path, file.text, made); written.has_error()) {
      for (const std::filesystem::path& path : made) {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
      }
      return written;
    }
  }
  return {};
}

std::string as_text(const std::string& source, const std::string& folder, const Conversion& conversion,
                    const Screen& screen) {
  std::string text;
  for (const NewFile& file : conversion.files) {
    text += "written: " + (std::filesystem::path(folder) / file.path).string() + "\n";
  }
  for (const convert::Remark& remark : conversion.remarks) {
    text += source + ":" + std::to_string(remark.line) + ": " + visible(remark.field + ": " + remark.what) + "\n";
  }
  return wrapped(text, screen);
}

std::string as_json(const std::string& folder, const Conversion& conversion) {
  const auto path_of = [&folder](const NewFile& file) { return (std::filesystem::path(folder) / file.path).string(); };
  return json_line("files", mapped(conversion.files, path_of), "remarks",
                   array_of(conversion.remarks, [](JsonWriter& json, const convert::Remark& remark) {
                     put_object(json, "line", remark.line, "field", remark.field, "remark", remark.what);
                   }));
}

Exit convert_file(const Arguments& arguments, Console& console) {
  const std::string name = arguments.get("name", "outbox");
  if (const char* expected = config::name_complaint(name)) {
    return Exit::usage("--name must be " + std::string(expected));
  }
  const std::string source = arguments.get("file");
  SLUICE_TRY(text, read_named(arguments, "file"));
  const Conversion conversion = convert::convert_worker_file(*text, name, config::process_environment());
  if (!conversion.complaints.empty()) {
    return {kExitConfiguration, source + ": " + conversion.complaints};
  }
  const std::string folder = arguments.get("output");
  SLUICE_PASS_ON(write_files(folder, conversion.files));
  return print(
      arguments.has("json") ? as_json(folder, conversion) : as_text(source, folder, conversion, console.screen()),
      console);
}

}  // namespace

std::vector<Command> outbox_commands() {
  return {
      {
          .name = "outbox ddl",
          .summary = "Print the SQL that makes an outbox table, its indexes and its trigger",
          .usage = "[NAME] [--in-use] [OPTION]...",
          .description =
              "With the names that the host file gives the table and its columns. Each statement does nothing where "
              "what it makes is there already. With --in-use it adds columns, indexes and the trigger to a table that "
              "you have, and writers do not wait for it; in PostgreSQL the indexes are made CONCURRENTLY, which "
              "cannot run in a transaction. Connects to nothing.",
          .flags = with_outbox_flags({{"in-use", {}, "what a table lacks that is written to meanwhile"}}),
          .examples = "sluice outbox ddl orders | psql \"$DATABASE_URL\"\n"
                      "sluice outbox ddl orders --in-use | psql \"$DATABASE_URL\"",
          .run = print_ddl,
      },
      {
          .name = "outbox status",
          .summary = "Count what is pending in an outbox, and say what is wrong with its table",
          .usage = "[NAME] [--sent] [OPTION]...",
          .description =
              "Pending rows, how old the oldest is, rows that the lists of no job take, dead letters, by type and by "
              "error; and what is missing or of the wrong type in the table, by name. Fails when nothing can be "
              "published. The rows themselves are shown by the commands on queues: `sluice ls --outbox NAME`, with "
              "--dlq the dead letters, which `sluice redrive` puts back.",
          .flags = with_outbox_flags(
              joined({{"sent", {}, "count what was sent too, which reads the whole table"}}, output_flags())),
          .examples = "sluice outbox status orders\n"
                      "sluice outbox status --json | jq .pending",
          .run = print_status,
      },
      {
          .name = "outbox prune",
          .summary = "Delete rows that were sent long ago",
          .usage = "[NAME] --sent-older-than DURATION [--dry-run] [--yes] [OPTION]...",
          .description =
              "Nothing else deletes rows of an outbox. In batches of 5,000, each a transaction of its own; the oldest "
              "first. Rows that were not sent stay, dead letters included. Asks first when there is a terminal, and "
              "wants --yes when there is none. `sluice audit --outbox NAME` shows who has done it, where the host's "
              "own queues lie in a SQLite file.",
          .flags =
              with_outbox_flags(joined({required({"sent-older-than", "DURATION", "how long ago at least, such as 7d"}),
                                        {"dry-run", {}, "count them and delete none"},
                                        kYesFlag,
                                        kReasonFlag},
                                       output_flags())),
          .examples = "sluice outbox prune orders --sent-older-than 7d --dry-run\n"
                      "sluice outbox prune orders --sent-older-than 7d --yes",
          .run = prune,
      },
      {
          .name = "outbox convert",
          .summary = "Turn the YAML of outbox-worker into a host file and job files",
          .usage = "FILE --output FOLDER [OPTION]...",
          .description =
              "FILE is what n-creativesystem/outbox-worker was started with. Its templates (${VAR:-default} and the "
              "like) stay variables wherever our files have them; where they do not, what they stand for now is "
              "written. Into FOLDER go host.toml and a job file for each publisher; files that are there are not "
              "overwritten. What could not be carried over, or means something else, is printed line by line with the "
              "place in FILE and the reason. A field that is missing or wrong is named as outbox-worker names it, and "
              "nothing is written. No value of the file is ever printed, for it may be a password.",
          .flags = {alone(required({"file", "FILE", "the YAML of outbox-worker"})),
                    required({"output", "FOLDER", "where the new files go; made where it is not there"}),
                    {"name", "NAME", "what the outbox is called in them [default: outbox]"},
                    {"json", {}, "print files and remarks as JSON"}},
          .examples = "sluice outbox convert outbox_polling.yaml --output sluice\n"
                      "sluice outbox convert outbox_polling.yaml --output /etc/sluice --name orders",
          .run = convert_file,
      },
  };
}

}  // namespace sluice::cli
