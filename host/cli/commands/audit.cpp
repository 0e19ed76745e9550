#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/findings.hpp"
#include "host/cli/views/fleet_report.hpp"

namespace sluice::cli {

namespace {

constexpr std::size_t kDefaultLimit = 50;
constexpr std::size_t kMaxLimit = 10'000;

Exit audit(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(limit, arguments.count("limit", kDefaultLimit, kMaxLimit));
  SLUICE_TRY(session, FleetSession::open(arguments));
  const auto entries = session->fleet().audit(*limit, session->deadline());
  if (!entries) {
    return session->failure(entries.error());
  }
  show({.none = entries->empty(),
        .nothing = "nobody has steered anything here",
        .json = [&] { return audit_json(*entries); },
        .text = [&](bool colours) { return audit_text(*entries, session->clock().wall_now(), colours); }},
       *output, console);
  return Exit::ok();
}

}  // namespace

Command audit_command() {
  return {
      .name = "audit",
      .group = "Fleet",
      .summary = "Show who has steered what, the newest first",
      .usage = "[--limit N] [OPTION]...",
      .description =
          "Every pause, scale, drain, reload, cancel and log-level leaves a line: when, who (USER@MACHINE), what. The "
          "store keeps the latest ones.",
      .flags = with_store_flags({{.name = "limit", .value = "N", .help = "how many [default: 50]"}}),
      .examples = "sluice audit --limit 10",
      .run = audit,
  };
}

}  // namespace sluice::cli
