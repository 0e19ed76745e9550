#include "host/cli/commands/outbox.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/text/json_writer.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/queue_names.hpp"
#include "host/cli/views/output.hpp"
#include "host/runtime/outbox_stores.hpp"

// The tables of [outbox.NAME]: `sluice outbox ddl`, `status` and `prune`. Rows are looked at and changed with the
// commands on queues, as those of queue "outbox:NAME".
namespace sluice::cli {

namespace {

using queue::outbox::AdminSession;
using queue::outbox::Finding;
using queue::outbox::TableCounts;

constexpr Duration kCallTime = std::chrono::seconds(60);
constexpr std::size_t kPruneBatch = 5000;

/// One outbox of the host file. A resource that can be moved.
struct ChosenOutbox {
  std::string name;
  std::unique_ptr<SystemClock> clock = std::make_unique<SystemClock>();
  std::unique_ptr<SeededRandom> random = std::make_unique<SeededRandom>();
  runtime::OpenOutbox open{};
  bool named = false;  ///< by `producer`

  queue::outbox::Database& database() const { return open.queues->database(); }
  Deadline deadline() const { return Deadline::after(*clock, kCallTime); }
  Exit failure(const Error& error) const { return Exit::failure("outbox " + name + ": " + error.message()); }
};

OrExit<std::string> chosen_name(const Arguments& arguments, const config::HostConfig& host) {
  if (!arguments.get("outbox").empty()) {
    return arguments.get("outbox");
  }
  if (host.outboxes.size() == 1) {
    return host.outboxes.begin()->first;
  }
  std::vector<std::string> names;
  for (const auto& [name, outbox] : host.outboxes) {
    names.push_back(name);
  }
  return Exit::usage(names.empty() ? host.file + " has no [outbox.NAME]"
                                   : "which outbox? name one of " + listed(names) + " of " + host.file);
}

OrExit<ChosenOutbox> choose(const Arguments& arguments) {
  SLUICE_TRY(host, load_host_file(arguments));
  SLUICE_TRY(name, chosen_name(arguments, *host));
  ChosenOutbox outbox{.name = *std::move(name)};
  auto open = runtime::open_outbox(*host, outbox.name, {*outbox.clock, *outbox.random});
  if (open.has_error()) {
    return Exit(kExitConfiguration, open.error().message());
  }
  outbox.open = *std::move(open);
  outbox.named = !host->outboxes.at(outbox.name).producer.empty();
  return outbox;
}

Exit print_ddl(const Arguments& arguments, Console& console) {
  SLUICE_TRY(outbox, choose(arguments));
  console.out(outbox->database().ddl());
  return Exit::ok();
}

struct Status {
  TableCounts counts;
  std::vector<Finding> findings;
  bool usable = true;
};

Result<Status> look(const ChosenOutbox& outbox, bool sent) {
  SLUICE_TRY(desk, outbox.database().open_admin(outbox.deadline()));
  Status status;
  SLUICE_TRY(findings, (*desk)->inspect(outbox.deadline()));
  status.findings = std::move(*findings);
  for (const Finding& finding : status.findings) {
    status.usable = status.usable && !finding.fatal;
  }
  if (status.usable) {
    SLUICE_TRY(counts, (*desk)->count({.sent = sent, .details = true}, outbox.deadline()));
    status.counts = std::move(*counts);
  }
  if (status.usable && !outbox.named) {
    SLUICE_TRY(source, (*desk)->source_id(outbox.deadline()));
    if (!source->doubt.empty()) {
      status.findings.push_back({.text = source->doubt});
    }
  }
  return status;
}

void write_counts(JsonWriter& json, const char* key, const std::map<std::string, std::uint64_t>& counts) {
  json.key(key);
  json.begin_object();
  for (const auto& [what, count] : counts) {
    json.member(what, count);
  }
  json.end_object();
}

std::string json_of(const ChosenOutbox& outbox, const Status& status) {
  JsonWriter json(JsonWriter::Layout::indented);
  const TableCounts& counts = status.counts;
  json.begin_object();
  json.member("outbox", outbox.name);
  json.member("usable", status.usable);
  if (status.usable) {
    json.member("pending", counts.ready + counts.waiting);
    json.member("ready", counts.ready);
    json.member("waiting", counts.waiting);
    json.member("dead", counts.dead);
    if (counts.sent) {
      json.member("sent", *counts.sent);
    }
    if (counts.oldest) {
      json.member("oldest_pending_seconds", std::chrono::duration_cast<std::chrono::seconds>(*counts.oldest).count());
    }
    if (counts.oldest_id) {
      json.member("oldest_pending_id", std::to_string(*counts.oldest_id));
    }
    write_counts(json, "by_type", counts.by_type);
    write_counts(json, "by_error", counts.by_error);
  }
  json.key("findings");
  json.begin_array();
  for (const Finding& finding : status.findings) {
    json.begin_object();
    json.member("fatal", finding.fatal);
    json.member("text", finding.text);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take_line();
}

void add_counts(TextTable& table, const char* title, const std::map<std::string, std::uint64_t>& counts) {
  for (const auto& [what, count] : counts) {
    table.add({std::string(title) + " " + what, std::to_string(count)});
  }
}

std::string text_of(const Status& status, bool colours) {
  TextTable table({{}, {}}, colours);
  const TableCounts& counts = status.counts;
  if (status.usable) {
    table.add({"pending", std::to_string(counts.ready + counts.waiting)});
    table.add({"of these waiting for a retry", std::to_string(counts.waiting)});
    table.add({"dead letters", std::to_string(counts.dead)});
    if (counts.sent) {
      table.add({"sent and kept", std::to_string(*counts.sent)});
    }
    if (counts.oldest) {
      const auto age = std::chrono::duration_cast<std::chrono::seconds>(*counts.oldest);
      table.add({"oldest pending", config::format_duration(age) + " old"});
    }
    if (counts.oldest_id) {
      table.add({"oldest pending row", std::to_string(*counts.oldest_id)});
    }
    add_counts(table, "type", counts.by_type);
    add_counts(table, "error", counts.by_error);
  }
  for (const Finding& finding : status.findings) {
    table.add(
        {finding.fatal ? TextTable::Cell("wrong", Colour::red) : TextTable::Cell("could be better", Colour::yellow),
         finding.text});
  }
  return table.take();
}

Exit print_status(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(outbox, choose(arguments));
  const auto status = look(*outbox, arguments.has("sent"));
  if (!status) {
    return outbox->failure(status.error());
  }
  console.out(*output == Output::json ? json_of(*outbox, *status) : text_of(*status, console.output_has_colour()));
  return status->usable ? Exit::ok() : Exit::failure("outbox " + outbox->name + " cannot be published from");
}

std::string rate_text(std::uint64_t rows, Duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  return seconds > 0 ? std::to_string(static_cast<std::uint64_t>(static_cast<double>(rows) / seconds)) + "/s" : "";
}

struct Pruned {
  std::uint64_t rows = 0;
  bool interrupted = false;
};

/// Batch by batch, so that no transaction is long.
Result<Pruned> prune_all(const ChosenOutbox& outbox, AdminSession& desk, Duration age, Console& console) {
  const InterruptFlag interrupt;
  const SteadyTime begun = outbox.clock->steady_now();
  Pruned pruned;
  while (true) {
    const auto gone = desk.prune({.sent_before = age, .limit = kPruneBatch}, outbox.deadline());
    if (!gone) {
      console.end_progress();
      return gone.error();
    }
    pruned.rows += *gone;
    console.progress(std::to_string(pruned.rows) + " rows deleted, " +
                     rate_text(pruned.rows, outbox.clock->steady_now() - begun));
    pruned.interrupted = interrupt.raised();
    if (*gone < kPruneBatch || pruned.interrupted) {
      console.end_progress();
      return pruned;
    }
  }
}

void report_pruned(const ChosenOutbox& outbox, Output output, bool dry_run, std::uint64_t rows, Console& console) {
  if (output == Output::json) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_object();
    json.member("outbox", outbox.name);
    json.member("dry_run", dry_run);
    json.member("deleted", dry_run ? std::uint64_t{0} : rows);
    json.member("old_enough", rows);
    json.end_object();
    console.out(json.take_line());
    return;
  }
  console.out(std::to_string(rows) + (dry_run ? " rows would be deleted\n" : " rows deleted\n"));
}

Exit prune(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  const auto age = config::parse_duration(arguments.get("sent-older-than"));
  if (!age) {
    return Exit::usage("--sent-older-than must be a duration, such as 7d or 12h; it is \"" +
                       arguments.get("sent-older-than") + "\"");
  }
  const bool dry_run = arguments.has("dry-run");
  if (!dry_run && !arguments.has("yes") && !console.interactive()) {
    return Exit::usage("rows are deleted for good; say --yes, as there is no terminal to ask on, or --dry-run");
  }
  SLUICE_TRY(outbox, choose(arguments));
  auto desk = outbox->database().open_admin(outbox->deadline());
  if (!desk) {
    return outbox->failure(desk.error());
  }
  const auto count = [&] { return (*desk)->prune({.sent_before = *age, .dry_run = true}, outbox->deadline()); };
  if (dry_run || !arguments.has("yes")) {
    const auto old_enough = count();
    if (!old_enough) {
      return outbox->failure(old_enough.error());
    }
    if (dry_run) {
      report_pruned(*outbox, *output, true, *old_enough, console);
      return Exit::ok();
    }
    if (!console.confirm("Delete " + std::to_string(*old_enough) + " rows that were sent more than " +
                         config::format_duration(*age) + " ago?")) {
      console.note("nothing was changed");
      return Exit::ok();
    }
  }
  const auto pruned = prune_all(*outbox, **desk, *age, console);
  if (!pruned) {
    return outbox->failure(pruned.error());
  }
  report_pruned(*outbox, *output, false, pruned->rows, console);
  return pruned->interrupted ? Exit(kExitInterrupted, std::string("interrupted; what was deleted stays deleted"))
                             : Exit::ok();
}

std::vector<Flag> with_outbox_flags(std::vector<Flag> own) {
  own.insert(own.begin(),
             {.name = "outbox", .value = "NAME", .help = "of [outbox.NAME] in the host file [default: the only one]"});
  own.push_back(config_flag());
  return own;
}

std::vector<Flag> with_output(std::vector<Flag> own) {
  for (const Flag& flag : output_flags()) {
    own.push_back(flag);
  }
  return own;
}

}  // namespace

Command outbox_ddl_command() {
  return {
      .name = "outbox ddl",
      .group = "Outboxes",
      .summary = "Print the SQL that makes an outbox table, its indexes and its trigger",
      .usage = "[NAME] [OPTION]...",
      .description =
          "With the names that the host file gives the table and its columns. Each statement does nothing where what "
          "it "
          "makes is there already, so that it also adds the indexes and the trigger to a table that you have. Connects "
          "to nothing.",
      .flags = with_outbox_flags({}),
      .positional = {"outbox"},
      .examples = "sluice outbox ddl orders | psql \"$DATABASE_URL\"",
      .run = print_ddl,
  };
}

Command outbox_status_command() {
  return {
      .name = "outbox status",
      .group = "Outboxes",
      .summary = "Count what is pending in an outbox, and say what is wrong with its table",
      .usage = "[NAME] [--sent] [OPTION]...",
      .description =
          "Pending rows, how old the oldest is, dead letters, by type and by error; and what is missing or of the "
          "wrong "
          "type in the table, by name. Fails when nothing can be published. The rows themselves are shown by the "
          "commands on queues: `sluice ls --outbox NAME`, with --dlq the dead letters, which `sluice redrive` puts "
          "back.",
      .flags = with_outbox_flags(
          with_output({{.name = "sent", .help = "count what was sent too, which reads the whole table"}})),
      .positional = {"outbox"},
      .examples =
          "sluice outbox status orders\n"
          "sluice outbox status --json | jq .pending",
      .run = print_status,
  };
}

Command outbox_prune_command() {
  return {
      .name = "outbox prune",
      .group = "Outboxes",
      .summary = "Delete rows that were sent long ago",
      .usage = "[NAME] --sent-older-than DURATION [--dry-run] [--yes] [OPTION]...",
      .description =
          "Nothing else deletes rows of an outbox. In batches of 5,000, each a transaction of its own; the oldest "
          "first. "
          "Rows that were not sent stay, dead letters included. Asks first when there is a terminal, and wants --yes "
          "when there is none.",
      .flags = with_outbox_flags(with_output({{.name = "sent-older-than",
                                               .value = "DURATION",
                                               .help = "how long ago at least, such as 7d",
                                               .required = true},
                                              {.name = "dry-run", .help = "count them and delete none"},
                                              {.name = "yes", .help = "do not ask"}})),
      .positional = {"outbox"},
      .examples =
          "sluice outbox prune orders --sent-older-than 7d --dry-run\n"
          "sluice outbox prune orders --sent-older-than 7d --yes",
      .run = prune,
  };
}

}  // namespace sluice::cli
