#include <algorithm>
#include <cstdint>

#include "base/text/json_writer.hpp"
#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/views/output.hpp"
#include "host/isolation/ledger_file.hpp"
#include "host/runtime/isolation_ward.hpp"

namespace sluice::cli {

namespace {

using isolation::HeldMessage;
using isolation::LedgerContents;

std::string cause_of(const LedgerContents& ledger) {
  return ledger.crash ? ledger.crash->summary() : "ended without a word: killed, out of memory, or power lost";
}

WallTime time_of(const LedgerContents& ledger) {
  // Without a crash nobody knows when; it was found out when it was settled.
  return ledger.crash                           ? ledger.crash->time
         : ledger.settlement.time != WallTime{} ? ledger.settlement.time
                                                : ledger.started;
}

std::string counts_of(const isolation::LedgerSettlement& settlement) {
  return std::to_string(settlement.counted) + " counted, " + std::to_string(settlement.suspects) + " suspects, " +
         std::to_string(settlement.released) + " released, " + std::to_string(settlement.finished) + " finished, " +
         std::to_string(settlement.gone) + " gone, " + std::to_string(settlement.unsettled) + " unsettled";
}

void print_text(const LedgerContents& ledger, Console& console) {
  const auto line = [&console](const std::string& text) { console.out(visible(text) + "\n"); };
  line(format_timestamp(time_of(ledger)) + "  " + ledger.host + " (process " + std::to_string(ledger.process) +
       "): " + cause_of(ledger));
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
  const std::string held = std::to_string(ledger.held.size()) + (ledger.held.size() == 1 ? " message" : " messages");
  line(settled ? "  of " + held + " held: " + counts_of(ledger.settlement) + "; by " + ledger.settlement.by
               : "  " + held + " held, not settled yet: the next host does");
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
  json.begin_object();
  json.member("time", format_timestamp(crash.time));
  json.member("what", crash.summary());
  json.key("signal");
  if (crash.cause == isolation::CrashCause::signal) {
    json.value(isolation::signal_name(crash.signal));
  } else {
    json.null();
  }
  json.member("job", crash.job);
  json.member("handler", crash.handler);
  json.member("plugin", crash.plugin);
  json.member("message", crash.message);
  json.key("stack");
  json.begin_array();
  for (const isolation::StackFrame& frame : crash.stack) {
    json.begin_object();
    json.member("frame", frame.text);
    json.member("module", frame.module);
    json.member("offset", frame.offset);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_held(JsonWriter& json, const HeldMessage& held) {
  json.begin_object();
  json.member("job", held.job);
  json.member("queue", held.address.queue);
  json.member("half", queue::to_string(held.address.half));
  json.member("message", clean_utf8(held.receipt.id, held.receipt.id.size() * 3));
  json.member("attempt", std::uint64_t{held.attempt});
  json.member("running", held.running);
  json.member("committing", held.committing != isolation::Committing::no);
  json.member("blamed", held.blamed);
  json.end_object();
}

void write_settlement(JsonWriter& json, const isolation::LedgerSettlement& settlement) {
  if (settlement.time == WallTime{}) {
    json.null();
    return;
  }
  json.begin_object();
  json.member("time", format_timestamp(settlement.time));
  json.member("by", settlement.by);
  json.member("counted", std::uint64_t{settlement.counted});
  json.member("suspects", std::uint64_t{settlement.suspects});
  json.member("released", std::uint64_t{settlement.released});
  json.member("finished", std::uint64_t{settlement.finished});
  json.member("gone", std::uint64_t{settlement.gone});
  json.member("unsettled", std::uint64_t{settlement.unsettled});
  json.end_object();
}

void write_ledger(JsonWriter& json, const LedgerContents& ledger) {
  json.begin_object();
  json.member("time", format_timestamp(time_of(ledger)));
  json.member("host", ledger.host);
  json.member("process", std::int64_t{ledger.process});
  json.key("crash");
  if (ledger.crash) {
    write_crash(json, *ledger.crash);
  } else {
    json.null();
  }
  json.key("held");
  json.begin_array();
  for (const HeldMessage& held : ledger.held) {
    write_held(json, held);
  }
  json.end_array();
  json.member("complete", ledger.complete);
  json.key("settled");
  write_settlement(json, ledger.settlement);
  json.member("ledger", ledger.file);
  json.end_object();
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
            [](const auto& left, const auto& right) { return time_of(left) > time_of(right); });
  return found;
}

Exit crashes(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(host, load_host_file(arguments));
  const isolation::LedgerFolder folder(runtime::ledger_folder(*host));
  const std::vector<LedgerContents> found = read_crashes(folder, console);
  if (*output == Output::json) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_array();
    for (const LedgerContents& ledger : found) {
      write_ledger(json, ledger);
    }
    json.end_array();
    console.out(json.take_line());
    return Exit::ok();
  }
  for (const LedgerContents& ledger : found) {
    print_text(ledger, console);
  }
  if (found.empty()) {
    console.note("no host has left a crash in " + folder.path());
  }
  return Exit::ok();
}

}  // namespace

Command crashes_command() {
  return {
      .name = "crashes",
      .group = "Host",
      .summary = "Show the crashes of hosts, whom they blame, and what became of what was in flight",
      .usage = "[--output json|text] [--config FILE]",
      .description =
          "A host keeps a ledger of what it holds in the folder [host] state_dir. When it dies, the next one settles "
          "that: the message whose handler ended it is counted, with signal and stack as its failure; where nothing "
          "says what ended it, what ran is suspect and runs in a process of its own; everything else is released with "
          "its attempt given back. The newest comes first; the last 100 are kept.",
      .flags = joined(output_flags(), {config_flag()}),
      .examples =
          "sluice crashes\n"
          "sluice crashes --json | jq '.[0].crash.stack'",
      .run = crashes,
  };
}

}  // namespace sluice::cli
