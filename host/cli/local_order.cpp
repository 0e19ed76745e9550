#include "host/cli/local_order.hpp"

#include <utility>

#include "host/cli/fleet_session.hpp"
#include "host/cli/host_file.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kAnswerTime = std::chrono::seconds(5);
constexpr Duration kAuditTime = std::chrono::seconds(3);

}  // namespace

runtime::LocalHosts local_hosts_of(const Arguments& arguments, const Clock& clock) {
  const bool has_file = names_host_file(arguments) || default_host_file();
  if (names_table(arguments) || !has_file) {
    return {};
  }
  const auto host = load_host_file(arguments);
  return host.has_error() ? runtime::LocalHosts() : find_local_hosts(runtime::ControlFolder::of(*host), clock);
}

LocalOrder::LocalOrder(const runtime::LocalHost& host, fleet::Directive order, const Arguments& arguments,
                       Console& console, const Clock& clock)
    : host_(host), order_(std::move(order)), arguments_(arguments), console_(console), clock_(clock) {}

OrExit<runtime::ControlAnswer> LocalOrder::give(const runtime::ControlRequest& request) {
  auto call = runtime::ControlCall::open(host_.file, clock_);
  if (!call) {
    return Exit::failure(call.error());
  }
  call_ = std::move(*call);
  auto answer = call_->ask(request, Deadline::after(clock_, kAnswerTime));
  if (!answer) {
    return Exit::failure("host " + host_.record.label() + ": " + answer.error().message());
  }
  if (!answer->error.empty()) {
    return Exit::failure("host " + host_.record.label() + ": " + answer->error);
  }
  note_for_audit();
  return std::move(*answer);
}

void LocalOrder::note_for_audit() {
  auto session = FleetSession::open(arguments_);
  Result<void> noted;
  if (session.has_error()) {
    noted = Error(ErrorCode::unavailable, session.error().lines().empty() ? "" : session.error().lines().front());
  } else {
    noted = session->fleet().note(order_, {}, this_operator(), Deadline::after(clock_, kAuditTime));
  }
  if (!noted) {
    console_.note("it is done, but `sluice audit` will not show it: " + noted.error().message());
  }
}

}  // namespace sluice::cli
