#pragma once

#include "host/fleet/host_record.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/isolation/runner.hpp"
#include "host/observe/log.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/job_plan.hpp"

namespace sluice::runtime {

/// A host that could not make its crash ledger tries again after this.
inline constexpr Duration kLedgerRetry = std::chrono::seconds(30);

/// This host's crash ledger, from the start or from later on: decides when it is tried again, gives jobs their parts,
/// and the crash handler its place. One that comes late counts what is held and is not in it, until that is settled;
/// one that is lost in use stays lost until a restart. Thread-safe; `begin`, `attempt` and `end` by one thread at a
/// time.
class OwnLedger : boost::noncopyable {
 public:
  /// `clock` and `log` outlive the object.
  OwnLedger(std::string folder, isolation::LedgerOwner owner, const Clock& clock, observe::Log& log)
      : folder_(std::move(folder)), owner_(std::move(owner)), clock_(clock), log_(log) {}
  ~OwnLedger() { end(); }

  /// Makes it, before any job. A host that cannot have one says so, and goes on without until `attempt` brings it.
  void begin();
  /// Tries again if that is due; when it is next. SteadyTime::max(): it is there; if it was lost the log says so.
  SteadyTime attempt(SteadyTime now) SLUICE_EXCLUDES(mutex_);
  /// Gives it up. What is held in it then stays for the next host.
  void end() SLUICE_EXCLUDES(mutex_);

  /// Whoever finds it knows that the host ended itself, by a drain that left something behind.
  void note_unclean_end(const std::string& why) SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (ledger_) {
      ledger_->note_unclean_end(clock_.wall_now(), why);
    }
  }

  /// The part of a job with these queues; never null, and usable for as long as somebody has it.
  std::shared_ptr<isolation::JobLedger> open(const std::vector<isolation::LedgerJob>& parts) SLUICE_EXCLUDES(mutex_);
  /// Why there is none; empty: there is one.
  std::string trouble() const SLUICE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return trouble_;
  }

 private:
  void take(std::shared_ptr<isolation::HostLedger> ledger) SLUICE_EXCLUDES(mutex_);
  void look_after(const isolation::HostLedger& ledger) SLUICE_REQUIRES(mutex_) {
    if (!trouble_.empty() || ledger.is_whole()) {
      return;
    }
    trouble_ = "the file in " + folder_ + " was removed, replaced or cut off; restart the host, which makes another";
    log_.warn("the crash ledger is lost: after a crash what was in flight waits for its leases to run out",
              {{"why", trouble_}});
  }
  void refused(const Error& error, SteadyTime now) SLUICE_EXCLUDES(mutex_);

  const std::string folder_;
  const isolation::LedgerOwner owner_;
  const Clock& clock_;
  observe::Log& log_;
  mutable Mutex mutex_;
  std::shared_ptr<isolation::HostLedger> ledger_ SLUICE_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<isolation::JobSlots>> waiting_ SLUICE_GUARDED_BY(mutex_);
  std::string trouble_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime due_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();
};

/// What one source is to be told. A value; the two lists go together.
struct RecoveryStep {
  queue::QueueAddress address;
  std::vector<queue::Completion> completions;
  std::vector<std::uint32_t isolation::LedgerSettlement::*> counts;  ///< as what each counts once it is settled
};

/// Decides on everything that a dead host held. What a handler had finished is removed. Where a crash is blamed on a
/// message, that one alone counts, by its job's policy, and is a suspect from now on; otherwise what ran or was being
/// committed is suspect, and a suspect that was being committed counts, since there is no other place left to find out.
/// A host that ended itself, by a drain that was not clean, died of none of them.
/// All others get their attempt back. A job that is not among `jobs` is taken to have attempts without end.
std::vector<RecoveryStep> plan_recovery(const isolation::LedgerContents& ledger,
                                        const std::vector<config::JobConfig>& jobs, Random& random, WallTime now);

/// A dead host's ledger on its way to history: tells the sources, again where it must, and counts. Of one thread.
class OrphanSettlement {
 public:
  OrphanSettlement(std::unique_ptr<isolation::OrphanLedger> ledger, std::vector<RecoveryStep> steps)
      : ledger_(std::move(ledger)), open_(std::move(steps)) {}

  /// Settles what is open, and then tells the owners' stores that the host has ended. True when nothing is left to try:
  /// everything is settled, or has been tried often enough.
  bool settle(queue::Queues& queues, queue::Owners& owners, SteadyTime now, Deadline deadline);
  /// When to try again.
  SteadyTime due() const { return due_; }

  const isolation::LedgerContents& contents() const { return ledger_->contents(); }
  /// What came of it so far.
  const isolation::LedgerSettlement& tally() const { return tally_; }
  /// Why something is still open; empty: nothing is.
  const std::string& trouble() const { return trouble_; }
  /// The end: it becomes history, or goes where it has nothing to tell.
  Result<void> close(WallTime now, std::string by);

 private:
  void tell(queue::Owners& owners, Deadline deadline);
  void settle_step(RecoveryStep& step, queue::Source& source, Deadline deadline);

  const std::unique_ptr<isolation::OrphanLedger> ledger_;
  std::vector<RecoveryStep> open_;
  isolation::LedgerSettlement tally_;
  std::string trouble_;
  bool told_ = false;  ///< the owners' stores
  std::uint32_t tries_ = 0;
  SteadyTime due_{};
};

/// What a recovery works with. All of it outlives the recovery.
struct RecoveryParts {
  std::string folder;            ///< of the ledgers
  isolation::LedgerOwner owner;  ///< this host: only ledgers of its own host file are its affair
  queue::Queues& queues;
  queue::Owners& owners;  ///< of the same stores
  const Clock& clock;
  Random& random;
  observe::Log& log;
  HostEvents& events;  ///< woken once what lay there at its start was tried
  OwnLedger& own;      ///< this host's, which its thread tries again where there is none yet
};

/// Settles what dead hosts held: those before this one, as soon as it starts, and its neighbours on the same folder, as
/// soon as the kernel says that one of them has closed its ledger. Thread-safe.
class LedgerRecovery final : public Service {
 public:
  explicit LedgerRecovery(RecoveryParts parts);
  ~LedgerRecovery() override { stop(); }

  /// The jobs whose policies count from now on.
  void use(std::vector<config::JobConfig> jobs) {
    const MutexLock lock(mutex_);
    jobs_ = std::move(jobs);
  }

  /// True once what lay there at the start was tried, and settled unless its store does not answer. A job that claims
  /// before that may take what is about to be settled, and then nobody is blamed for the death.
  bool has_looked() const { return looked_.load(); }
  /// The dead hosts whose ledgers were found since the last call.
  std::vector<fleet::HostEnd> take_ended() {
    const MutexLock lock(mutex_);
    return std::exchange(ended_, {});
  }

  Result<void> start() override;
  void stop() override {
    thread_.request_stop();
    bell_.ring();
    thread_.stop();
  }

 private:
  void attend(const std::stop_token& stop);
  void take(const std::string& file);
  void settle_what_is_due(const std::stop_token& stop);
  void finish(OrphanSettlement& settlement);
  void wait_until_something_happens(SteadyTime at_latest);

  const RecoveryParts parts_;
  const isolation::LedgerFolder folder_;
  Bell bell_;               ///< ends the wait; made anew where it could not be had, until the thread is started
  const Descriptor watch_;  ///< tells of files that are closed in the folder; none: nobody does
  // Synchronises itself.
  std::atomic<bool> looked_{false};
  Mutex mutex_;
  std::vector<config::JobConfig> jobs_ SLUICE_GUARDED_BY(mutex_);
  std::vector<fleet::HostEnd> ended_ SLUICE_GUARDED_BY(mutex_);
  // Touched only by its thread.
  std::vector<std::unique_ptr<OrphanSettlement>> under_way_;
  std::map<std::string, std::string> troubles_;  ///< of files: what was said of each

  ServiceThread thread_{"sluice-recovery"};
};

/// Where a host's ledgers lie.
std::string ledger_folder(const config::HostConfig& config);

/// How long after its time-out a handler in a process of its own is killed.
Duration kill_grace(const config::JobConfig& job);

/// The plugins of what goes around the job's handler, for processes of their own. Fails when a file is gone.
Result<std::vector<isolation::RunnerAround>> open_arounds(const JobPlan& plan, const plugin::PluginRegistry& registry);

/// What a ward works with. All of it outlives the ward.
struct WardParts {
  const config::HostConfig& config;
  std::string host;  ///< this host's name
  queue::Queues& queues;
  queue::Owners& owners;  ///< of the same stores
  const plugin::PluginRegistry& plugins;
  observe::Log& log;
  const Clock& clock;
  Random& random;
  HostEvents& events;  ///< what the main thread waits for
};

/// What a host has against handlers that end their process: crash ledger and handler, recovery, Runners. Outlives the
/// jobs. Used by one thread at a time; `hard_stop`, `ledger_trouble` and `take_ended` by any.
class IsolationWard : boost::noncopyable {
 public:
  explicit IsolationWard(const WardParts& parts);
  ~IsolationWard() { stop(); }

  /// Makes the ledger, where the state folder lets it, and the threads. Before any job. A host that cannot have a
  /// ledger says so in its log, and goes on without until it can.
  Result<void> start() {
    ledger_.begin();
    return spawner_.start();
  }
  /// Settles what dead hosts held, by the policies of these jobs; with each reload anew. False: there is no thread for
  /// it.
  bool recover(const std::vector<JobPlan>& plans);
  /// The same for the first jobs: returns once what dead hosts held is settled, so that no job claims it before. A
  /// store that does not answer holds up nobody for long, nor does anything a host that is to end.
  void recover_first(const std::vector<JobPlan>& plans);
  /// Ends everything. After the jobs.
  void stop() {
    recovery_.stop();
    spawner_.stop();
    ledger_.end();
  }
  /// Kills the Runners.
  void hard_stop() { spawner_.kill_all(); }

  void note_unclean_end(const std::string& why) { ledger_.note_unclean_end(why); }
  /// As LedgerRecovery's. By any thread.
  std::vector<fleet::HostEnd> take_ended() { return recovery_.take_ended(); }
  /// Why there is no crash ledger; empty: there is one. By any thread.
  std::string ledger_trouble() const { return ledger_.trouble(); }
  /// A job's part of the ledger; never null.
  std::shared_ptr<isolation::JobLedger> ledger_for(const JobPlan& plan);
  /// Makes instances of the job's handler in processes of their own. Fails when the plugin's file is gone.
  Result<plugin::InstanceFactory> runners_for(const JobPlan& plan);

 private:
  isolation::HandlerFacts facts_of(const JobPlan& plan) const {
    return {plan.config.name, plan.plugin_file, plan.config.handler};
  }

  const WardParts parts_;
  const isolation::LedgerOwner owner_;
  OwnLedger ledger_;
  isolation::RunnerSpawner spawner_;
  LedgerRecovery recovery_;  ///< last, so that its thread ends before what it uses
};

}  // namespace sluice::runtime
