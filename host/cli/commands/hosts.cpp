#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

Exit hosts(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, session->hosts());
  show_all(view->hosts, session->clock().wall_now(),
           {"HOST", "STATE", "UP", "JOBS", "RUNNING", "DONE/S", "FAILED/S", "SEEN", "VERSION", "LOG", "HTTP"},
           "no host works on these queues; `sluice run` starts one", *output, console);
  return troubles_of(view->troubles);
}

}  // namespace

Command hosts_command() {
  return {
      .name = "hosts",
      .group = "Fleet",
      .summary = "Show the hosts that work on the queues",
      .usage = "[OPTION]...",
      .description =
          "Every host keeps a small record in the store of its queues: name, version, address, jobs and rates. A row "
          "for each host; its label, NAME:PID, is what `drain`, `reload` and `log-level` take, as they take the name. "
          "SEEN is the age of the record: a host that is late is busy or cut off, and one that is silent has ended "
          "without a word; it is shown for an hour. JSON has the jobs of each host too.",
      .flags = with_store_flags({}),
      .examples =
          "sluice hosts\n"
          "sluice hosts --output json | jq -r '.[] | select(.pulse != \"fresh\") | .host'",
      .run = hosts,
  };
}

}  // namespace sluice::cli
