#pragma once

#include <optional>
#include <string>

#include "host/cli/arguments.hpp"
#include "host/cli/console.hpp"
#include "host/cli/exit.hpp"
#include "host/fleet/steering.hpp"
#include "host/runtime/control_call.hpp"

namespace sluice::cli {

/// The hosts of this machine that work by the command's host file; none without one. They are reached whether or not
/// the store can be.
runtime::LocalHosts local_hosts_of(const Arguments& arguments, const Clock& clock);

/// An order to a host of this machine, given at its control socket. For one use.
class LocalOrder {
 public:
  /// `order` is what the audit says of it. All outlive this.
  LocalOrder(const runtime::LocalHost& host, fleet::Directive order, const Arguments& arguments, Console& console,
             const Clock& clock);

  /// Gives it and takes the first answer. Exit 1 where the host refuses or does not answer.
  OrExit<runtime::ControlAnswer> give(const runtime::ControlRequest& request);
  /// What came of it; for a request that waits.
  Result<runtime::ControlAnswer> outcome(Deadline deadline) { return call_->next(deadline); }
  bool wait_for_exit(Deadline deadline) { return call_->wait_for_exit(deadline); }

 private:
  /// Leaves a line for `sluice audit`; a store that cannot be reached is no reason not to steer.
  void note_for_audit();

  const runtime::LocalHost& host_;
  const fleet::Directive order_;
  const Arguments& arguments_;
  Console& console_;
  const Clock& clock_;
  std::optional<runtime::ControlCall> call_;
};

}  // namespace sluice::cli
