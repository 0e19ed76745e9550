#include "host/work/job.hpp"

#include <algorithm>

#include "host/plugin/metric_board.hpp"
#include "host/work/job_queues.hpp"
#include "host/work/job_threads.hpp"

namespace sluice::work {
namespace {

// After the end of a drain its threads have only to return; one that is in a call of the store has this long at least.
constexpr Duration kJoinTime = std::chrono::milliseconds(100);
// And however much is left of the drain, no longer than this: what has not returned then is left to itself.
constexpr Duration kLongestJoin = kHardStopTime;

// A process of its own has one call at a time.
plugin::HandlerKind kind_in(const config::JobConfig& config, const sluice_handler& handler) {
  const plugin::HandlerKind kind = plugin::kind_of(handler);
  const bool apart = config.isolation == config::Isolation::process;
  return apart && kind == plugin::HandlerKind::async ? plugin::HandlerKind::plain : kind;
}

WorkStyle style_of(const JobSpec& spec) {
  const std::size_t wanted = spec.config.max_batch > 0 ? spec.config.max_batch : config::kUsualBatch;
  // A queue that is in order hands out one message at a time: to wait for another one would be in vain.
  const bool in_order = spec.config.order == config::Order::queue;
  return {.kind = kind_in(spec.config, *spec.handler),
          .max_batch = in_order ? std::min(wanted, queues_of(spec.config).size()) : wanted,
          .max_wait = spec.config.max_wait};
}

// The keys of each queue of a job that has some; none for another. A record that is not committed with its message's
// end would be a promise that a crash breaks.
Result<KeyCall::Keys> open_keys(const JobSpec& spec, const queue::Source& source, const JobSeams& seams) {
  KeyCall::Keys keys;
  if (!spec.config.idempotency) {
    return keys;
  }
  if (!seams.keys || !source.traits().transactions) {
    return Error(ErrorCode::invalid,
                 "[job.idempotency] needs a store that commits a key together with its message, and "
                 "queue \"" +
                     spec.config.queue +
                     "\" lies in one that does not; take it away, or "
                     "move the queue");
  }
  for (const config::WeightedQueue& queue : queues_of(spec.config)) {
    SLUICE_TRY(opened, seams.keys(queue.name));
    keys.push_back(std::move(*opened));
  }
  return keys;
}

// Where a job's workers have their instances from.
class InstanceMaker {
 public:
  InstanceMaker(const JobSpec& spec, const JobSeams& seams)
      : spec_(spec),
        isolated_(seams.isolated),
        log_(handler_log(seams.log)),
        metrics_(std::make_shared<plugin::MetricBoard>(spec.config.name, log_)),
        effects_(plugin::effect_rules(spec.config, spec.store, seams.random, seams.clock)) {}

  // For the workers that the job begins with.
  Result<std::vector<WorkerInstance>> make_first() {
    std::vector<WorkerInstance> all;
    for (std::uint32_t i = 0; i < workers_of(spec_.config, *spec_.handler); ++i) {
      SLUICE_TRY(made, make(SeatKind::worker));
      all.push_back(std::move(*made));
    }
    return all;
  }

  // Thread-safe from the end of `make_first` on.
  Result<WorkerInstance> make(SeatKind kind) {
    if (isolated_ && (spec_.isolated || kind == SeatKind::quarantine)) {
      SLUICE_TRY(apart, isolated_(health_.seat(), metrics_));
      return WorkerInstance{std::move(*apart), true};
    }
    plugin::HandlerSurroundings surroundings{log_, effects_, health_.seat(), metrics_};
    SLUICE_TRY(arounds, plugin::make_arounds(surroundings, spec_.config.name, spec_.arounds, arounds_));
    if (shared_ != nullptr) {
      return WorkerInstance{shared_, false, std::move(*arounds)};
    }
    surroundings.around = *arounds;
    SLUICE_TRY(here, plugin::HandlerInstance::create(std::move(surroundings), *spec_.handler, spec_.config.name,
                                                     spec_.options));
    WorkerInstance made{std::move(*here), false};
    if (plugin::is_concurrent(*spec_.handler) && !style_of(spec_).async()) {
      shared_ = made.handler;
    }
    if (arounds_.empty() && !arounds->empty()) {
      arounds_ = std::move(*arounds);
    }
    return made;
  }

  std::vector<plugin::PartHealth> parts() const { return health_.parts(); }
  std::shared_ptr<plugin::MetricBoard> metrics() const { return metrics_; }

 private:
  const JobSpec& spec_;
  const plugin::InstanceFactory isolated_;
  const plugin::HandlerLog log_;
  const std::shared_ptr<plugin::MetricBoard> metrics_;
  const plugin::EffectRules effects_;
  plugin::HealthBoard health_;
  // Fixed by `make_first`.
  std::shared_ptr<plugin::HandlerInstance> shared_;
  plugin::AroundChain arounds_;  ///< of the first worker
};

}  // namespace

// Everything that a job consists of, in the order in which it must come to life.
class Job::Parts {
 public:
  Parts(JobSpec job_spec, std::unique_ptr<queue::Source> its_source, KeyCall::Keys its_keys, const JobSeams& seams)
      : spec(std::move(job_spec)),
        crash_ledger(seams.crash_ledger ? seams.crash_ledger : std::make_shared<isolation::JobLedger>()),
        source(std::move(its_source)),
        instances(spec, seams),
        flow(spec.config, {spec.host, spec.stuck_grace, spec.leases, seams.budgets, style_of(spec)}, seams.random,
             *crash_ledger, seams.clock.steady_now()),
        budgets(seams.budgets),
        shared(spec.config.name, flow, seams.clock, seams.log, seams.metrics, seams.tracer != nullptr),
        tracing(seams.tracer == nullptr
                    ? nullptr
                    : std::make_unique<JobTracing>(*seams.tracer, spec.config, spec.config.queue_names())),
        poller(shared, ClaimCall{*source, flow.in_flight().terms().visibility(), seams.clock, seams.explain,
                                 rules_of(spec.config, spec.max_in_flight), tracing.get(), own_ids_of(spec.config)}),
        settler(shared, SettleCall{*source, tracing.get()}),
        keeper(shared, ExtendCall{*source, flow.in_flight().terms().visibility()}),
        keys(std::move(its_keys)) {
    shared.watch_with(seams.watch);
    if (source->traits().runs_ahead) {
      shared.follow_with([this](std::span<const queue::Receipt> handled) { source->handled(handled); });
    }
    if (!keys.empty()) {
      asker = std::make_unique<CallLoop<KeyCall>>(
          shared, KeyCall{keys, MessageKey(*spec.config.idempotency), spec.config.name, seams.clock});
    }
  }

  // Makes the instances, and the workers for them.
  Result<void> equip() {
    SLUICE_TRY(first, instances.make_first());
    workers = std::make_unique<WorkerPool>(
        shared, *source,
        WorkerPool::Settings{spec.config.queue_names(), spec.config.retry.max_attempts, spec.config.timeout,
                             tracing.get(), style_of(spec)},
        std::move(*first), [this](SeatKind kind) { return instances.make(kind); }, *crash_ledger);
    return {};
  }

  // In the order in which they start.
  std::vector<runtime::Service*> services() {
    std::vector<runtime::Service*> all{&keeper, &settler, workers.get(), &poller};
    if (asker) {
      all.insert(all.begin(), asker.get());
    }
    return all;
  }

  // Those that make calls.
  std::vector<runtime::ServiceThread*> callers() {
    std::vector<runtime::ServiceThread*> all{&settler.thread(), &keeper.thread(), &poller.thread()};
    if (asker) {
      all.push_back(&asker->thread());
    }
    return all;
  }

  const JobSpec spec;
  const std::shared_ptr<isolation::JobLedger> crash_ledger;
  const std::unique_ptr<queue::Source> source;
  InstanceMaker instances;
  JobFlow flow;
  const std::vector<cost::UnitBudget*> budgets;
  SharedFlow shared;
  const std::unique_ptr<JobTracing> tracing;  ///< null: nothing is traced
  CallLoop<ClaimCall> poller;
  CallLoop<SettleCall> settler;
  CallLoop<ExtendCall> keeper;
  const KeyCall::Keys keys;
  std::unique_ptr<CallLoop<KeyCall>> asker;  ///< null: the job has no keys
  std::unique_ptr<WorkerPool> workers;
};

std::uint32_t workers_of(const config::JobConfig& config, const sluice_handler& handler) {
  return WorkStyle{.kind = kind_in(config, handler)}.seats(config.concurrency);
}

Result<std::unique_ptr<Job>> Job::create(JobSpec spec, std::unique_ptr<queue::Source> source, const JobSeams& seams) {
  SLUICE_ASSERT(spec.handler != nullptr && source != nullptr);
  SLUICE_TRY(keys, open_keys(spec, *source, seams));
  auto parts = std::make_unique<Parts>(std::move(spec), std::move(source), *std::move(keys), seams);
  SLUICE_PASS_ON(parts->equip());
  return std::unique_ptr<Job>(new Job(std::move(parts)));
}

Job::Job(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Job::~Job() { stop(); }

Result<void> Job::start() {
  for (runtime::Service* service : parts_->services()) {
    if (const auto started = service->start(); !started) {
      stop();
      return Error(started.error().code(),
                   "cannot make " + std::to_string(runtime::threads_of(workers_of(config(), *parts_->spec.handler))) +
                       " threads for job \"" + config().name + "\": " + started.error().message() +
                       "; raise the limit on processes or memory, or lower concurrency");
    }
  }
  return {};
}

void Job::stop() {
  hard_stop();
  drain(Deadline::after(parts_->shared.clock(), kHardStopTime));
  const auto services = parts_->services();
  std::for_each(services.rbegin(), services.rend(), [](auto* service) { service->stop(); });
}

void Job::begin_drain(Deadline deadline) {
  parts_->shared.run(
      [&](JobFlow& flow, SteadyTime now, StepEffects& effects) { flow.drain().begin(now, deadline.time(), effects); });
}

JobActivity Job::drain(Deadline deadline) {
  begin_drain(deadline);
  std::uint64_t seen = 0;
  while (const auto next = parts_->shared.run(
             [](JobFlow& flow, SteadyTime now, StepEffects& effects) { return flow.drain().step(now, effects); })) {
    parts_->shared.wait(SharedFlow::Caller::drain, seen, {}, *next);
  }
  // A hard stop may have brought the end forward.
  const SteadyTime end = parts_->shared.look([](const JobFlow& flow) { return flow.drain().deadline(); });
  const SteadyTime now = parts_->shared.clock().steady_now();
  const SteadyTime until = std::clamp(end, now + kJoinTime, now + kLongestJoin);
  parts_->workers->stop_idle_until(until);
  for (runtime::ServiceThread* caller : parts_->callers()) {
    caller->stop_until(until);
  }
  JobActivity left = activity();
  parts_->shared.metrics().workers(0, left.stuck().size());
  return left;
}

void Job::hard_stop() {
  parts_->shared.run([](JobFlow& flow, SteadyTime now, StepEffects& effects) { flow.drain().hard_stop(now, effects); });
}

void Job::steer(const JobSteering& steering) {
  SLUICE_ASSERT(steering.workers <= config::kMaxAsyncConcurrency);
  parts_->shared.run(&JobFlow::steer, steering);
}

void Job::share_rate(const RateLease& lease) { parts_->shared.run(&JobFlow::Rates::share, lease); }

bool Job::cancel(std::string_view message_id, const std::string& queue) {
  if (queue.empty()) {
    return parts_->shared.run(&JobFlow::cancel, message_id, std::nullopt);
  }
  const std::vector<std::string> queues = config().queue_names();
  const auto part = std::find(queues.begin(), queues.end(), queue) - queues.begin();
  return parts_->shared.run(&JobFlow::cancel, message_id, static_cast<std::uint16_t>(part));
}

JobActivity Job::activity() const {
  const SteadyTime now = parts_->shared.clock().steady_now();
  JobActivity activity = parts_->shared.look([now](const JobFlow& flow) { return flow.activity(now); });
  activity.held_by_budget = std::any_of(parts_->budgets.begin(), parts_->budgets.end(),
                                        [now](const cost::UnitBudget* budget) { return budget->holds(now); });
  return activity;
}

LedgerSnapshot Job::ledger() const {
  return parts_->shared.look([](const JobFlow& flow) { return flow.in_flight().account(); });
}

void Job::publish_workers() const { parts_->shared.metrics().workers(config().concurrency, activity().stuck().size()); }

bool Job::at_rest() const {
  const auto callers = parts_->callers();
  return parts_->workers->running() == 0 &&
         std::none_of(callers.begin(), callers.end(), [](auto* caller) { return caller->running(); });
}

const config::JobConfig& Job::config() const { return parts_->spec.config; }

std::vector<plugin::PartHealth> Job::parts() const { return parts_->instances.parts(); }

std::shared_ptr<plugin::MetricBoard> Job::metrics() const { return parts_->instances.metrics(); }

}  // namespace sluice::work
