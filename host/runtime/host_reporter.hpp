#pragma once

#include <csignal>

#include "host/cost/cost_book.hpp"
#include "host/fleet/directive_resolver.hpp"
#include "host/fleet/host_record.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// Says what a host is and what it is at, for its record in the fleet. Thread-safe.
class HostReporter {
 public:
  /// What is said of the host as a whole; times and states come from elsewhere.
  struct Facts {
    const config::HostConfig& config;  ///< outlives the reporter
    std::string name;
    std::string version;
    const cost::CostBook* book = nullptr;  ///< the same; null: what it costs is not told
  };

  HostReporter(const Facts& facts, const JobSet& jobs, const Clock& clock, Random& random);

  const fleet::HostRecord& identity() const { return identity_; }
  /// With all that runs, the longest first.
  fleet::HostRecord describe() const;

  void set_state(fleet::HostState state) { state_ = state; }
  fleet::HostState state() const { return state_; }
  /// Of its HTTP side, once that is open.
  void set_address(std::string address) {
    const MutexLock lock(mutex_);
    address_ = std::move(address);
  }
  void set_log_level(std::string level) {
    const MutexLock lock(mutex_);
    log_level_ = std::move(level);
  }

 private:
  /// What a job had done at some moments: paces are measured from the last one that is not too young.
  struct Milestone {
    SteadyTime at{};
    work::LedgerSnapshot ledger;
    work::HandlerTimes times;
  };
  struct Milestones {
    Milestone last;
    Milestone before;
  };

  fleet::JobRecord describe(const JobSet::Member& member, const work::JobActivity& activity, SteadyTime now) const;
  fleet::JobPace pace_of(const std::string& job, const work::JobActivity& activity, SteadyTime now) const;

  // Fixed after construction.
  const JobSet& jobs_;
  const Clock& clock_;
  const cost::CostBook* const book_;
  const fleet::HostRecord identity_;

  std::atomic<fleet::HostState> state_{fleet::HostState::starting};
  mutable Mutex mutex_;
  std::string address_ SLUICE_GUARDED_BY(mutex_);
  std::string log_level_ SLUICE_GUARDED_BY(mutex_);
  mutable std::map<std::string, Milestones> milestones_ SLUICE_GUARDED_BY(mutex_);
};

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

  /// What `parts` refer to outlives it.
  explicit HostCommandHandler(const Parts& parts) : parts_(parts) {}

  /// Has the host run so, now and whatever jobs come later.
  void take(const fleet::HostSteering& standing);
  /// Who looks at the boards when he is asked to.
  void look_by(std::function<void()> look) {
    const MutexLock lock(mutex_);
    look_ = std::move(look);
  }

  fleet::HostRecord describe() const override { return parts_.reporter.describe(); }
  fleet::Answer obey(const fleet::Directive& order) override;
  void look_now() override;

 private:
  std::string drain() { return parts_.events.ask_drain() ? "draining" : "it drains already"; }
  std::string reload() {
    parts_.events.signal(SIGHUP);
    return "reloading; its log says what came of it";
  }
  void log_at(const std::string& level);

  const Parts parts_;
  Mutex mutex_;
  std::function<void()> look_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::runtime
