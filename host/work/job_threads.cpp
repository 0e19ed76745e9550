#include "host/work/job_threads.hpp"

#include "host/work/job_queues.hpp"

namespace sluice::work {
namespace {

/// Of a message's ids: claim, handle, and then each try to settle.
constexpr std::uint64_t kHandleAfterClaim = 1;
constexpr std::uint64_t kSettleAfterClaim = 2;
constexpr std::uint64_t kMostSettles = observe::Tracer::kReserved - kSettleAfterClaim;

bool is_failure(plugin::OutcomeStatus status) {
  return queue::core::rule_of(status).decision != queue::core::Decision::outcome;
}

/// In the order of CompletionAction.
constexpr std::array<std::string_view, 5> kActionNames{"remove", "retry", "release", "dead_letter", "keep"};

std::string_view attribute_of(const queue::Message& message, std::string_view name) {
  const auto found = message.attributes.find(name);
  return found == message.attributes.end() ? std::string_view() : std::string_view(found->second);
}

/// Where a message says that it is in its trace: once it is claimed, where its handler is. Nothing where it does not
/// say.
std::optional<observe::TraceContext> place_in_trace(const queue::Message& message) {
  return observe::parse_traceparent(attribute_of(message, observe::kTraceParent));
}

/// The effects (or null), with the trace in every message that names none of its own.
std::shared_ptr<const queue::Effects> carrying(std::shared_ptr<const queue::Effects> effects,
                                               const queue::Message& message) {
  if (effects == nullptr || effects->messages.empty()) {
    return effects;
  }
  auto carried = std::make_shared<queue::Effects>(*effects);
  const std::string_view state = attribute_of(message, observe::kTraceState);
  for (queue::EmittedMessage& emitted : carried->messages) {
    queue::Attributes& attributes = emitted.message.attributes;
    const auto [place, added] = attributes.emplace(observe::kTraceParent, attribute_of(message, observe::kTraceParent));
    if (added && !state.empty()) {
      attributes.emplace(observe::kTraceState, state);
    }
  }
  return carried;
}

// Both go from traces to errors; plugin::write_log lets no others through.
static_assert(SLUICE_LOG_ERROR == static_cast<int>(observe::LogLevel::error));
observe::LogLevel log_level(sluice_log_level level) { return static_cast<observe::LogLevel>(level); }

/// What is asked of the keys of one queue.
struct KeyShare {
  std::vector<queue::KeyClaim> releases;
  std::vector<queue::KeyClaim> claims;           ///< renewals, and behind them those of `asks`
  std::vector<IdempotencyGate::Answer*> asks{};  ///< where their answers go
};

void ask(queue::IdempotencyKeys& keys, const KeyShare& share, Deadline deadline, const Clock& clock,
         IdempotencyGate::Answers& answers) {
  if (!share.releases.empty()) {
    if (const auto released = keys.release(share.releases, deadline); !released) {
      answers.failure = released.error();
    }
  }
  if (share.claims.empty()) {
    return;
  }
  std::vector<queue::KeyAnswer> told = keys.begin(share.claims, deadline);
  told.resize(share.claims.size(), {.state = queue::KeyState::failed});
  const WallTime now = clock.wall_now();
  const std::size_t renewals = share.claims.size() - share.asks.size();
  for (std::size_t i = 0; i < told.size(); ++i) {
    if (i >= renewals) {
      IdempotencyGate::Answer& answer = *share.asks[i - renewals];
      answer.key = std::move(told[i]);
      answer.left = std::max(Duration::zero(), Duration(answer.key.until - now));
    } else if (told[i].state == queue::KeyState::failed) {
      answers.failure = told[i].error;
    }
  }
}

}  // namespace

SpanNames SpanNames::of(std::string_view queue) {
  return config::outbox_named(queue) ? SpanNames{"fetch", "publish", "mark"} : SpanNames();
}

void JobTracing::claimed(std::span<queue::Delivery> deliveries, SteadyTime began) {
  const SteadyTime ended = tracer_.now();
  for (queue::Delivery& delivery : deliveries) {
    queue::Message& message = delivery.message;
    const std::optional<observe::TraceContext> parent = place_in_trace(message);
    observe::TraceContext context = tracer_.begin(parent);
    // Without a parent the state belongs to no trace, and what cannot be read is not carried on.
    if (!parent || observe::usable_tracestate(attribute_of(message, observe::kTraceState)).empty()) {
      message.attributes.erase(std::string(observe::kTraceState));
    }
    if (context.sampled) {
      tracer_.record({.context = context,
                      .parent = parent ? parent->span : 0,
                      .state = attribute_of(message, observe::kTraceState),
                      .name = names_.claim,
                      .kind = observe::SpanKind::client,
                      .began = began,
                      .ended = ended,
                      .attributes = {{"messaging.system", "sluice"},
                                     {"messaging.operation.name", names_.claim},
                                     {"messaging.destination.name", queue_of(queues_, delivery.receipt.part)},
                                     {"messaging.message.id", message.id},
                                     {"messaging.batch.message_count", deliveries.size()},
                                     {"sluice.job", job_}}});
    }
    context.span += kHandleAfterClaim;
    message.attributes.insert_or_assign(std::string(observe::kTraceParent), observe::format_traceparent(context));
  }
}

void JobTracing::within(const Task& task, const std::function<void()>& handler) {
  if (const std::optional<observe::TraceContext> context = place_in_trace(task.message)) {
    const observe::TraceScope scope(*context);
    handler();
  } else {
    handler();
  }
}

void JobTracing::handled(const Task& task, SteadyTime began, plugin::Outcome& outcome) {
  const std::optional<observe::TraceContext> context = place_in_trace(task.message);
  if (!context) {
    return;
  }
  if (context->sampled) {
    tracer_.record({.context = *context,
                    .parent = context->span - kHandleAfterClaim,
                    .state = attribute_of(task.message, observe::kTraceState),
                    .name = names_.handle,
                    .kind = observe::SpanKind::consumer,
                    .began = began,
                    .ended = tracer_.now(),
                    .failed = is_failure(outcome.status),
                    .reason = outcome.reason,
                    .attributes = {{"messaging.system", "sluice"},
                                   {"messaging.operation.name", names_.handle},
                                   {"messaging.destination.name", queue_of(queues_, task.part)},
                                   {"messaging.message.id", task.message.id},
                                   {"sluice.job", job_},
                                   {"sluice.handler", handler_},
                                   {"sluice.attempt", task.message.attempt},
                                   {"sluice.outcome", queue::core::rule_of(outcome.status).name}}});
  }
  outcome.effects = carrying(std::move(outcome.effects), task.message);
}

void JobTracing::settled(std::span<Task* const> tasks, std::span<const queue::Completion> completions,
                         std::span<const queue::SettleResult> results, SteadyTime began) {
  const SteadyTime ended = tracer_.now();
  const std::size_t count = std::min({tasks.size(), completions.size(), results.size()});
  for (std::size_t i = 0; i < count; ++i) {
    const Task& task = *tasks[i];
    std::optional<observe::TraceContext> context = place_in_trace(task.message);
    if (!context || !context->sampled) {
      continue;
    }
    const std::uint64_t claim = context->span - kHandleAfterClaim;
    context->span = claim + kSettleAfterClaim + std::min<std::uint64_t>(task.tries, kMostSettles);
    const queue::SettleResult& result = results[i];
    const bool applied = result.status == queue::SettleStatus::applied;
    const bool lost = result.status == queue::SettleStatus::lost;
    tracer_.record({.context = *context,
                    .parent = claim,
                    .state = attribute_of(task.message, observe::kTraceState),
                    .name = names_.settle,
                    .kind = observe::SpanKind::client,
                    .began = began,
                    .ended = ended,
                    .failed = !applied,
                    .reason = lost ? std::string_view("the receipt is no longer ours") : result.error.message(),
                    .attributes = {{"messaging.system", "sluice"},
                                   {"messaging.operation.name", names_.settle},
                                   {"messaging.destination.name", queue_of(queues_, task.part)},
                                   {"messaging.message.id", task.message.id},
                                   {"messaging.batch.message_count", tasks.size()},
                                   {"sluice.job", job_},
                                   {"sluice.action", kActionNames[static_cast<std::size_t>(completions[i].action)]}}});
  }
}

plugin::HandlerLog handler_log(observe::Log& log) {
  return [&log](sluice_log_level level, std::string_view job, std::string_view message_id, std::string_view text) {
    const std::array<observe::LogField, 2> fields{{{"job", job}, {"id", message_id}}};
    log.write(log_level(level), text, std::span(fields).first(message_id.empty() ? 1 : 2));
  };
}

IdempotencyGate::Answers KeyCall::make(const IdempotencyGate::Order& order) {
  IdempotencyGate::Answers answers;
  answers.asks.resize(order.asks.size());
  std::vector<KeyShare> shares(keys.size());
  const auto share_of = [&shares](std::size_t part) -> KeyShare& { return shares[std::min(part, shares.size() - 1)]; };
  for (const KeyMark& mark : order.releases) {
    share_of(mark.part).releases.push_back(mark.claim);
  }
  for (const KeyMark& mark : order.renewals) {
    share_of(mark.part).claims.push_back(mark.claim);
  }
  const bool own = key.own_id();
  for (std::size_t i = 0; i < order.asks.size(); ++i) {
    const Task& task = *order.asks[i].task;
    IdempotencyGate::Answer& answer = answers.asks[i];
    answer.found = own ? FoundKey() : key.of(task.message);
    if (answer.found.missing.empty()) {
      // Of an own id nothing is marked, so that nobody has to know whose it is.
      share_of(task.part).claims.push_back({job, own ? task.message.id : answer.found.key,
                                            own ? std::string() : task.message.id, order.hold_for,
                                            order.asks[i].fence});
      share_of(task.part).asks.push_back(&answer);
    }
  }
  for (std::size_t part = 0; part < shares.size(); ++part) {
    ask(*keys[part], shares[part], Deadline::at(order.deadline), clock, answers);
  }
  return answers;
}

Result<void> WorkerPool::start() {
  std::vector<WorkerInstance> first;
  {
    const MutexLock lock(mutex_);
    first = std::move(first_);
  }
  for (WorkerInstance& instance : first) {
    SLUICE_PASS_ON(make(SeatKind::worker, std::move(instance)));
  }
  return {};
}

Result<void> WorkerPool::make(SeatKind kind, WorkerInstance instance) {
  const MutexLock lock(mutex_);
  if (stopping_) {
    return {};
  }
  // Those that have ended make room.
  workers_.remove_if([](Worker& worker) { return worker.thread.ended(); });
  Worker& worker = workers_.emplace_back(
      *this, kind, (kind == SeatKind::quarantine ? "sluice-susp-" : "sluice-work-") + std::to_string(next_number_++));
  worker.instance = std::move(instance);
  auto started = worker.thread.start([this, &worker](const std::stop_token& stop) { run(worker, stop); });
  if (!started) {
    workers_.pop_back();
  }
  return started;
}

std::vector<WorkerPool::Worker*> WorkerPool::request_stop() {
  std::vector<Worker*> all;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    first_.clear();
    for (Worker& worker : workers_) {
      all.push_back(&worker);
    }
  }
  for (Worker* worker : all) {
    worker->thread.request_stop();
  }
  return all;
}

bool WorkerPool::equip(Worker& worker) {
  if (worker.instance.handler != nullptr) {
    return true;
  }
  auto made = make_instance_(worker.kind);
  if (!made) {
    flow_.log(observe::LogLevel::error, "cannot make an instance of the handler, trying again", made.error().message());
    flow_.run(&JobFlow::not_made, worker.kind);
    return false;
  }
  worker.instance = std::move(*made);
  return true;
}

void WorkerPool::run(Worker& worker, const std::stop_token& stop) {
  if (!equip(worker)) {
    return;
  }
  worker.seat = flow_.run(&JobFlow::enlist, worker.batch, worker.kind, worker.instance.isolated);
  bool dealt = false;
  bool stays = true;
  while (stays && !stop.stop_requested()) {
    SteadyTime until = SteadyTime::max();
    flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& effects) {
      stays = flow.collect(worker.seat, now, effects);
      dealt = stays && flow.deal(worker.seat, now, effects);
      until = worker.kind == SeatKind::quarantine ? now + kQuarantineIdle : effects.deal_again;
    });
    if (dealt) {
      work_off(worker);
    } else if (stays && !flow_.wait_work(worker.kind, stop, until) && worker.kind == SeatKind::quarantine) {
      break;
    }
  }
  worker.batch.wait_until_alone();
  // What the last handful brought is handed over even when the pool ends.
  flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& effects) {
    flow.collect(worker.seat, now, effects, JobFlow::Then::leaves);
  });
  worker.instance = {};
}

void WorkerPool::work_off(Worker& worker) {
  switch (settings_.style.taken_by(worker.kind)) {
    case plugin::HandlerKind::plain:
      return run_one_by_one(worker);
    case plugin::HandlerKind::batch:
      return run_batch(worker);
    case plugin::HandlerKind::async:
      return begin_all(worker);
  }
}

/// Stores the progress of what runs in one place of a worker with its message, on the handler's thread and without the
/// job's lock: no extension is under way meanwhile, as both make the receipt another one.
class WorkerPool::Checkpoints final : public plugin::CheckpointStore {
 public:
  Checkpoints(const WorkerPool& pool, const WorkerBatch::Running& run) : pool_(pool), run_(run) {}

  queue::SettleResult checkpoint(std::string_view bytes, std::shared_ptr<const queue::Effects> effects) override {
    Task& task = *run_.task;
    if (pool_.settings_.tracing != nullptr) {
      effects = carrying(std::move(effects), task.message);
    }
    std::uint64_t seen = 0;
    SharedFlow& flow = pool_.flow_;
    LeaseKeeper::Loan loan = flow.run(&JobFlow::Checkpoints::lend, task);
    for (const SteadyTime patience = loan.deadline; loan.state == LeaseKeeper::Loan::State::busy;) {
      if (flow.clock().steady_now() >= patience) {
        return {queue::SettleStatus::failed,
                Error(ErrorCode::unavailable, "an extension of the message's lease has no answer yet")};
      }
      flow.wait(SharedFlow::Caller::checkpoints, seen, {}, patience);
      loan = flow.run(&JobFlow::Checkpoints::lend, task);
    }
    if (loan.state == LeaseKeeper::Loan::State::lost) {
      return {queue::SettleStatus::lost, {}};
    }
    auto result =
        pool_.source_.checkpoint(loan.receipt, std::string(bytes), std::move(effects), Deadline::at(loan.deadline));
    flow.run(&JobFlow::Checkpoints::repaid, task, result, bytes);
    if (result.status == queue::SettleStatus::refused || result.status == queue::SettleStatus::failed) {
      result.error = Error(result.error.code(),
                           "queue \"" + queue_of(pool_.settings_.queues, task.part) + "\": " + result.error.message());
    }
    return result;
  }

 private:
  const WorkerPool& pool_;
  const WorkerBatch::Running& run_;
};

WorkerBatch::Running* WorkerPool::next(Worker& worker, SteadyTime now) {
  while (WorkerBatch::Running* const run = worker.batch.next(now)) {
    if (source_.holds(run->task->part)) {
      crash_ledger_.started(run->task->slot, run->task->message.id);
      if (run->checkpoints == nullptr) {
        run->checkpoints = std::make_unique<Checkpoints>(*this, *run);
      }
      run->attempt.set_checkpoints(run->checkpoints.get());
      return run;
    }
    worker.batch.pass_over(*run);
  }
  return nullptr;
}

void WorkerPool::note_end(const WorkerBatch::Running& run, plugin::Outcome& outcome) {
  if (settings_.tracing != nullptr) {
    settings_.tracing->handled(*run.task, run.started_at, outcome);
  }
  crash_ledger_.ended(run.task->slot, only_removal_is_left(*run.task, outcome));
}

void WorkerPool::run_one_by_one(Worker& worker) {
  SteadyTime now = flow_.clock().steady_now();
  while (WorkerBatch::Running* const run = next(worker, now)) {
    plugin::Outcome outcome;
    within_trace(*run->task, [&] { outcome = worker.instance.handler->handle(work_of(worker, *run)); });
    note_end(*run, outcome);
    now = flow_.clock().steady_now();
    worker.batch.finish(*run, std::move(outcome), now);
  }
}

void WorkerPool::run_batch(Worker& worker) {
  const SteadyTime now = flow_.clock().steady_now();
  std::vector<WorkerBatch::Running*> runs;
  while (WorkerBatch::Running* const run = next(worker, now)) {
    runs.push_back(run);
  }
  if (runs.empty()) {
    return;
  }
  if (runs.size() > 1) {
    crash_ledger_.together();
  }
  std::vector<plugin::Work> batch;
  batch.reserve(runs.size());
  for (WorkerBatch::Running* const run : runs) {
    batch.push_back(work_of(worker, *run));
  }
  std::vector<plugin::Outcome> outcomes(batch.size());
  worker.instance.handler->handle_batch(batch, outcomes);
  const SteadyTime ended = flow_.clock().steady_now();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    note_end(*runs[i], outcomes[i]);
    worker.batch.finish(*runs[i], std::move(outcomes[i]), ended, runs.size());
  }
}

/// One message that an asynchronous handler has begun with, until it is completed.
class WorkerPool::BegunMessage final : public plugin::Completer {
 public:
  BegunMessage(Worker& worker, WorkerBatch::Running& run) : worker_(worker), run_(run) {}

  void completed(plugin::Outcome&& outcome) noexcept override {
    const std::unique_ptr<BegunMessage> self(this);
    // The worker may have ended once it is alone.
    worker_.batch.enter();
    worker_.pool.note_end(run_, outcome);
    const auto who = beginner_ == &worker_ ? WorkerBatch::Finisher::worker : WorkerBatch::Finisher::other;
    SharedFlow& flow_of_job = worker_.pool.flow_;
    if (worker_.batch.finish(run_, std::move(outcome), flow_of_job.clock().steady_now(), 1, who)) {
      flow_of_job.run([this](JobFlow& flow, SteadyTime now, StepEffects& effects) {
        flow.collect(worker_.seat, now, effects, JobFlow::Then::is_elsewhere);
      });
    }
    worker_.batch.leave();
  }

  /// Whose `begin` this thread is in; null: nobody's.
  static thread_local const Worker* beginner_;

 private:
  Worker& worker_;
  WorkerBatch::Running& run_;
};

constinit thread_local const WorkerPool::Worker* WorkerPool::BegunMessage::beginner_ = nullptr;

void WorkerPool::begin_all(Worker& worker) {
  BegunMessage::beginner_ = &worker;
  SteadyTime now = flow_.clock().steady_now();
  while (WorkerBatch::Running* const run = next(worker, now)) {
    // By the end of `begin` the message may have ended, and another one be in its place.
    const Task& task = *run->task;
    within_trace(task, [&] { worker.instance.handler->begin(work_of(worker, *run), *new BegunMessage(worker, *run)); });
    worker.batch.left(*run, task);
    crash_ledger_.left();
    now = flow_.clock().steady_now();
  }
  BegunMessage::beginner_ = nullptr;
}

}  // namespace sluice::work
