#include "host/cli/command.hpp"
#include "host/cli/findings.hpp"
#include "host/cli/fleet_report.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/schedule_text.hpp"

namespace sluice::cli {

namespace {

/// Under the name of each job, the times of its schedules.
std::string schedules_text(const std::vector<config::JobConfig>& jobs, WallTime now) {
  std::string text;
  for (const config::JobConfig& job : jobs) {
    text += job.name + ":\n";
    for (const std::string& line : schedule_lines(job, now)) {
      text += line + "\n";
    }
  }
  return text;
}

Exit jobs(const Arguments& arguments, Console& console) {
  const auto output = arguments.output();
  if (output.has_error()) {
    return output.error();
  }
  auto session = FleetSession::open(arguments);
  if (session.has_error()) {
    return session.error();
  }
  const auto view = session->hosts();
  if (view.has_error()) {
    return view.error();
  }
  const auto steering = session->steering();
  if (steering.has_error()) {
    return steering.error();
  }
  const auto found = operate::summarize_jobs(session->file_jobs(), *view, *steering);
  show({.none = found.empty(),
        .nothing = "no job is known: neither do files here have one, nor does a host run one",
        .json = [&] { return jobs_json(found); },
        .text =
            [&](bool colours) {
              const WallTime now = session->clock().wall_now();
              return jobs_text(found, now, colours) + schedules_text(session->scheduled_jobs(), now);
            }},
       *output, console);
  return troubles_of(view->troubles);
}

}  // namespace

Command jobs_command() {
  return {
      .name = "jobs",
      .group = "Fleet",
      .summary = "Show the jobs, who runs them, how fast, and what is steered",
      .usage = "[OPTION]...",
      .description =
          "A row for each job that the job files here have or a host runs. WORKERS is what is in force on all its "
          "hosts, and beside it what the files say where that differs; STEERED is what operators want of it: `pause`, "
          "`scale`. Rates are sums of all hosts, times those of the slowest one. Below stand the schedules of the "
          "files here, with "
          "the times at which they are due next.",
      .flags = with_store_flags({}),
      .examples =
          "sluice jobs\n"
          "sluice jobs --output json | jq '.[] | select(.paused)'",
      .run = jobs,
  };
}

}  // namespace sluice::cli
