#include "tests/simulation/sim_host.hpp"

#include <algorithm>
#include <utility>

#include "host/work/job_queues.hpp"

namespace sluice::simulation {
namespace {

using std::chrono_literals::operator""ms;
using plugin::Outcome;
using plugin::OutcomeStatus;
using work::StepEffects;

}  // namespace

SimHost::SimHost(World& world, Truth::Host number)
    : world_(world),
      number_(number),
      port_(world.port, number),
      flow_(world.job,
            {.host = "host-" + std::to_string(number),
             .stuck_grace = world.grace,
             .leases = {{world.visibility}},
             .style = world.style},
            world.random, port_.crash_ledger(), world.loop.now()) {}

// Events of a host that has died are dropped, those of a frozen one wait.
void SimHost::when(SteadyTime time, std::function<void()> event) {
  loop().at(time, [weak = weak_from_this(), body = std::move(event)]() mutable {
    const auto self = weak.lock();
    if (!self || !self->alive_) {
      return;
    }
    if (self->frozen_until_ > self->loop().now()) {
      self->when(self->frozen_until_, std::move(body));
      return;
    }
    body();
  });
}

void SimHost::set(std::uint64_t& timer, SteadyTime time, std::function<void()> event) {
  const std::uint64_t mine = ++timer;
  if (time != SteadyTime::max()) {
    when(time, [&timer, mine, body = std::move(event)] {
      if (timer == mine) {
        body();
      }
    });
  }
}

// What the threads' shells do with the effects: wake each other.
void SimHost::step(const std::function<void(SteadyTime, StepEffects&)>& body) {
  StepEffects effects;
  const SteadyTime now = loop().now();
  body(now, effects);
  if (effects.poller) {
    when(now, [this] { poll(); });
  }
  if (effects.settler) {
    when(now, [this] { settle(); });
  }
  if (effects.keeper) {
    when(now, [this] { keep(); });
  }
  if (effects.keys) {
    when(now, [this] { ask(); });
  }
  if (effects.drained) {
    when(now, [this] { step_drain(); });
  }
  call(work::SeatKind::worker, effects.workers);
  call(work::SeatKind::quarantine, effects.quarantine);
  for (; effects.hire_workers > 0; --effects.hire_workers) {
    when(now + 1ms, [this] { hire(work::SeatKind::worker); });
  }
  for (; effects.hire_quarantine > 0; --effects.hire_quarantine) {
    when(now + 1ms, [this] { hire(work::SeatKind::quarantine); });
  }
}

void SimHost::call(work::SeatKind kind, std::size_t count) {
  for (Worker& worker : workers_) {
    if (count > 0 && worker.kind == kind && !worker.busy && !worker.gone) {
      --count;
      when(loop().now(), [this, &worker] { deal(worker); });
    }
  }
}

void SimHost::hire(work::SeatKind kind) {
  Worker& worker = workers_.emplace_back(loop().clock(), world_.job.timeout, kind);
  step([&](SteadyTime now, StepEffects& effects) {
    worker.seat = flow_.enlist(worker.batch, kind, false, now, effects);
  });
  deal(worker);
}

template <typename Answer>
void SimHost::call(std::function<Answer()> arrives, std::function<void(Answer)> answered) {
  // What is under way arrives even when the host has died meanwhile.
  loop().after(port_.latency(), [self = shared_from_this(), arrives, answered] {
    auto answer = std::make_shared<Answer>(arrives());
    self->when(self->loop().now() + self->port_.latency(), [answer, answered] { answered(std::move(*answer)); });
  });
}

void SimHost::start() {
  for (std::uint32_t i = 0; i < world_.style.seats(world_.job.concurrency); ++i) {
    hire(work::SeatKind::worker);
  }
  poll();
  settle();
  keep();
}

void SimHost::recover(bool blames_all) {
  const work::FailurePolicy policy(world_.job, "heir of host-" + std::to_string(number_));
  std::vector<queue::Completion> completions;
  for (const auto& [slot, held] : port_.crash_ledger().entries()) {
    if (held.finished && !blames_all) {
      completions.push_back({.receipt = held.receipt, .action = queue::CompletionAction::remove});
      continue;
    }
    work::Disposition disposition =
        held.running || blames_all || held.committing == isolation::Committing::alone
            ? work::dispose_crash("the process was killed", held.attempt, policy, world_.random)
            : work::put_back();
    if (disposition.ending == work::Ending::released && held.committing != isolation::Committing::no) {
      disposition.marks = queue::core::kSuspect;
    }
    completions.push_back(work::completion_of(held.receipt, std::move(disposition), loop().clock().wall_now()));
  }
  port_.settle(completions, Deadline::never());
}

void SimHost::wake() {
  when(loop().now(), [this] { step([this](SteadyTime, StepEffects& effects) { flow_.wake(effects); }); });
}

void SimHost::poll() {
  if (polling_ || flow_.drain().over()) {
    return;
  }
  const SteadyTime now = loop().now();
  const auto order = flow_.next_claim(now);
  if (order.count == 0) {
    set(poll_timer_, order.wake, [this] { poll(); });
    return;
  }
  polling_ = true;
  using Answer = Result<queue::Claimed>;
  call<Answer>(
      [this, order, now] {
        return port_.claim({.max = order.count,
                            .bytes = work::kClaimBytes,
                            .visibility = world_.visibility,
                            .rules = work::rules_of(world_.job, 0),
                            .own_ids_of = work::own_ids_of(world_.job)},
                           now, Deadline::at(now + work::kSourceTimeout));
      },
      [this](Answer answer) {
        polling_ = false;
        step([&](SteadyTime then, StepEffects& effects) { flow_.claimed(std::move(answer), then, effects); });
        poll();
      });
}

void SimHost::settle() {
  if (settling_) {
    return;
  }
  auto order = std::make_shared<work::JobFlow::SettleOrder>();
  step([&](SteadyTime now, StepEffects& effects) {
    *order = flow_.next_settlement(now, loop().clock().wall_now(), effects);
  });
  if (order->tasks.empty()) {
    set(settle_timer_, order->wake, [this] { settle(); });
    return;
  }
  for (const queue::Completion& completion : order->completions) {
    world_.truth.written_with(number_, completion.receipt);
  }
  settling_ = true;
  using Answer = std::vector<queue::SettleResult>;
  call<Answer>([this, order] { return port_.settle(order->completions, Deadline::at(order->deadline)); },
               [this, order](Answer answer) {
                 settling_ = false;
                 step([&](SteadyTime now, StepEffects& effects) {
                   flow_.settled(std::move(*order), std::move(answer), now, effects);
                 });
                 settle();
               });
}

void SimHost::keep() {
  if (keeping_) {
    return;
  }
  auto order = std::make_shared<work::JobFlow::ExtendOrder>();
  step([&](SteadyTime now, StepEffects& effects) { *order = flow_.next_extension(now, effects); });
  if (order->tasks.empty()) {
    set(keep_timer_, order->wake, [this] { keep(); });
    return;
  }
  for (const queue::Receipt& receipt : order->receipts) {
    world_.truth.written_with(number_, receipt);
  }
  keeping_ = true;
  const SteadyTime now = loop().now();
  using Answer = std::vector<queue::ExtendResult>;
  call<Answer>([this, order,
                now] { return port_.extend(order->receipts, world_.visibility, now, Deadline::at(order->deadline)); },
               [this, order](Answer answer) {
                 keeping_ = false;
                 step([&](SteadyTime then, StepEffects& effects) {
                   flow_.extended(std::move(*order), std::move(answer), then, effects);
                 });
                 keep();
               });
}

void SimHost::ask() {
  if (asking_ || !port_.has_keys()) {
    return;
  }
  auto order = std::make_shared<work::JobFlow::KeyOrder>(flow_.next_keys(loop().now()));
  if (order->empty()) {
    set(ask_timer_, order->wake, [this] { ask(); });
    return;
  }
  asking_ = true;
  using Answer = work::IdempotencyGate::Answers;
  call<Answer>([this, order] { return port_.ask(*order); },
               [this, order](Answer answer) {
                 asking_ = false;
                 step([&](SteadyTime now, StepEffects& effects) {
                   flow_.keys_answered(*order, std::move(answer), now, effects);
                 });
                 ask();
               });
}

void SimHost::deal(Worker& worker) {
  if (worker.busy || worker.gone) {
    return;
  }
  SteadyTime again = SteadyTime::max();
  step([&](SteadyTime now, StepEffects& effects) {
    worker.gone = !flow_.collect(worker.seat, now, effects);
    if (worker.gone) {
      leave(worker, now, effects);
    } else {
      worker.busy = flow_.deal(worker.seat, now, effects);
      again = effects.deal_again;
    }
  });
  if (worker.busy) {
    run_next(worker);
  } else if (!worker.gone && world_.style.taken_by(worker.kind) == plugin::HandlerKind::batch) {
    set(worker.timer, again, [this, &worker] { deal(worker); });
  }
}

// Not before everything has ended that it has begun with.
void SimHost::leave(const Worker& worker, SteadyTime now, StepEffects& effects) {
  if (worker.running.empty()) {
    flow_.collect(worker.seat, now, effects, work::JobFlow::Then::leaves);
  }
}

work::WorkerBatch::Running* SimHost::start(Worker& worker) {
  work::WorkerBatch::Running* const run = worker.batch.next(loop().now());
  if (run != nullptr) {
    const queue::Message& message = run->task->message;
    worker.running.insert(run);
    port_.crash_ledger().started(run->task->slot, message.id);
    world_.on_start(*this, message);
    world_.truth.started(number_, message);
  }
  return run;
}

void SimHost::run_next(Worker& worker) {
  Call call;
  while (work::WorkerBatch::Running* const started = start(worker)) {
    call.push_back(started);
    if (one_by_one(worker)) {
      break;
    }
    if (async(worker)) {
      worker.batch.left(*started, *started->task);
      run(worker, std::exchange(call, {}));
      if (!alive_) {
        return;
      }
    }
  }
  if (!call.empty()) {
    run(worker, call);
    return;
  }
  // Nothing was started, or it was all begun with.
  worker.busy = false;
  deal(worker);
}

void SimHost::run(Worker& worker, const Call& call) {
  for (work::WorkerBatch::Running* const started : call) {
    if (world_.bombs.contains(started->task->message.id)) {
      explode(worker, call, started->task->message.id);
      return;
    }
  }
  const double dice = world_.random.unit();
  const HandlerMix& mix = world_.handlers;
  const Duration slow{static_cast<Duration::rep>(world_.random.unit() * static_cast<double>(mix.slow_time.count()))};
  if (dice < mix.stuck) {
    when(loop().now() + world_.job.timeout + world_.grace + slow, [this, &worker, call] { finish(worker, call); });
  } else if (dice < mix.stuck + mix.slow) {
    look(worker, loop().now() + slow, call);
  } else {
    when(loop().now() + Duration(static_cast<Duration::rep>(
                            world_.random.below(static_cast<std::uint64_t>(mix.quick_time.count())))),
         [this, &worker, call] { finish(worker, call); });
  }
}

// On a lane it hurts nobody but itself, as in a process of its own.
void SimHost::explode(Worker& worker, const Call& call, const std::string& bomb) {
  if (worker.kind == work::SeatKind::quarantine) {
    when(loop().now() + 1ms, [this, &worker, call] {
      finish(worker, call, Outcome{OutcomeStatus::crashed, {}, "SIGABRT"});
    });
    return;
  }
  crash();
  world_.on_death(*this, bomb);
}

// A slow handler looks at its stop token every 100 ms.
void SimHost::look(Worker& worker, SteadyTime ends_at, const Call& call) {
  const SteadyTime now = loop().now();
  if (std::all_of(call.begin(), call.end(), [](const auto* run) { return run->attempt.stop_requested(); })) {
    finish(worker, call,
           Outcome{world_.random.below(2) == 0 ? OutcomeStatus::release : OutcomeStatus::retry, {}, "stopped"});
  } else if (now >= ends_at) {
    finish(worker, call);
  } else {
    when(std::min(ends_at, now + 100ms), [this, &worker, ends_at, call] { look(worker, ends_at, call); });
  }
}

void SimHost::finish(Worker& worker, const Call& call, const std::optional<Outcome>& outcome) {
  for (work::WorkerBatch::Running* const run : call) {
    finish(worker, *run, outcome ? *outcome : pick_outcome(), call.size());
  }
  if (!async(worker)) {
    run_next(worker);
  }
}

void SimHost::finish(Worker& worker, work::WorkerBatch::Running& run, Outcome outcome, std::size_t beside) {
  const work::Task& task = *run.task;
  if (world_.on_end) {
    world_.on_end(task, outcome);
  }
  world_.truth.finished(number_, task.message.id, outcome.status);
  port_.crash_ledger().ended(task.slot, work::only_removal_is_left(task, outcome));
  worker.running.erase(&run);
  using Finisher = work::WorkerBatch::Finisher;
  const auto who = async(worker) ? Finisher::other : Finisher::worker;
  if (worker.batch.finish(run, std::move(outcome), loop().now(), beside, who)) {
    step([&](SteadyTime now, StepEffects& effects) {
      flow_.collect(worker.seat, now, effects, work::JobFlow::Then::is_elsewhere);
    });
  }
  if (worker.gone) {
    step([&](SteadyTime now, StepEffects& effects) { leave(worker, now, effects); });
  }
}

Outcome SimHost::pick_outcome() {
  double dice = world_.random.unit();
  const HandlerMix& mix = world_.handlers;
  const bool coin = world_.random.below(2) == 0;
  if ((dice -= mix.fails) < 0) {
    return {coin ? OutcomeStatus::retry : OutcomeStatus::fault, {}, "failed"};
  }
  if ((dice -= mix.rejects) < 0) {
    return {coin ? OutcomeStatus::reject : OutcomeStatus::discard, {}, "unwanted"};
  }
  if ((dice -= mix.postpones) < 0) {
    return {coin ? OutcomeStatus::snooze : OutcomeStatus::release, 500ms, {}};
  }
  return {OutcomeStatus::done, {}, {}};
}

bool SimHost::works_on(const std::string& id) {
  return alive_ && std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) {
           return std::any_of(worker.running.begin(), worker.running.end(), [&](const auto* run) {
             return run->task->message.id == id && !run->attempt.stop_requested();
           });
         });
}

void SimHost::drain(Duration within) {
  drain_by_ = loop().now() + within;
  step([&](SteadyTime now, StepEffects& effects) { flow_.drain().begin(now, *drain_by_, effects); });
}

void SimHost::hard_stop() {
  const SteadyTime by = loop().now() + work::kHardStopTime;
  drain_by_ = std::min(drain_by_.value_or(by), by);
  step([&](SteadyTime now, StepEffects& effects) { flow_.drain().hard_stop(now, effects); });
}

void SimHost::step_drain() {
  if (!drain_by_ || flow_.drain().over()) {
    return;
  }
  std::optional<SteadyTime> next;
  step([&](SteadyTime now, StepEffects& effects) { next = flow_.drain().step(now, effects); });
  if (next) {
    set(drain_timer_, *next, [this] { step_drain(); });
  } else if (loop().now() > *drain_by_) {
    in_time_ = false;
  }
}

}  // namespace sluice::simulation
