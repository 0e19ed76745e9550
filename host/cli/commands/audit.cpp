#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/fleet_report.hpp"

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
  show_all(*entries, session->clock().wall_now(), {}, "nobody has steered anything here", *output, console);
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
