#pragma once

#include "host/fleet/host_record.hpp"
#include "host/fleet/steering.hpp"

namespace sluice::fleet {

/// Steers one host from within its process: what obeys the boards and what listens at the control socket call the same.
/// Thread-safe; none of it waits for a store, a handler or a plugin.
class HostControl {
 public:
  HostControl() = default;
  HostControl(const HostControl&) = delete;
  HostControl& operator=(const HostControl&) = delete;
  virtual ~HostControl() = default;

  /// The host as it stands, `running` filled, `seen` and `answers` empty.
  virtual HostRecord describe() const = 0;

  /// Carries out an order (drain, reload, cancel_running) that means this host, once. The answer says what came of it;
  /// drain and reload have begun then.
  virtual Answer obey(const Directive& order) = 0;

  /// Looks at the boards now: somebody has just given a directive there.
  virtual void look_now() = 0;
};

}  // namespace sluice::fleet
