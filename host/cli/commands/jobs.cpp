#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/schedule_text.hpp"
#include "host/operate/fleet_report.hpp"

namespace sluice::cli {

namespace {

/// What hosts have told of the schedules; what cannot be read is left out.
ScheduleNotices told_of_schedules(FleetSession& session) {
  ScheduleNotices told;
  for (const config::JobConfig& job : session.scheduled_jobs()) {
    for (const config::ScheduleConfig& schedule : job.schedules) {
      const std::string queue = schedule.queue.empty() ? job.queue : schedule.queue;
      const auto board = session.queues().queues().open_board(queue);
      const auto found = board ? (*board)->read(queue::Topic::schedules, schedule.name, session.deadline())
                               : Result<queue::Notice>(board.error());
      const auto notice = found && found->version != 0 ? runtime::ScheduleNotice::read(found->text) : std::nullopt;
      if (notice) {
        told.emplace(std::pair(queue, schedule.name), *notice);
      }
    }
  }
  return told;
}

/// A job, and the file that has its schedules here.
struct ShownJob {
  const operate::JobSummary& summary;
  const config::JobConfig& file;
  const ScheduleNotices& told;
};

void describe(const ShownJob& job, operate::Fields& fields) {
  describe(job.summary, fields);
  if (fields.json() != nullptr) {
    write_schedules(*fields.json(), job.file, fields.now(), &job.told);
  }
}

/// Under the name of each job, the times of its schedules.
std::string schedules_text(const std::vector<config::JobConfig>& jobs, WallTime now, const ScheduleNotices& told) {
  std::string text;
  for (const config::JobConfig& job : jobs) {
    text += job.name + ":\n";
    for (const std::string& line : schedule_lines(job, now, &told)) {
      text += line + "\n";
    }
  }
  return text;
}

Exit jobs(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, session->hosts());
  SLUICE_TRY(steering, session->steering());
  const auto summaries = operate::summarize_jobs(session->file_jobs(), *view, *steering);
  const ScheduleNotices told = told_of_schedules(*session);
  static const config::JobConfig kNone;  // of a job that hosts alone know
  std::vector<ShownJob> found;
  for (const operate::JobSummary& summary : summaries) {
    const auto file = std::find_if(session->scheduled_jobs().begin(), session->scheduled_jobs().end(),
                                   [&summary](const config::JobConfig& job) { return job.name == summary.name; });
    found.push_back({summary, file == session->scheduled_jobs().end() ? kNone : *file, told});
  }
  const WallTime now = session->clock().wall_now();
  show_all(found, now,
           {"JOB", "QUEUE", "STATE", "HOSTS", "WORKERS", "RUNNING", "DONE/S", "FAILED/S", "MEAN", "P95", "HANDLER",
            "PLUGIN", "STEERED"},
           "no job is known: neither do files here have one, nor does a host run one", *output, console);
  if (*output == Output::text && !found.empty()) {
    console.out(schedules_text(session->scheduled_jobs(), now, told));
  }
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
          "files here, with the time up to which all is sent, what was missed since, the times at which they are due "
          "next, and whether a host has one of them otherwise.",
      .flags = with_store_flags({}),
      .examples =
          "sluice jobs\n"
          "sluice jobs --output json | jq '.[] | select(.paused)'",
      .run = jobs,
  };
}

}  // namespace sluice::cli
