#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

/// Hosts are asked to tell in detail for so long.
constexpr Duration kWatch = std::chrono::seconds(10);
/// A host that has not told by then is passed over.
constexpr Duration kPatience = std::chrono::seconds(6);

/// Of a host that was asked at its control socket, what it said.
void put_local_records(fleet::FleetView& view, const runtime::LocalHosts& local) {
  for (const runtime::LocalHost& host : local.hosts) {
    const auto found = std::find_if(view.hosts.begin(), view.hosts.end(), [&host](const fleet::KnownHost& known) {
      return known.record.instance == host.record.instance;
    });
    if (found == view.hosts.end()) {
      view.hosts.push_back({host.record, fleet::Pulse::fresh, Duration::zero(), {}});
    } else {
      found->record = host.record;
      found->pulse = fleet::Pulse::fresh;
    }
  }
}

std::vector<std::string> without_detail(const fleet::FleetView& view) {
  std::vector<std::string> labels;
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.pulse == fleet::Pulse::fresh && !host.record.detailed) {
      labels.push_back(host.record.label());
    }
  }
  return labels;
}

/// What hosts of this machine say, and of others once they tell in detail. Without any other host nothing is written.
OrExit<fleet::FleetView> look_in_detail(FleetSession& session) {
  const SteadyTime until = session.clock().steady_now() + kPatience;
  const InterruptFlag interrupt;
  bool asked = false;
  while (true) {
    SLUICE_TRY(view, session.hosts());
    put_local_records(*view, session.local_hosts());
    if (without_detail(*view).empty() || session.clock().steady_now() >= until) {
      return view;
    }
    if (!asked) {
      if (auto told = session.fleet().watch(kWatch, session.deadline()); !told) {
        return session.failure(told.error());
      }
      asked = true;
    }
    if (!wait_for_look(interrupt, between_looks(session.queues().place()))) {
      return view;
    }
  }
}

Exit running(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, look_in_detail(*session));
  auto found = operate::handlers_at_work(*view);
  if (const std::string job = arguments.get("job"); !job.empty()) {
    const auto known = session->names();
    if (const auto meant = known.job(fleet::Wish::pause, job); !meant) {
      return Exit::failure(meant.error());
    }
    std::erase_if(found, [&job](const operate::HandlerAtWork& at_work) { return at_work.handler.job != job; });
  }
  show_all(found, session->clock().wall_now(),
           {"MESSAGE", "SINCE", "LEFT", "HOST", "WORKER", "JOB", "HANDLER", "ATTEMPT"}, "no handler is at work",
           *output, console);
  for (const std::string& label : without_detail(*view)) {
    console.note("sluice running: host " + label + " has not said what its workers run");
  }
  return troubles_of(view->troubles);
}

}  // namespace

Command running_command() {
  return {
      .name = "running",
      .group = "Fleet",
      .summary = "Show what the workers of all hosts run, the longest first",
      .usage = "[JOB] [OPTION]...",
      .description =
          "A row for each handler at work: its message, since when, how long until its time-out, host, worker, job, "
          "handler and attempt. Hosts of this machine are asked at their control sockets; others are asked through the "
          "store to tell in detail, which takes them a moment. `stuck` is a handler that ignores its stop token.",
      .flags = with_store_flags({{.name = "job", .value = "JOB", .help = "of this job only"}}),
      .positional = {"job"},
      .examples =
          "sluice running\n"
          "sluice running mailer --output json | jq -r '.[] | select(.stuck) | .message'",
      .run = running,
  };
}

}  // namespace sluice::cli
