#pragma once

#include "host/cost/cost_book.hpp"
#include "host/observe/tracer.hpp"
#include "host/plugin/around.hpp"
#include "host/work/in_flight_table.hpp"

namespace sluice::work {

/// Past its time-out a handler has this long to notice its stop token before it is given up as stuck.
inline constexpr Duration kStuckGrace = std::chrono::seconds(5);

/// What a job is made of, within the limits of its files. A value.
struct JobSpec {
  config::JobConfig config;
  const sluice_handler* handler = nullptr;  ///< never null; lives as long as the process
  plugin::OptionValues options;
  std::vector<plugin::AroundSpec> arounds{};     ///< the outermost first
  std::uint64_t max_in_flight = 0;               ///< of the queue, everybody's; 0: no limit
  std::vector<QueueLease> leases{QueueLease{}};  ///< of each of its queues
  std::string host;                              ///< this host's name, written into failures
  Duration stuck_grace = kStuckGrace;
  config::StoreKind store = config::StoreKind::sqlite;  ///< that the queue lies in: what effects are written in
  bool isolated = false;  ///< every worker runs its handlers in a process of its own, not suspects alone
};

/// The threads that run a job's handlers: one where they are asynchronous and in this process, whatever its
/// concurrency.
std::uint32_t workers_of(const config::JobConfig& config, const sluice_handler& handler);

/// What a job works with. All of it outlives the job.
struct JobSeams {
  const Clock& clock;
  Random& random;
  observe::Log& log;
  observe::JobMetrics& metrics;
  /// The job's part of the crash ledger, given up with the job; null: nothing is kept.
  std::shared_ptr<isolation::JobLedger> crash_ledger;
  /// Makes instances that run the handler in a process of their own. Empty: suspects run in this process.
  plugin::InstanceFactory isolated;
  /// Says in one line what is wrong with the queue and how a person mends it. Empty: what the source says is logged.
  std::function<std::string(const Error& error)> explain;
  /// Opens a queue's idempotency keys, for a job that has some. Empty: there are none.
  std::function<Result<std::unique_ptr<queue::IdempotencyKeys>>(const std::string& queue)> keys{};
  observe::Tracer* tracer = nullptr;         ///< null: nothing is traced
  AttemptWatch watch{};                      ///< is told of each message's end; empty: nobody
  std::vector<cost::UnitBudget*> budgets{};  ///< of its queues, for those that have one
};

/// One job: claims messages, runs the handler over them and settles what came out, on `concurrency` worker threads and
/// one each for claiming, settling and extending leases. Thread-safe. The usual end is `drain`, which returns by its
/// deadline. What has not returned by then still has its thread: a job that is not `at_rest` waits in its destructor.
/// Keep the object until it is, or leave the process without destroying it.
class Job final : public runtime::Service {
 public:
  /// Makes the handler's instances: one, or one for each worker when the handler is not concurrent. Fails with the
  /// handler's own words when it refuses, and with code `invalid` where its queue can keep no idempotency keys. The job
  /// owns `source`, which is started with it and stopped when it has ended.
  static Result<std::unique_ptr<Job>> create(JobSpec spec, std::unique_ptr<queue::Source> source,
                                             const JobSeams& seams);
  ~Job() override;

  /// Makes the threads: all of them, or none and an error that names the limit.
  Result<void> start() override;
  /// `hard_stop`, then waits until every thread has ended, handlers included.
  void stop() override;

  /// Begins the drain and returns at once, so that many jobs drain side by side: no more claims, what has not started
  /// is released, running handlers get their stop token. A second call can only bring the deadline forward.
  void begin_drain(Deadline deadline);
  /// As begin_drain, then waits for the end: by the deadline at the latest every handler has returned or its message
  /// was released, settlements are written, and the threads (but those of handlers that do not return) have ended. Says
  /// how it ended.
  JobActivity drain(Deadline deadline);
  /// Ends without waiting for handlers: one short try to release what is held. A `drain` returns soon after it.
  void hard_stop();

  /// Runs it so from now on. When it returns no handler starts any more that a pause forbids.
  void steer(const JobSteering& steering);
  /// This is its part of a limit that all its hosts share.
  void share_rate(const RateLease& lease);
  /// Sets the stop token of the handler that works on this message of that queue, or with an empty one of any. False:
  /// it is not worked on here.
  bool cancel(std::string_view message_id, const std::string& queue);
  JobActivity activity() const;
  LedgerSnapshot ledger() const;
  /// How what its handlers work with fares, as far as they say so: their brokers.
  std::vector<plugin::PartHealth> parts() const;
  /// What its handlers count for themselves. Good beyond the job.
  std::shared_ptr<plugin::MetricBoard> metrics() const;
  /// Brings the gauges of its workers up to date.
  void publish_workers() const;
  /// None of its threads runs: it can be destroyed without waiting.
  bool at_rest() const;
  const config::JobConfig& config() const;

 private:
  class Parts;
  explicit Job(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sluice::work
