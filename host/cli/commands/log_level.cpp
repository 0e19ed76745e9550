#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

/// `sluice log-level --reset web-1` names a host, though the first word is a level elsewhere.
std::string host_word(const Arguments& arguments) {
  return arguments.has("reset") && !arguments.has("host") ? arguments.get("level") : arguments.get("host");
}

OrExit<fleet::Directive> read_wish(const Arguments& arguments, FleetSession& session) {
  fleet::Directive wish;
  wish.wish = fleet::Wish::log_level;
  wish.target = fleet::Target::all;
  if (const std::string host = host_word(arguments); !host.empty()) {
    auto named = session.names().host(fleet::Wish::log_level, host);
    if (!named) {
      return Exit::failure(named.error());
    }
    wish = std::move(*named);
  }
  wish.value = arguments.get("level");
  return wish;
}

Exit log_level(const Arguments& arguments, Console& console) {
  const bool reset = arguments.has("reset");
  if (!reset && !arguments.has("level")) {
    return Exit::usage("which level? Write one of trace, debug, info, warn, error, or --reset");
  }
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(wish, read_wish(arguments, *session));
  if (reset) {
    return take_back(arguments, *session, fleet::Wish::log_level, wish->name,
                     "no log level is steered there; hosts log as their files say", console);
  }
  return give_wish(arguments, *session, *wish, console);
}

}  // namespace

Command log_level_command() {
  return {
      .name = "log-level",
      .group = "Fleet",
      .summary = "Let hosts log more or less, whatever their file says",
      .usage = "LEVEL [HOST] | --reset [HOST] [OPTION]...",
      .description =
          "For the named host, by name or NAME:PID, else for all. It stands until --reset; `hosts` shows it beside "
          "what "
          "the file says.",
      .flags = with_store_flags({{.name = "level", .value = "trace|debug|info|warn|error", .help = "from this one on"},
                                 {.name = "host", .value = "HOST", .help = "this host only"},
                                 reset_flag("go back to what the host file says; without a host everywhere")}),
      .positional = {"level", "host"},
      .examples =
          "sluice log-level debug web-1\n"
          "sluice log-level --reset",
      .run = log_level,
  };
}

}  // namespace sluice::cli
