#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/local_order.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

fleet::Directive cancel_of(const std::string& id) {
  fleet::Directive order;
  order.wish = fleet::Wish::cancel_running;
  order.target = fleet::Target::message;
  order.name = id;
  return order;
}

const runtime::LocalHost* host_at_work_on(const std::string& id, const runtime::LocalHosts& local) {
  const auto found = std::find_if(local.hosts.begin(), local.hosts.end(), [&id](const runtime::LocalHost& host) {
    const auto& running = host.record.running;
    return std::any_of(running.begin(), running.end(), [&id](const auto& handler) { return handler.message == id; });
  });
  return found == local.hosts.end() ? nullptr : &*found;
}

Exit cancel_far(const std::string& id, Output output, const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(given, session->give(cancel_of(id), session->queues().queue()));
  SLUICE_TRY(compliance, session->follow(std::move(*given)));
  if (!compliance->done_by_somebody() && compliance->waited_for().empty()) {
    return Exit::failure("no host is at work on message " + id + "; `sluice running` lists what is at work");
  }
  return show_answers(cancel_of(id).text(), *compliance, output, console);
}

Exit cancel_running(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  const std::string id = arguments.get("id");
  const SystemClock clock;
  const runtime::LocalHosts local = local_hosts_of(arguments, clock);
  const runtime::LocalHost* const host = host_at_work_on(id, local);
  if (host == nullptr) {
    return cancel_far(id, *output, arguments, console);
  }
  LocalOrder order(*host, cancel_of(id), arguments, console, clock);
  SLUICE_TRY(answer, order.give({.verb = runtime::ControlVerb::cancel_running, .message = id, .wait = false}));
  show({cancel_of(id).text(), host->record.label(), answer->text}, *output, console);
  return Exit::ok();
}

}  // namespace

Command cancel_running_command() {
  return {
      .name = "cancel-running",
      .group = "Fleet",
      .summary = "Set the stop token of the handler that is at work on a message",
      .usage = "ID [OPTION]...",
      .description =
          "The handler is asked to stop, as by a drain or its time-out; what it returns then is its outcome, and one "
          "that does not look at its stop token goes on. Exit code 1 when no host is at work on the message. To remove "
          "a message that waits, write `sluice cancel`.",
      .flags = with_store_flags({{.name = "id", .value = "ID", .help = "the message's id", .required = true}}),
      .positional = {"id"},
      .examples = "sluice cancel-running A-101",
      .run = cancel_running,
  };
}

}  // namespace sluice::cli
