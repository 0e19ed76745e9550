#include <algorithm>

#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/local_order.hpp"
#include "host/cli/views/steering_report.hpp"

namespace sluice::cli {

namespace {

/// Handlers are tried in processes of their own, each for up to ten seconds.
constexpr Duration kReloadTime = std::chrono::minutes(2);

fleet::Directive reload_of(const std::string& host) {
  fleet::Directive order;
  order.wish = fleet::Wish::reload;
  order.target = host.empty() ? fleet::Target::all : fleet::Target::host;
  order.name = host;
  return order;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// By its control socket, and until it is through.
Exit reload_local(const runtime::LocalHost& host, Output output, const Arguments& arguments, Console& console) {
  const SystemClock clock;
  const std::string label = host.record.label();
  LocalOrder order(host, reload_of(label), arguments, console, clock);
  SLUICE_TRY(begun, order.give({.verb = runtime::ControlVerb::reload, .message = {}, .wait = true}));
  const auto ended = order.outcome(Deadline::after(clock, kReloadTime));
  if (!ended) {
    return Exit::failure("host " + label +
                         " has begun to reload, and nobody knows what came of it: " + ended.error().message());
  }
  if (ended->ending) {
    return Exit::failure("host " + label + " has ended before it came to the reload");
  }
  if (!ended->error.empty()) {
    return {kExitConfiguration, lines_of(ended->error)};
  }
  show({reload_of(label).text(), label, ended->text}, output, console);
  return Exit::ok();
}

/// Through the store.
Exit reload_far(const std::string& host, Output output, const Arguments& arguments, Console& console) {
  SLUICE_TRY(session, FleetSession::open(arguments));
  fleet::Directive order = reload_of(host);
  if (!host.empty()) {
    auto named = session->names().host(fleet::Wish::reload, host);
    if (!named) {
      return Exit::failure(named.error());
    }
    order = std::move(*named);
  }
  SLUICE_TRY(given, session->give(order, {}));
  SLUICE_TRY(compliance, session->follow(std::move(*given)));
  return show_answers(order.text(), *compliance, output, console);
}

Exit reload(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  const std::string host = arguments.get("host");
  const SystemClock clock;
  const runtime::LocalHosts local = local_hosts_of(arguments, clock);
  if (host.empty() && local.hosts.size() != 1) {
    return reload_far(host, *output, arguments, console);
  }
  SLUICE_TRY(found, find_local(local, host));
  return *found != nullptr ? reload_local(**found, *output, arguments, console)
                           : reload_far(host, *output, arguments, console);
}

}  // namespace

Command reload_command() {
  return {
      .name = "reload",
      .group = "Fleet",
      .summary = "Let a host read its job files and plugins again, as SIGHUP does",
      .usage = "[HOST] [OPTION]...",
      .description =
          "HOST is a name or NAME:PID as `hosts` shows them; without one the only host of this machine is meant, and "
          "where none or several run here, all hosts. A host of this machine is told at its control socket, in the "
          "folder [host] state_dir: then the command waits, says what has changed, and ends with exit code 78 when the "
          "files are wrong and nothing was. A host elsewhere is told through the store, and says what came of it in "
          "its "
          "log.",
      .flags = with_store_flags({{.name = "host", .value = "HOST", .help = "which one"}}),
      .positional = {"host"},
      .examples =
          "sluice reload\n"
          "sluice reload web-1",
      .run = reload,
  };
}

}  // namespace sluice::cli
