#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

Exit resume_thing(const Arguments& arguments, FleetSession& session, Console& console) {
  SLUICE_TRY(thing, read_thing(arguments, session.names(), fleet::Wish::pause));
  std::string why = "\"" + thing->name + "\" is not paused";
  // A job may stand still because its queue is paused.
  if (const auto steering = session.fleet().steering(session.deadline())) {
    const std::string queue = session.names().queue_of_job(thing->name);
    for (const fleet::Given& given : steering->given) {
      if (given.directive.wish == fleet::Wish::pause && given.directive.target == fleet::Target::queue &&
          given.directive.name == queue) {
        why = "the job is not paused, its queue is; write `sluice resume --queue " + queue + "`";
      }
    }
  }
  return take_back(arguments, session, fleet::Wish::pause, thing->name, why, console);
}

Exit pause(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  if (arguments.has("reset")) {
    return resume_thing(arguments, *session, console);
  }
  SLUICE_TRY(wish, read_thing(arguments, session->names(), fleet::Wish::pause));
  return give_wish(arguments, *session, *wish, console);
}

Exit resume(const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  if (arguments.has("all")) {
    if (arguments.has("name") || arguments.has("job") || arguments.has("queue")) {
      return Exit::usage("--all resumes everything; leave the name out");
    }
    return take_back(arguments, *session, fleet::Wish::pause, {}, "nothing is paused", console);
  }
  return resume_thing(arguments, *session, console);
}

}  // namespace

Command pause_command() {
  return {
      .name = "pause",
      .group = "Fleet",
      .summary = "Let no handler of a queue or job start until it is resumed",
      .usage = "QUEUE-OR-JOB [OPTION]...",
      .description =
          "All hosts stop claiming for the job, or for all jobs of the queue; handlers that are at work finish, and "
          "what was claimed and has not started is put back without burning an attempt. It is written to the store: "
          "hosts obey within a second on SQLite and within two polls on DynamoDB, and so do those that start later, "
          "until `resume`. `jobs` and `check` show it. Says which hosts obey; exit code 1 when one does not in time.",
      .flags = with_thing_flags({reset_flag("take it back, as `resume` does")}),
      .positional = {"name"},
      .examples =
          "sluice pause mailer\n"
          "sluice pause --queue orders",
      .run = pause,
  };
}

Command resume_command() {
  return {
      .name = "resume",
      .group = "Fleet",
      .summary = "Let a paused queue or job go on",
      .usage = "QUEUE-OR-JOB | --all [OPTION]...",
      .description = "Takes a `pause` back. Exit code 1 when there is none.",
      .flags = with_thing_flags({{.name = "all", .value = {}, .help = "everything that is paused"}}),
      .positional = {"name"},
      .examples =
          "sluice resume mailer\n"
          "sluice resume --all",
      .run = resume,
  };
}

}  // namespace sluice::cli
