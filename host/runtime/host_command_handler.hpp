#pragma once

#include <functional>
#include <string>

#include "base/mutex.hpp"
#include "config/config.hpp"
#include "host/fleet/directive_resolver.hpp"
#include "host/fleet/host_control.hpp"
#include "host/observe/log.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/host_reporter.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// Where a host is steered from: what stands goes to its jobs and its log, orders to its jobs and its main thread, as
/// if signals had come. Thread-safe.
class HostCommandHandler final : public fleet::HostControl {
 public:
  struct Parts {
    const config::HostConfig& config;
    JobSet& jobs;
    HostReporter& reporter;
    HostEvents& events;
    observe::Log& log;
  };

  /// What `parts` refer to outlives the helm.
  explicit HostCommandHandler(const Parts& parts) : parts_(parts) {}

  /// Has the host run so, now and whatever jobs come later.
  void take(const fleet::HostSteering& standing);
  /// Who looks at the boards when he is asked to.
  void look_by(std::function<void()> look);

  fleet::HostRecord describe() const override { return parts_.reporter.describe(); }
  fleet::Answer obey(const fleet::Directive& order) override;
  void look_now() override;

 private:
  std::string drain();
  std::string reload();
  void log_at(const std::string& level);

  const Parts parts_;
  Mutex mutex_;
  std::function<void()> look_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::runtime
