#include "host/work/job.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/assert.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/work/hand.hpp"
#include "host/work/job_flow.hpp"
#include "host/work/lease_keeper.hpp"
#include "host/work/poller.hpp"
#include "host/work/settler.hpp"
#include "host/work/shared_flow.hpp"
#include "host/work/worker_pool.hpp"

namespace sluice::work {
namespace {

using Instances = std::vector<std::unique_ptr<plugin::HandlerInstance>>;

constexpr std::uint32_t kMaxConcurrency = 4096;
// Those that claim, settle and extend.
constexpr std::uint32_t kOwnThreads = 3;
constexpr Duration kMinVisibility = std::chrono::milliseconds(100);
// After the end of a drain its threads have only to return; one that is in a call of the store has this long at least.
constexpr Duration kJoinTime = std::chrono::milliseconds(100);

observe::LogLevel log_level(sluice_log_level level) {
  switch (level) {
    case SLUICE_LOG_TRACE:
      return observe::LogLevel::trace;
    case SLUICE_LOG_DEBUG:
      return observe::LogLevel::debug;
    case SLUICE_LOG_WARN:
      return observe::LogLevel::warn;
    case SLUICE_LOG_ERROR:
      return observe::LogLevel::error;
    default:
      return observe::LogLevel::info;
  }
}

plugin::HandlerLog handler_log(observe::Log& log) {
  return [&log](sluice_log_level level, std::string_view job, std::string_view message_id, std::string_view text) {
    if (message_id.empty()) {
      log.write(log_level(level), text, {{"job", job}});
    } else {
      log.write(log_level(level), text, {{"job", job}, {"id", message_id}});
    }
  };
}

Result<void> check(const JobSpec& spec) {
  const std::string job = "job \"" + spec.config.name + "\": ";
  if (spec.config.concurrency == 0 || spec.config.concurrency > kMaxConcurrency) {
    return Error(ErrorCode::invalid, job + "concurrency must be between 1 and " + std::to_string(kMaxConcurrency));
  }
  if (spec.visibility_timeout < kMinVisibility || spec.visibility_timeout > std::chrono::hours(24)) {
    return Error(ErrorCode::invalid, job + "the queue's visibility_timeout must be between 100ms and 24h");
  }
  if (spec.config.timeout < Duration::zero()) {
    return Error(ErrorCode::invalid, job + "timeout must not be negative");
  }
  return {};
}

Result<Instances> make_instances(const JobSpec& spec, observe::Log& log) {
  const std::uint32_t count = plugin::is_concurrent(*spec.handler) ? 1 : spec.config.concurrency;
  Instances instances;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto instance = plugin::HandlerInstance::create(*spec.handler, spec.config.name, spec.options, handler_log(log));
    if (!instance) {
      return instance.error();
    }
    instances.push_back(std::move(*instance));
  }
  return instances;
}

JobFlow::Settings flow_settings(const JobSpec& spec) {
  return {.visibility = spec.visibility_timeout,
          .timeout = spec.config.timeout,
          .stuck_grace = spec.stuck_grace,
          .rate_limit = spec.config.rate_limit};
}

queue::QueueAddress address_of(const config::JobConfig& config) {
  return {config.queue, config.source == config::Source::dlq ? queue::QueueType::dlq : queue::QueueType::standard};
}

}  // namespace

// Everything that a job consists of, in the order in which it must come to life.
class Job::Parts {
 public:
  Parts(JobSpec job_spec, std::unique_ptr<queue::Source> its_source, Instances handler_instances, const JobSeams& seams)
      : spec(std::move(job_spec)),
        source(std::move(its_source)),
        instances(std::move(handler_instances)),
        hands(make_hands(spec, seams.clock)),
        flow(flow_settings(spec), FailurePolicy(spec.config, spec.host), pointers(hands), seams.random,
             seams.clock.steady_now()),
        shared(spec.config.name, flow, seams.clock, seams.log, seams.metrics),
        poller(shared, *source, spec.visibility_timeout),
        settler(shared, *source),
        keeper(shared, *source, spec.visibility_timeout),
        workers(shared, {spec.config.queue, spec.config.retry.max_attempts}, make_workers(hands, instances)) {}

  const JobSpec spec;
  const std::unique_ptr<queue::Source> source;
  const Instances instances;
  std::deque<Hand> hands;
  JobFlow flow;
  SharedFlow shared;
  Poller poller;
  Settler settler;
  LeaseKeeper keeper;
  WorkerPool workers;

 private:
  static std::deque<Hand> make_hands(const JobSpec& spec, const Clock& clock) {
    std::deque<Hand> hands;
    for (std::uint32_t i = 0; i < spec.config.concurrency; ++i) {
      hands.emplace_back(clock, spec.config.timeout);
    }
    return hands;
  }
  static std::vector<Hand*> pointers(std::deque<Hand>& hands) {
    std::vector<Hand*> all;
    for (Hand& hand : hands) {
      all.push_back(&hand);
    }
    return all;
  }
  static std::vector<WorkerPool::Worker> make_workers(std::deque<Hand>& hands, const Instances& instances) {
    std::vector<WorkerPool::Worker> workers;
    for (std::size_t i = 0; i < hands.size(); ++i) {
      workers.push_back({hands[i], *instances[std::min(i, instances.size() - 1)]});
    }
    return workers;
  }
};

Result<std::unique_ptr<Job>> Job::create(JobSpec spec, std::unique_ptr<queue::Source> source, const JobSeams& seams) {
  SLUICE_ASSERT(spec.handler != nullptr && source != nullptr);
  if (const auto checked = check(spec); !checked) {
    return checked.error();
  }
  auto instances = make_instances(spec, seams.log);
  if (!instances) {
    return instances.error();
  }
  return std::unique_ptr<Job>(
      new Job(std::make_unique<Parts>(std::move(spec), std::move(source), std::move(*instances), seams)));
}

Job::Job(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Job::~Job() { stop(); }

Result<void> Job::start() {
  for (runtime::Service* service :
       std::initializer_list<runtime::Service*>{&parts_->keeper, &parts_->settler, &parts_->workers, &parts_->poller}) {
    if (const auto started = service->start(); !started) {
      stop();
      return Error(started.error().code(), "cannot make " + std::to_string(config().concurrency + kOwnThreads) +
                                               " threads for job \"" + config().name +
                                               "\": " + started.error().message() +
                                               "; raise the limit on processes or memory, or lower concurrency");
    }
  }
  return {};
}

void Job::stop() {
  hard_stop();
  drain(Deadline::after(parts_->shared.clock(), kHardStopTime));
  parts_->poller.stop();
  parts_->workers.stop();
  parts_->settler.stop();
  parts_->keeper.stop();
}

void Job::begin_drain(Deadline deadline) {
  parts_->shared.run(
      [&](JobFlow& flow, SteadyTime now, Notes& notes) { flow.begin_drain(now, deadline.time(), notes); });
}

DrainReport Job::drain(Deadline deadline) {
  begin_drain(deadline);
  std::uint64_t seen = 0;
  while (const auto next = parts_->shared.run(
             [](JobFlow& flow, SteadyTime now, Notes& notes) { return flow.drain_step(now, notes); })) {
    parts_->shared.wait_drained(seen, *next);
  }
  const SteadyTime until = std::max(parts_->shared.clock().steady_now() + kJoinTime, deadline.time());
  parts_->workers.stop_idle_until(until);
  parts_->settler.stop_until(until);
  parts_->keeper.stop_until(until);
  parts_->poller.stop_until(until);
  return parts_->shared.look([](const JobFlow& flow) {
    return DrainReport{flow.ledger(), flow.handlers_running(), flow.claim_under_way()};
  });
}

void Job::hard_stop() {
  parts_->shared.run([](JobFlow& flow, SteadyTime now, Notes& notes) { flow.hard_stop(now, notes); });
}

void Job::wake() {
  parts_->shared.run([](JobFlow& flow, SteadyTime, Notes& notes) { flow.wake(notes); });
}

bool Job::quiescent() const {
  return parts_->shared.look([](const JobFlow& flow) { return flow.quiescent(); });
}

LedgerSnapshot Job::ledger() const {
  return parts_->shared.look([](const JobFlow& flow) { return flow.ledger(); });
}

std::vector<StuckHandler> Job::stuck() const {
  const auto found = parts_->shared.look([](const JobFlow& flow) { return flow.stuck(); });
  const SteadyTime now = parts_->shared.clock().steady_now();
  std::vector<StuckHandler> all;
  for (const JobFlow::Stuck& stuck : found) {
    all.push_back({config().name, config().handler, stuck.message_id, now - stuck.started_at});
  }
  return all;
}

std::uint32_t Job::handlers_running() const {
  return parts_->shared.look([](const JobFlow& flow) { return flow.handlers_running(); });
}

const config::JobConfig& Job::config() const { return parts_->spec.config; }

queue::QueueAddress Job::address() const { return address_of(parts_->spec.config); }

}  // namespace sluice::work
