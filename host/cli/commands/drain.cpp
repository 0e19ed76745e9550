#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/local_order.hpp"
#include "host/cli/queue_names.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

constexpr int kExitAbandoned = 75;
/// From the certificate to the end of the process.
constexpr Duration kLeaveTime = std::chrono::seconds(10);
constexpr Duration kLongestWait = std::chrono::hours(24);

struct DrainRequest {
  Output output = Output::text;
  bool wait = false;
  Duration timeout{};
};

fleet::Directive drain_of(const std::string& host) {
  fleet::Directive order;
  order.wish = fleet::Wish::drain;
  order.target = fleet::Target::host;
  order.name = host;
  return order;
}

Exit not_ended(const std::string& host, Duration waited) {
  return Exit::failure("host " + host + " drains, and has not ended within " + config::format_duration(waited));
}

/// By its control socket.
Exit drain_local(const runtime::LocalHost& host, const DrainRequest& request, const Arguments& arguments,
                 Console& console) {
  const SystemClock clock;
  const std::string label = host.record.label();
  LocalOrder order(host, drain_of(label), arguments, console, clock);
  SLUICE_TRY(begun, order.give({.verb = runtime::ControlVerb::drain, .message = {}, .wait = request.wait}));
  if (!request.wait) {
    show({drain_of(label).text(), label, begun->text}, request.output, console);
    return Exit::ok();
  }
  const auto ended = order.outcome(Deadline::after(clock, request.timeout));
  if (!ended && ended.error().code() == ErrorCode::timeout) {
    return not_ended(label, request.timeout);
  }
  if (!order.wait_for_exit(Deadline::after(clock, kLeaveTime))) {
    return not_ended(label, kLeaveTime);
  }
  if (!ended || !ended->ending) {
    return Exit::failure("host " + label + " has ended without saying how; see its log");
  }
  show({drain_of(label).text(), label, ended->ending->certificate}, request.output, console);
  return ended->ending->status == 0 ? Exit::ok() : Exit(kExitAbandoned, "host " + label + " left work behind");
}

/// True when no host of that name is left that has not died without a word.
bool is_gone(const fleet::FleetView& view, const std::string& host) {
  for (const fleet::KnownHost& known : view.hosts) {
    if (known.pulse != fleet::Pulse::silent && known.record.is_called(host)) {
      return false;
    }
  }
  return true;
}

Exit wait_until_gone(FleetSession& session, const std::string& host, const DrainRequest& request, Console& console) {
  const SteadyTime until = Deadline::after(session.clock(), request.timeout).time();
  const InterruptFlag interrupt;
  while (true) {
    SLUICE_TRY(view, session.hosts());
    if (is_gone(*view, host)) {
      show({drain_of(host).text(), host, "has ended"}, request.output, console);
      return Exit::ok();
    }
    if (session.clock().steady_now() >= until) {
      return not_ended(host, request.timeout);
    }
    if (!wait_for_look(interrupt, between_looks(session.queues().place()))) {
      return Exit(kExitInterrupted, "host " + host + " drains; nobody waits for it any more");
    }
  }
}

/// Through the store.
Exit drain_far(const std::string& host, const DrainRequest& request, const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  const auto names = session->names();
  if (host.empty()) {
    return Exit::usage("which host? " + (names.hosts().empty() ? std::string("None is known here")
                                                               : "There are " + listed(names.hosts())));
  }
  const auto order = names.host(fleet::Wish::drain, host);
  if (!order) {
    return Exit::failure(order.error());
  }
  SLUICE_TRY(given, session->give(*order, {}));
  if (request.wait) {
    return wait_until_gone(*session, host, request, console);
  }
  SLUICE_TRY(compliance, session->follow(std::move(*given)));
  if (compliance->answers().empty() && compliance->waited_for().empty()) {
    // It was there a moment ago, and a host that has nothing to do drains in less than that.
    show({order->text(), host, "has ended"}, request.output, console);
    return Exit::ok();
  }
  return show_answers(order->text(), *compliance, request.output, console);
}

Exit drain(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(timeout, arguments.duration("timeout", std::chrono::minutes(10)));
  if (arguments.has("timeout") && !arguments.has("wait")) {
    return Exit::usage("--timeout goes with --wait only");
  }
  if (*timeout > kLongestWait) {
    return Exit::usage("--timeout is at most 24h");
  }
  const DrainRequest request{*output, arguments.has("wait"), *timeout};
  const std::string host = arguments.get("host");
  const SystemClock clock;
  const runtime::LocalHosts local = local_hosts_of(arguments, clock);
  SLUICE_TRY(found, find_local(local, host));
  return *found != nullptr ? drain_local(**found, request, arguments, console)
                           : drain_far(host, request, arguments, console);
}

}  // namespace

Command drain_command() {
  return {
      .name = "drain",
      .group = "Fleet",
      .summary = "End a host as SIGTERM does: nothing more is claimed, handlers finish",
      .usage = "[HOST] [--wait [--timeout TIME]] [OPTION]...",
      .description =
          "HOST is a name or NAME:PID as `hosts` shows them; without one the only host of this machine is meant. A "
          "host "
          "of this machine is told at its control socket, in the folder [host] state_dir, whether or not the store can "
          "be reached; another one through the store.\n\n"
          "--wait returns when the host has ended, and prints its drain certificate where it is one of this machine; "
          "exit code 75 when it left work behind. A host that is started again by its supervisor is another one.",
      .flags = with_store_flags({{.name = "host", .value = "HOST", .help = "which one"},
                                 {.name = "wait", .value = {}, .help = "until it has ended"},
                                 {.name = "timeout", .value = "TIME", .help = "how long to wait [default: 10m]"}}),
      .positional = {"host"},
      .examples =
          "sluice drain --wait\n"
          "sluice drain web-1:4711",
      .run = drain,
  };
}

}  // namespace sluice::cli
