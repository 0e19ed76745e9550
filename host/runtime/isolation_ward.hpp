#pragma once

#include "host/isolation/runner_spawner.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/ledger_recovery.hpp"

namespace sluice::runtime {

/// Where a host's ledgers lie.
std::string ledger_folder(const config::HostConfig& config);

/// How long after its time-out a handler in a process of its own is killed.
Duration kill_grace(const config::JobConfig& job);

/// What a ward works with. All of it outlives the ward.
struct WardParts {
  const config::HostConfig& config;
  std::string host;  ///< this host's name
  queue::Queues& queues;
  queue::Owners* owners;  ///< of the same stores; may be null
  const plugin::PluginRegistry& plugins;
  observe::Log& log;
  const Clock& clock;
  Random& random;
};

/// What a host has against handlers that end their process: its crash ledger and crash handler, the recovery of what
/// dead hosts held, and the Runners. Outlives the host's jobs. Used by one thread at a time; `hard_stop` and
/// `ledger_trouble` by any.
class IsolationWard {
 public:
  explicit IsolationWard(const WardParts& parts);
  ~IsolationWard() { stop(); }
  IsolationWard(const IsolationWard&) = delete;
  IsolationWard& operator=(const IsolationWard&) = delete;

  /// Makes the ledger, where the state folder lets it, and the threads. Before any job. A host that cannot have a
  /// ledger says so in its log, and goes on without until it can.
  Result<void> start() {
    ledger_.begin();
    return spawner_.start();
  }
  /// Settles what dead hosts held, by the policies of these jobs; with each reload anew.
  void recover(const std::vector<JobPlan>& plans) { recover(plans, {}); }
  /// The same for the first jobs: returns once what dead hosts held is settled, so that no job claims it before. A
  /// store that does not answer holds up nobody for long, nor does anything a host that is to end.
  void recover_first(const std::vector<JobPlan>& plans, HostEvents& events);
  /// Ends everything. After the jobs.
  void stop() {
    if (recovery_) {
      recovery_->stop();
    }
    spawner_.stop();
    ledger_.end();
  }
  /// Kills the Runners.
  void hard_stop() { spawner_.kill_all(); }

  /// Why there is no crash ledger; empty: there is one. By any thread.
  std::string ledger_trouble() const { return ledger_.trouble(); }
  /// A job's part of the ledger; never null.
  std::shared_ptr<isolation::JobLedger> ledger_for(const JobPlan& plan);
  /// Makes instances of the job's handler in processes of their own, for one worker each. Fails when the plugin's file
  /// is not there any more.
  Result<plugin::InstanceFactory> runners_for(const JobPlan& plan);

 private:
  void recover(const std::vector<JobPlan>& plans, std::function<void()> looked);
  isolation::HandlerFacts facts_of(const JobPlan& plan) const {
    return {plan.config.name, plan.plugin_file, plan.config.handler};
  }

  const WardParts parts_;
  const std::string folder_;
  const isolation::LedgerOwner owner_;
  OwnLedger ledger_;
  isolation::RunnerSpawner spawner_;
  std::unique_ptr<LedgerRecovery> recovery_;
};

}  // namespace sluice::runtime
