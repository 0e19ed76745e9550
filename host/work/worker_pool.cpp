#include "host/work/worker_pool.hpp"

#include <utility>

namespace sluice::work {

WorkerPool::WorkerPool(SharedFlow& flow, Settings settings, std::vector<WorkerInstance> instances,
                       MakeInstance make_instance, isolation::JobLedger* crash_ledger)
    : flow_(flow),
      settings_(std::move(settings)),
      make_instance_(std::move(make_instance)),
      crash_ledger_(crash_ledger),
      first_(std::move(instances)) {
  flow_.hire_with([this](SeatKind kind) { hire(kind); });
}

WorkerPool::~WorkerPool() {
  stop();
  flow_.hire_with({});
}

Result<void> WorkerPool::start() {
  std::vector<WorkerInstance> first;
  {
    const MutexLock lock(mutex_);
    first = std::move(first_);
  }
  for (WorkerInstance& instance : first) {
    if (auto made = make(SeatKind::worker, std::move(instance)); !made) {
      return made;
    }
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
      flow_.clock(), settings_.timeout, kind,
      (kind == SeatKind::lane ? "sluice-lane-" : "sluice-work-") + std::to_string(next_number_++));
  worker.instance = std::move(instance);
  auto started = worker.thread.start([this, &worker](const std::stop_token& stop) { run(worker, stop); });
  if (!started) {
    workers_.pop_back();
  }
  return started;
}

void WorkerPool::hire(SeatKind kind) {
  if (const auto made = make(kind, {}); !made) {
    flow_.log(observe::LogLevel::error, "cannot make a worker, trying again", made.error().message());
    flow_.run([kind](JobFlow& flow, SteadyTime now, StepEffects& notes) { flow.not_made(kind, now, notes); });
  }
}

std::vector<WorkerPool::Worker*> WorkerPool::all() {
  std::vector<Worker*> all;
  const MutexLock lock(mutex_);
  for (Worker& worker : workers_) {
    all.push_back(&worker);
  }
  return all;
}

void WorkerPool::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    first_.clear();
  }
  for (Worker* worker : all()) {
    worker->thread.request_stop();
  }
  for (Worker* worker : all()) {
    worker->thread.stop();
  }
}

void WorkerPool::stop_idle_until(SteadyTime time) {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    first_.clear();
  }
  for (Worker* worker : all()) {
    worker->thread.request_stop();
  }
  for (Worker* worker : all()) {
    if (worker->batch.view().running == nullptr) {
      worker->thread.stop_until(time);
    }
  }
}

std::uint32_t WorkerPool::running() {
  std::uint32_t count = 0;
  const MutexLock lock(mutex_);
  for (Worker& worker : workers_) {
    count += worker.thread.running() ? 1 : 0;
  }
  return count;
}

bool WorkerPool::equip(Worker& worker) {
  if (worker.instance.handler != nullptr) {
    return true;
  }
  auto made = make_instance_(worker.kind);
  if (!made) {
    flow_.log(observe::LogLevel::error, "cannot make an instance of the handler, trying again", made.error().message());
    flow_.run([&worker](JobFlow& flow, SteadyTime now, StepEffects& notes) { flow.not_made(worker.kind, now, notes); });
    return false;
  }
  worker.instance = std::move(*made);
  return true;
}

void WorkerPool::run(Worker& worker, const std::stop_token& stop) {
  if (!equip(worker)) {
    return;
  }
  const std::uint32_t seat = flow_.run([&worker](JobFlow& flow, SteadyTime now, StepEffects& notes) {
    return flow.enlist(worker.batch, worker.kind, worker.instance.isolated, now, notes);
  });
  bool dealt = false;
  bool stays = true;
  while (stays && !stop.stop_requested()) {
    flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& notes) {
      stays = flow.collect(seat, now, notes);
      dealt = stays && flow.deal(seat, now, notes);
    });
    if (dealt) {
      work_off(worker);
    } else if (stays && !await_work(worker, stop)) {
      break;
    }
  }
  // What the last handful brought is handed over even when the pool ends.
  flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& notes) {
    flow.collect(seat, now, notes);
    flow.leave(seat, now, notes);
  });
  worker.instance = {};
}

bool WorkerPool::await_work(const Worker& worker, const std::stop_token& stop) {
  const SteadyTime until = worker.kind == SeatKind::lane ? flow_.clock().steady_now() + kLaneIdle : SteadyTime::max();
  return flow_.wait_work(worker.kind, stop, until);
}

void WorkerPool::work_off(Worker& worker) {
  SteadyTime now = flow_.clock().steady_now();
  while (const Task* task = worker.batch.next(now)) {
    if (settings_.holds && !settings_.holds(task->part)) {
      worker.batch.pass_over();
      continue;
    }
    if (crash_ledger_ != nullptr) {
      crash_ledger_->started(task->slot, task->message.id);
    }
    const auto handle = [&] {
      return worker.instance.handler->handle(
          task->message, settings_.queues[std::min<std::size_t>(task->part, settings_.queues.size() - 1)],
          settings_.max_attempts, worker.batch.attempt());
    };
    plugin::Outcome outcome = settings_.tracing == nullptr ? handle() : settings_.tracing->handle(*task, handle);
    if (crash_ledger_ != nullptr) {
      crash_ledger_->ended(task->slot, only_removal_is_left(*task, outcome));
    }
    now = flow_.clock().steady_now();
    worker.batch.finish(std::move(outcome), now);
  }
}

}  // namespace sluice::work
