#include <algorithm>
#include <array>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/observe/build_info.hpp"
#include "host/observe/http_endpoint.hpp"
#include "host/runtime/isolation_ward.hpp"
#include "host/runtime/run.hpp"

namespace sluice::cli {

namespace {

Exit run(const Arguments& arguments, Console& console) {
  SLUICE_TRY(host_file, find_host_file(arguments));
  runtime::RunOptions options;
  options.config_file = *host_file;
  options.explain = [&arguments](const std::string& queue, const Error& error) {
    return error.message() + mend_of(error, queue, options_of_host_file(arguments, queue));
  };
  options.until_empty = arguments.has("until-empty");
  options.progress = arguments.has("progress");
  options.allow_insecure_files = arguments.has(kAllowInsecureFiles);
  options.drain_report = arguments.get("drain-report");
  console.flush();
  // The host says for itself what went wrong.
  return Exit::silent(runtime::run_host(options));
}

using isolation::HeldMessage;
using isolation::LedgerContents;

/// The last moment of a host that is known, and which it is: of one that ended without a word nobody knows when.
struct Moment {
  WallTime time{};
  std::string_view is{};
};
Moment last_moment(const LedgerContents& ledger) {
  return ledger.crash                           ? Moment{ledger.crash->time, "end"}
         : ledger.unclean_end                   ? Moment{ledger.unclean_end->time, "end"}
         : ledger.settlement.time != WallTime{} ? Moment{ledger.settlement.time, "settled"}
                                                : Moment{ledger.started, "started"};
}

/// What became of what the process held, in the order of both its texts.
std::array<std::pair<const char*, std::uint64_t>, 6> counts_of(const isolation::LedgerSettlement& settlement) {
  return {{{"counted", settlement.counted},
           {"suspects", settlement.suspects},
           {"released", settlement.released},
           {"finished", settlement.finished},
           {"gone", settlement.gone},
           {"unsettled", settlement.unsettled}}};
}

std::string counts_text(const isolation::LedgerSettlement& settlement) {
  return sluice::joined(mapped(
      counts_of(settlement), [](const auto& counted) { return std::to_string(counted.second) + " " + counted.first; }));
}

void print_text(const LedgerContents& ledger, Console& console) {
  const auto line = [&console](const std::string& text) {
    console.out(wrapped(visible(text) + "\n", console.screen()));
  };
  const Moment last = last_moment(ledger);
  const std::string since = last.is == "end" ? "" : ", " + std::string(last.is) + " then; when it ended nobody knows";
  line(format_timestamp(last.time) + "  " + ledger.host + " (process " + std::to_string(ledger.process) + since +
       "): " + ledger.cause());
  if (ledger.crash && ledger.crash->blamed) {
    line("  job " + ledger.crash->job + ", message " + ledger.crash->message + ", plugin " + ledger.crash->plugin);
  }
  for (const HeldMessage& held : ledger.held) {
    if (held.running || held.committing == isolation::Committing::alone) {
      line(std::string(held.running ? "  running" : "  its effects were committed, alone") + ": job " + held.job +
           ", message " + held.receipt.id + ", attempt " + std::to_string(held.attempt) +
           (held.blamed ? ", blamed" : ""));
    }
  }
  const bool settled = ledger.settlement.time != WallTime{};
  const std::string held = counted(ledger.held.size(), "message");
  if (ledger.given_back > 0) {
    line("  " + counted(ledger.given_back, "message") +
         " whose handler had not come back: the host itself had settled what it was at");
  }
  if (!ledger.held.empty() || ledger.given_back == 0) {
    line(settled ? "  of " + held + " held: " + counts_text(ledger.settlement) + "; by " + ledger.settlement.by
                 : "  " + held + " held, not settled yet: the next host does");
  }
  if (!ledger.complete) {
    line("  more was held that the ledger does not tell of: that comes back when its leases run out");
  }
  if (ledger.crash) {
    for (const isolation::StackFrame& frame : ledger.crash->stack) {
      line("    " + frame.text);
    }
  }
}

void write_crash(JsonWriter& json, const isolation::CrashReport& crash) {
  const bool by_signal = crash.cause == isolation::CrashCause::signal;
  put_object(json, "time", crash.time, "what", crash.summary(), "signal",
             or_null(by_signal, std::string(isolation::signal_name(crash.signal))), "job", crash.job, "handler",
             crash.handler, "plugin", crash.plugin, "message", crash.message, "stack",
             array_of(crash.stack, [](JsonWriter& each, const isolation::StackFrame& frame) {
               put_object(each, "frame", frame.text, "module", frame.module, "offset", frame.offset);
             }));
}

void write_held(JsonWriter& json, const HeldMessage& held) {
  put_object(json, "job", held.job, "queue", held.address.queue, "half", queue::to_string(held.address.half), "message",
             clean_utf8(held.receipt.id, std::string::npos), "attempt", held.attempt, "running", held.running,
             "committing", held.committing != isolation::Committing::no, "blamed", held.blamed);
}

void write_settlement(JsonWriter& json, const isolation::LedgerSettlement& settlement) {
  if (settlement.time == WallTime{}) {
    return json.null();
  }
  put_object(json, "time", settlement.time, "by", settlement.by, [&settlement](JsonWriter& members) {
    for (const auto& [name, count] : counts_of(settlement)) {
      members.member(name, count);
    }
  });
}

void write_ledger(JsonWriter& json, const LedgerContents& ledger) {
  const auto crash = [&ledger](JsonWriter& member) {
    ledger.crash ? write_crash(member, *ledger.crash) : member.null();
  };
  put_object(
      json, "time", last_moment(ledger).time, "time_is", last_moment(ledger).is, "host", ledger.host, "process",
      ledger.process, "crash", crash, "not_clean",
      or_null(ledger.unclean_end.has_value(), ledger.unclean_end ? ledger.unclean_end->why : std::string()), "held",
      array_of(ledger.held, write_held), "given_back", ledger.given_back, "complete", ledger.complete, "settled",
      [&ledger](JsonWriter& member) { write_settlement(member, ledger.settlement); }, "ledger", ledger.file);
}

/// What hosts left that ended in a crash, the newest first. Files that cannot be read are noted.
std::vector<LedgerContents> read_crashes(const isolation::LedgerFolder& folder, Console& console) {
  std::vector<std::string> files = folder.history();
  for (const std::string& file : folder.open_ledgers()) {
    if (!isolation::has_owner(file)) {
      files.push_back(file);
    }
  }
  std::vector<LedgerContents> found;
  for (const std::string& file : files) {
    auto ledger = isolation::read_ledger(file);
    if (ledger) {
      found.push_back(*std::move(ledger));
    } else if (ledger.error().code() != ErrorCode::not_found) {
      console.note("sluice: " + ledger.error().message());
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& left, const auto& right) { return last_moment(left).time > last_moment(right).time; });
  return found;
}

Exit crashes(const Arguments& arguments, Console& console) {
  SLUICE_TRY(host, load_host_file(arguments));
  const isolation::LedgerFolder folder(runtime::ledger_folder(*host));
  const std::vector<LedgerContents> found = read_crashes(folder, console);
  if (console.shows_json()) {
    return print(json_text(array_of(found, write_ledger)), console);
  }
  for (const LedgerContents& ledger : found) {
    print_text(ledger, console);
  }
  if (found.empty()) {
    console.note("no host has left a crash in " + folder.path());
  }
  return Exit::ok();
}

Exit health(const Arguments& arguments, Console& console) {
  constexpr int kHealthy = 200;
  SLUICE_TRY(host, load_host_file(arguments));
  if (host->http_listen.empty()) {
    return {kExitConfiguration, host->file + " has no [http] listen, so that no host of it can be asked; set it"};
  }
  const char* const path = arguments.has("ready") ? "/readyz" : "/healthz";
  SLUICE_TRY(answer, observe::probe(host->http_listen, path, std::chrono::seconds(3)));
  console.out(answer->text);
  return answer->status == kHealthy ? Exit::ok() : Exit::failure("the host says " + std::to_string(answer->status));
}

Exit version(const Arguments& /*arguments*/, Console& console) {
  const auto build = observe::build_info();
  return show_result(
      console,
      "sluice " + build.version + " (plugin ABI " + build.abi + ", " + build.compiler + ", " + build.build_type + ")\n",
      "version", build.version, "abi", build.abi, "compiler", build.compiler, "build_type", build.build_type);
}

}  // namespace

std::vector<Command> host_commands() {
  return {
      {
          .name = "run",
          .summary = "Run the host: work off the queues of all jobs",
          .usage = "[--until-empty] [--progress] [--drain-report FILE] [--allow-insecure-files] [--config FILE]",
          .description =
              "SIGTERM or SIGINT drains: nothing more is claimed, what has not begun is put back, and running "
              "handlers have [host] drain_timeout to finish. A second one stops at once. SIGHUP reloads the job "
              "files and plugins that have changed. The log goes to standard error; its last line says what became of "
              "every claimed message.",
          .flags = {{"until-empty", {}, "end when no queue has anything due or in flight; delayed messages stay"},
                    {"progress", {}, "show the totals on standard error each second"},
                    {"drain-report", "FILE", "write the last line's figures there too, as JSON"},
                    kAllowInsecureFilesFlag,
                    kConfigFlag},
          .examples = "sluice run\n"
                      "sluice run --config etc/host.toml --until-empty --drain-report drain.json",
          .run = run,
      },
      {
          .name = "crashes",
          .summary = "Show the crashes of hosts, whom they blame, and what became of what was in flight",
          .usage = "[--output json|text] [--config FILE]",
          .description =
              "A host keeps a ledger of what it holds in the folder [host] state_dir. When it dies, the next one "
              "settles that: the message whose handler ended it is counted, with signal and stack as its failure; "
              "where nothing says what ended it, what ran is suspect and runs in a process of its own; everything "
              "else is released with its attempt given back. One that ended itself by a drain which was not clean is "
              "listed with what that left behind. The newest comes first; the last 100 are kept.",
          .flags = joined(output_flags(), {kConfigFlag}),
          .examples = "sluice crashes\n"
                      "sluice crashes --json | jq '.[0].crash.stack'",
          .run = crashes,
      },
      {
          .name = "health",
          .summary = "Ask the host of this machine whether it is well",
          .usage = "[--ready] [--config FILE]",
          .description =
              "For a container's HEALTHCHECK and for scripts: asks the address of [http] listen for /healthz, prints "
              "the answer, and exits 0 when it is 200, else 1. Unwell is a host that has lost so many workers to "
              "handlers which do not return that no more take their place; it has to be restarted.",
          .flags = {{"ready", {}, "ask for /readyz: 503 while it starts or drains"}, kConfigFlag},
          .examples = "sluice health\n"
                      "sluice health --ready --config /etc/sluice/host.toml",
          .run = health,
      },
      {
          .name = "version",
          .summary = "Print the version, and the plugin ABI it speaks",
          .usage = "[--output json|text]",
          .description =
              "Plugins built for the same major ABI version, and for the same or an earlier minor one, load.",
          .flags = text_output_flags(),
          .examples = "sluice version --json",
          .elsewhere = Output::text,
          .run = version,
      },
  };
}

}  // namespace sluice::cli
