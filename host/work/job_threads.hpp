#pragma once

#include "host/observe/tracer.hpp"
#include "host/work/job_flow.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::work {

/// How a job calls what it does with a message, in traces. A value.
struct SpanNames {
  std::string_view claim = "claim";
  std::string_view handle = "handle";
  std::string_view settle = "settle";

  /// Those of a job of that queue: an outbox's rows are fetched, published and marked.
  static SpanNames of(std::string_view queue);
};

/// A job's messages in traces: three spans each, claim, and below it handle and settle. Thread-safe; keeps nothing:
/// where a message is in its trace the message itself says. One that is claimed gets a place of its own in the trace
/// that its `traceparent` names, or in a new one, and carries that on to its handler and to messages that this sends.
class JobTracing {
 public:
  /// `queues` by the part of their source. The tracer outlives it.
  JobTracing(observe::Tracer& tracer, const config::JobConfig& job, std::vector<std::string> queues)
      : tracer_(tracer),
        job_(job.name),
        handler_(job.handler),
        queues_(std::move(queues)),
        names_(SpanNames::of(queues_.front())) {}

  SteadyTime now() const { return tracer_.now(); }

  /// These were claimed by a call that began then.
  void claimed(std::span<queue::Delivery> deliveries, SteadyTime began);
  /// Runs the handler, or begins with the message: what the thread logs meanwhile is of the message's trace.
  static void within(const Task& task, const std::function<void()>& handler);
  /// The handler has worked on the message since then: what it sends is of the message's trace too.
  void handled(const Task& task, SteadyTime began, plugin::Outcome& outcome);
  /// A call that began then has settled these, in the order of the results.
  void settled(std::span<Task* const> tasks, std::span<const queue::Completion> completions,
               std::span<const queue::SettleResult> results, SteadyTime began);

 private:
  observe::Tracer& tracer_;
  const std::string job_;
  const std::string handler_;
  const std::vector<std::string> queues_;
  const SpanNames names_;
};

/// What handlers write, as lines of the host's log with their job and message. `log` outlives it.
plugin::HandlerLog handler_log(observe::Log& log);

/// The thread that makes one kind of call for a job: asks the flow for an order, carries it out without the lock, and
/// reports what came of it. Each kind has a thread of its own, so that no call, however slow, lets a lease run out. A
/// `Call` says what kind it is: `kCaller`, `kName`, `kNext`, which step of the flow gives an order, `make(order)`, and
/// `kReport`, which step takes order and answer; it may have a `begin(flow)` before the first and an `end()` after the
/// last.
template <typename Call>
class CallLoop final : public runtime::Service {
 public:
  CallLoop(SharedFlow& flow, Call call) : flow_(flow), call_(std::move(call)), thread_(Call::kName) {}

  Result<void> start() override {
    return thread_.start([this](const std::stop_token& stop) { run(stop); });
  }
  void stop() override { thread_.stop(); }
  runtime::ServiceThread& thread() { return thread_; }

 private:
  void run(const std::stop_token& stop) {
    if constexpr (requires { call_.begin(flow_); }) {
      call_.begin(flow_);
    }
    std::uint64_t seen = 0;
    while (!stop.stop_requested()) {
      auto order = flow_.run(Call::kNext);
      if (order.empty()) {
        flow_.wait(Call::kCaller, seen, stop, order.wake);
        continue;
      }
      auto answer = call_.make(order);
      flow_.run(Call::kReport, std::move(order), std::move(answer));
    }
    if constexpr (requires { call_.end(); }) {
      call_.end();
    }
  }

  SharedFlow& flow_;
  Call call_;
  runtime::ServiceThread thread_;
};

/// Says in one line what is wrong with a job's queue and how a person mends it.
using ExplainError = std::function<std::string(const Error& error)>;

/// Claims. Also starts and stops the source, so that one that does not return holds up nothing but this thread.
struct ClaimCall {
  static constexpr auto kCaller = SharedFlow::Caller::poller;
  static constexpr const char* kName = "sluice-poller";
  static constexpr auto kNext = &JobFlow::next_claim;
  static constexpr auto kReport = [](JobFlow& flow, const Claimer::Order&, Result<queue::Claimed> answer,
                                     SteadyTime now,
                                     StepEffects& effects) { flow.claimed(std::move(answer), now, effects); };

  queue::Source& source;
  Duration visibility;
  const Clock& clock;
  ExplainError explain{};  ///< may be empty
  queue::ClaimRules rules{};
  JobTracing* tracing = nullptr;  ///< may be null
  std::string own_ids_of{};       ///< as ClaimRequest's

  void begin(SharedFlow& flow) {
    source.start(
        {.on_ready = [&flow] { flow.run(&JobFlow::wake); },
         .lost = [&flow](std::span<const queue::Receipt> receipts) { flow.run(&JobFlow::taken_back, receipts); }});
  }
  void end() { source.stop(); }

  Result<queue::Claimed> make(const Claimer::Order& order) {
    const SteadyTime began = tracing != nullptr ? tracing->now() : SteadyTime();
    auto claimed = source.claim({.max = order.count,
                                 .bytes = kClaimBytes,
                                 .visibility = visibility,
                                 .suspects = order.suspects,
                                 .rules = rules,
                                 .own_ids_of = own_ids_of},
                                Deadline::after(clock, kSourceTimeout));
    if (!claimed && claimed.error().code() == ErrorCode::over_limit) {
      // No failure: there is nothing to be had until somebody has settled something.
      return queue::Claimed{};
    }
    if (!claimed && explain) {
      return Error(claimed.error().code(), explain(claimed.error()));
    }
    if (tracing != nullptr && claimed) {
      tracing->claimed(claimed->deliveries, began);
    }
    return claimed;
  }
};

/// Settles.
struct SettleCall {
  static constexpr auto kCaller = SharedFlow::Caller::settler;
  static constexpr const char* kName = "sluice-settler";
  static constexpr auto kNext = &JobFlow::next_settlement;
  static constexpr auto kReport = &JobFlow::settled;

  queue::Source& source;
  JobTracing* tracing = nullptr;  ///< may be null

  std::vector<queue::SettleResult> make(const Settler::Order& order) {
    if (tracing == nullptr) {
      return source.settle(order.completions, Deadline::at(order.deadline));
    }
    const SteadyTime began = tracing->now();
    auto results = source.settle(order.completions, Deadline::at(order.deadline));
    tracing->settled(order.tasks, order.completions, results, began);
    return results;
  }
};

/// Extends leases.
struct ExtendCall {
  static constexpr auto kCaller = SharedFlow::Caller::keeper;
  static constexpr const char* kName = "sluice-leases";
  static constexpr auto kNext = &JobFlow::next_extension;
  static constexpr auto kReport = &JobFlow::extended;

  queue::Source& source;
  Duration visibility;

  std::vector<queue::ExtendResult> make(const LeaseKeeper::Order& order) {
    return source.extend(order.receipts, visibility, Deadline::at(order.deadline));
  }
};

/// Asks for idempotency keys: the fourth kind of calls of a job, on a thread of its own where the job has keys. Reads
/// the keys of messages here, without the job's lock, as bodies may be long.
struct KeyCall {
  static constexpr auto kCaller = SharedFlow::Caller::keys;
  static constexpr const char* kName = "sluice-keys";
  static constexpr auto kNext = &JobFlow::next_keys;
  static constexpr auto kReport = &JobFlow::keys_answered;

  /// Keys by the part that a message's receipt is of.
  using Keys = std::vector<std::unique_ptr<queue::IdempotencyKeys>>;

  const Keys& keys;  ///< at least one
  MessageKey key;
  std::string job;
  const Clock& clock;

  IdempotencyGate::Answers make(const IdempotencyGate::Order& order);
};

/// A worker for suspects ends when nothing has come to it for so long.
inline constexpr Duration kQuarantineIdle = std::chrono::seconds(30);

/// An instance of the job's handler for one worker, and where it runs.
struct WorkerInstance {
  std::shared_ptr<plugin::HandlerInstance> handler;
  bool isolated = false;          ///< in a process of its own
  plugin::AroundChain arounds{};  ///< of its own, around a handler that workers share; empty: as the handler has them
};

/// The threads that run handlers: the workers that it begins with, those that take the place of lost ones, and those
/// for suspects, as the flow asks for them. Each has one attempt at a time, or a batch; one alone begins with the
/// messages of an asynchronous handler, and has come to its end when all of them have. A worker destroys its instance
/// when it ends.
class WorkerPool final : public runtime::Service {
 public:
  struct Settings {
    std::vector<std::string> queues;  ///< by the part of their source
    std::uint32_t max_attempts = 0;   ///< shown to handlers; 0: no limit
    Duration timeout{};               ///< of an attempt; zero: none
    JobTracing* tracing = nullptr;    ///< null: nothing is traced; outlives the pool
    WorkStyle style{};
  };
  /// Makes what a thread that comes later works with; called on that thread.
  using MakeInstance = std::function<Result<WorkerInstance>(SeatKind kind)>;

  /// As many workers as `instances`; two share a handler only if it is concurrent.
  /// `source` is asked before each start whether it holds the message still, and stores progress.
  WorkerPool(SharedFlow& flow, queue::Source& source, Settings settings, std::vector<WorkerInstance> instances,
             MakeInstance make_instance, isolation::JobLedger& crash_ledger)
      : flow_(flow),
        source_(source),
        settings_(std::move(settings)),
        make_instance_(std::move(make_instance)),
        crash_ledger_(crash_ledger),
        first_(std::move(instances)) {
    flow_.hire_with([this](SeatKind kind) { hire(kind); });
  }

  ~WorkerPool() override {
    stop();
    flow_.hire_with({});
  }

  Result<void> start() override;
  void stop() override {
    for (Worker* worker : request_stop()) {
      worker->thread.stop();
    }
  }
  /// Stops the workers whose handler has returned, waiting until `time`; the others end when theirs does.
  void stop_idle_until(SteadyTime time) {
    for (Worker* worker : request_stop()) {
      if (worker->batch.counts().at_work == 0) {
        worker->thread.stop_until(time);
      }
    }
  }
  /// Threads that have not come to their end.
  std::uint32_t running() {
    std::uint32_t count = 0;
    const MutexLock lock(mutex_);
    for (Worker& worker : workers_) {
      count += worker.thread.running() ? 1 : 0;
    }
    return count;
  }

 private:
  struct Worker {
    Worker(WorkerPool& its_pool, SeatKind its_kind, std::string name)
        : pool(its_pool),
          batch(its_pool.flow_.clock(), its_pool.settings_.timeout),
          kind(its_kind),
          thread(std::move(name)) {}
    WorkerPool& pool;
    WorkerBatch batch;
    const SeatKind kind;
    std::uint32_t seat = 0;
    WorkerInstance instance;
    runtime::ServiceThread thread;
  };
  class BegunMessage;
  class Checkpoints;

  void hire(SeatKind kind) {
    if (const auto made = make(kind, {}); !made) {
      flow_.log(observe::LogLevel::error, "cannot make a worker, trying again", made.error().message());
      flow_.run(&JobFlow::not_made, kind);
    }
  }
  Result<void> make(SeatKind kind, WorkerInstance instance) SLUICE_EXCLUDES(mutex_);
  /// Of all workers, and nobody is made any more.
  std::vector<Worker*> request_stop() SLUICE_EXCLUDES(mutex_);
  void run(Worker& worker, const std::stop_token& stop);
  bool equip(Worker& worker);
  void work_off(Worker& worker);
  /// What is to be started next; null: nothing.
  WorkerBatch::Running* next(Worker& worker, SteadyTime now);
  plugin::Work work_of(const Worker& worker, WorkerBatch::Running& run) const {
    const plugin::AroundChain& arounds = worker.instance.arounds;
    return {run.task->message, queue_of(settings_.queues, run.task->part), settings_.max_attempts, run.attempt,
            arounds.empty() ? nullptr : &arounds};
  }
  void run_one_by_one(Worker& worker);
  void run_batch(Worker& worker);
  void begin_all(Worker& worker);
  /// The handler has come to an end with it.
  void note_end(const WorkerBatch::Running& run, plugin::Outcome& outcome);
  /// Takes no memory.
  template <typename Handler>
  void within_trace(const Task& task, const Handler& handler) const {
    settings_.tracing == nullptr ? handler() : JobTracing::within(task, std::ref(handler));
  }

  SharedFlow& flow_;
  queue::Source& source_;
  const Settings settings_;
  const MakeInstance make_instance_;
  isolation::JobLedger& crash_ledger_;

  Mutex mutex_;
  bool stopping_ SLUICE_GUARDED_BY(mutex_) = false;
  std::uint32_t next_number_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::vector<WorkerInstance> first_ SLUICE_GUARDED_BY(mutex_);
  std::list<Worker> workers_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::work
