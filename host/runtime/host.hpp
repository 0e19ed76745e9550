#pragma once

#include "host/runtime/control_socket.hpp"
#include "host/runtime/fleet_service.hpp"
#include "host/runtime/health_report.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/isolation_ward.hpp"
#include "host/runtime/rate_service.hpp"
#include "host/runtime/scheduler.hpp"
#include "host/runtime/telemetry.hpp"
#include "host/runtime/wake_service.hpp"

namespace sluice::runtime {

/// The line of totals that `run --progress` shows. A value; used by one thread.
class ProgressLine {
 public:
  explicit ProgressLine(SteadyTime now) : last_(now) {}

  /// "12,345 done, 7 rejected, 3 in flight; 5,120/s" with the rate since the line before.
  std::string next(const work::LedgerSnapshot& total, SteadyTime now);

 private:
  SteadyTime last_;
  std::uint64_t last_ended_ = 0;
};

/// What came of a reload. A value.
struct ReloadNews {
  JobSet::Changes changes;
  std::vector<std::string> refusals;           ///< why nothing was reloaded; empty: it was
  std::vector<plugin::RejectedPlugin> unused;  ///< files that are not used
};

/// What a host stands on, in the order in which it is made and the reverse of which it goes.
struct HostGround {
  config::HostConfig config;
  std::string name;  ///< written into failures
  plugin::PluginRegistry plugins;
  observe::Metrics metrics;
  std::unique_ptr<Telemetry> telemetry;
  std::unique_ptr<cost::CostBook> book;
  std::unique_ptr<HostQueues> queues;
};

/// What a host works with besides. All of it outlives the host.
struct HostParts {
  ExplainQueue explain;
  observe::Log& log;
  const Clock& clock;
  Random& random;
  Errand& errand;  ///< for what may take as long as a plugin likes
  HostEvents& events;
  work::AttemptWatch watch{};  ///< is told of each message's end; empty: nobody
  /// Is told what came of each reload, in place of the log; empty: nobody.
  std::function<void(const ReloadNews&)> reloaded{};
};

/// The running host: its jobs, its HTTP side and what the main thread does until the drain. Used by the main thread;
/// `prepare` by the errand, and `begin_drain`, `hard_stop` and `account` by any.
class Host : boost::noncopyable {
 public:
  /// `ground` is whole by now, and outlives it.
  Host(HostGround& ground, const HostParts& parts);

  /// Opens the HTTP side and makes the jobs. Fails when the address is taken, a handler refuses its job, or the system
  /// has no room for the threads. Waits while a store cannot be opened for a reason that passes.
  Result<void> prepare(std::vector<JobPlan> plans);
  /// Starts what was prepared. Fails when a queue cannot be worked on for good, or a job has no threads; a drain has to
  /// follow then. When the events ask for a drain meanwhile it returns at once, and nothing runs.
  Result<void> start();

  /// Works through signals until a drain, or `until_empty` until the queues are empty. `progress`: a line a second.
  void run(bool until_empty, bool progress);

  /// Ends the jobs within the configured drain time-out.
  JobSet::Drained drain();
  /// Begins it, whatever the main thread is at.
  void begin_drain();
  void hard_stop() {
    jobs_.hard_stop();
    ward_.hard_stop();
  }
  /// The drain left something behind, and the process is about to be left; `crashes` tells it so. From any thread.
  void note_unclean_end(const std::string& why) { ward_.note_unclean_end(why); }
  /// Tells those who wait at the control socket how it has ended. Returns soon; from any thread.
  void farewell(const ControlEnding& ending) {
    if (control_) {
      control_->farewell(ending);
    }
  }
  /// As things stand, for whoever cannot wait for the drain.
  JobSet::Drained account() const { return jobs_.account(); }
  /// A thread still waits for a store's answer, and so would whoever destroys the host. To be asked after the drain.
  bool waits_for_store() const { return !services_ended_; }

 private:
  Result<std::unique_ptr<work::Job>> make_job(const JobPlan& plan);
  Result<void> open_http();
  Result<void> open_wake();
  /// Says in the log why nobody can speak to this host.
  void open_control();
  void begin_reload();
  std::string look_at_host_file() const;
  /// On the errand's thread. Nothing, and it is told why, when the files ask for what cannot be.
  std::optional<JobSet::Exchange> plan_reload();
  void reload(JobSet::Exchange next);
  /// Jobs that run on, for they are not among those that leave, although their plugin's file is not what is loaded.
  std::vector<std::string> on_old_code(const std::vector<std::string>& leaving) const;
  void refuse_reload(const std::vector<std::string>& reasons);
  void tell_reload(const ReloadNews& result) const;
  /// What came of it, to those who wait for it at the control socket.
  void answer_reload(const ControlAnswer& result) {
    if (control_) {
      control_->reload_ended(result);
    }
  }
  /// Every queue has nothing due and nothing in flight, here or elsewhere: what the last count said. Sends the errand
  /// for the next one, for a store may take its time to answer.
  bool empty();
  void take_count(const Result<bool>& empty);
  SteadyTime next_look(bool until_empty) const;

  HostGround& ground_;
  const HostParts parts_;

  // Synchronise themselves.
  IsolationWard ward_;
  JobSet jobs_;
  EmptyCheck emptiness_;  // touched only by the errand
  DepthSampler depths_;
  ThisHost this_host_;
  FleetService fleet_;
  RateService rates_;
  ScheduleService schedules_;

  // Touched by the errand, then only by the main thread.
  std::vector<JobPlan> plans_;  ///< of the start
  JobSet::Exchange first_jobs_;
  std::vector<Schedule> next_schedules_;  ///< of the reload under way
  std::string host_file_remark_;          ///< for who waits for it; empty: the file is as it was
  bool reload_waits_ = false;
  Result<void> probed_;
  bool services_ended_ = true;
  SteadyTime next_empty_check_{};
  bool counted_empty_ = false;
  std::string uncountable_;  ///< why the last count failed
  std::unique_ptr<observe::HttpEndpoint> http_;
  std::unique_ptr<WakeService> wake_;  ///< null where nobody can wake this host
  // Last, so that nobody is answered any more when the others go.
  std::unique_ptr<ControlSocket> control_;  ///< null where the state folder cannot be written to
};

}  // namespace sluice::runtime
