#include "config/config.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

Exit scale(const Arguments& arguments, Console& console) {
  const bool reset = arguments.has("reset");
  if (reset == arguments.has("workers")) {
    return Exit::usage(reset ? "--reset goes back to what the job file says; leave the number out"
                             : "how many? Write `sluice scale JOB N`, or `sluice scale JOB --reset`");
  }
  SLUICE_TRY(workers, arguments.count("workers", 1, config::kMaxConcurrency));
  SLUICE_TRY(session, FleetSession::open(arguments));
  auto wish = session->names().job(fleet::Wish::scale, arguments.get("job"));
  if (!wish) {
    return Exit::failure(wish.error());
  }
  if (reset) {
    return take_back(arguments, *session, fleet::Wish::scale, wish->name,
                     "job " + wish->name + " is not scaled; its hosts run it as their files say", console);
  }
  wish->value = std::to_string(*workers);
  return give_wish(arguments, *session, *wish, console);
}

}  // namespace

Command scale_command() {
  return {
      .name = "scale",
      .group = "Fleet",
      .summary = "Let each host run a job with so many workers, whatever its file says",
      .usage = "JOB N | JOB --reset [OPTION]...",
      .description =
          "Every host that runs the job, now or later, gives it N workers instead of the job file's concurrency; "
          "handlers that are at work finish. It stands until --reset; `jobs` and `check` show it beside what the file "
          "says. Exit code 1 when a host does not obey in time.",
      .flags = with_store_flags({{.name = "job", .value = "JOB", .help = "the job", .required = true},
                                 {.name = "workers", .value = "N", .help = "1 to 1024, on each host"},
                                 reset_flag("go back to what the job file says")}),
      .positional = {"job", "workers"},
      .examples =
          "sluice scale mailer 16\n"
          "sluice scale mailer --reset",
      .run = scale,
  };
}

}  // namespace sluice::cli
