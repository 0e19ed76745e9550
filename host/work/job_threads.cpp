#include "host/work/job_threads.hpp"

namespace sluice::work {

namespace {

// Both go from traces to errors; plugin::write_log lets no others through.
static_assert(SLUICE_LOG_ERROR == static_cast<int>(observe::LogLevel::error));
observe::LogLevel log_level(sluice_log_level level) { return static_cast<observe::LogLevel>(level); }

/// The claims that go to the keys of one queue, and where they stood among all.
struct Share {
  std::vector<queue::KeyClaim> claims;
  std::vector<std::size_t> places;
};

Share share_of(std::size_t part, const std::vector<KeyMark>& marks) {
  Share share;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].part == part) {
      share.claims.push_back(marks[i].claim);
      share.places.push_back(i);
    }
  }
  return share;
}

}  // namespace

plugin::HandlerLog handler_log(observe::Log& log) {
  return [&log](sluice_log_level level, std::string_view job, std::string_view message_id, std::string_view text) {
    if (message_id.empty()) {
      log.write(log_level(level), text, {{"job", job}});
    } else {
      log.write(log_level(level), text, {{"job", job}, {"id", message_id}});
    }
  };
}

std::optional<Error> KeyCall::release(const std::vector<KeyMark>& marks, Deadline deadline) {
  std::optional<Error> failure;
  for (std::size_t part = 0; part < keys_.size(); ++part) {
    const Share share = share_of(part, marks);
    if (share.claims.empty()) {
      continue;
    }
    if (auto released = keys_[part]->release(share.claims, deadline); !released) {
      failure = released.error();
    }
  }
  return failure;
}

std::vector<queue::KeyAnswer> KeyCall::claim(std::vector<KeyMark> marks, Deadline deadline) {
  if (keys_.size() == 1) {
    std::vector<queue::KeyClaim> claims;
    claims.reserve(marks.size());
    for (KeyMark& mark : marks) {
      claims.push_back(std::move(mark.claim));
    }
    auto told = keys_.front()->begin(claims, deadline);
    told.resize(claims.size(), {.state = queue::KeyState::failed});
    return told;
  }
  std::vector<queue::KeyAnswer> answers(marks.size(), {.state = queue::KeyState::failed});
  for (std::size_t part = 0; part < keys_.size(); ++part) {
    const Share share = share_of(part, marks);
    if (share.claims.empty()) {
      continue;
    }
    auto told = keys_[part]->begin(share.claims, deadline);
    told.resize(share.claims.size(), {.state = queue::KeyState::failed});
    for (std::size_t i = 0; i < told.size(); ++i) {
      answers[share.places[i]] = std::move(told[i]);
    }
  }
  return answers;
}

IdempotencyGate::Answers KeyCall::make(const IdempotencyGate::Order& order) {
  IdempotencyGate::Answers answers;
  const Deadline deadline = Deadline::at(order.deadline);
  if (!order.releases.empty()) {
    answers.failure = release(order.releases, deadline);
  }
  std::vector<KeyMark> claims = order.renewals;
  std::vector<std::size_t> asked;
  answers.asks.reserve(order.asks.size());
  asked.reserve(order.asks.size());
  claims.reserve(claims.size() + order.asks.size());
  for (const IdempotencyGate::Ask& ask : order.asks) {
    IdempotencyGate::Answer& answer = answers.asks.emplace_back();
    if (key_.own_id()) {
      // Nothing is marked, so that nobody has to know whose it is.
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({{job_, ask.task->message.id, {}, order.hold_for, ask.fence}, ask.task->part});
      continue;
    }
    answer.found = key_.of(ask.task->message);
    if (answer.found.missing.empty()) {
      asked.push_back(answers.asks.size() - 1);
      claims.push_back({{job_, answer.found.key, ask.task->message.id, order.hold_for, ask.fence}, ask.task->part});
    }
  }
  if (claims.empty()) {
    return answers;
  }
  std::vector<queue::KeyAnswer> told = claim(std::move(claims), deadline);
  const WallTime now = clock_.wall_now();
  for (std::size_t i = 0; i < order.renewals.size(); ++i) {
    if (told[i].state == queue::KeyState::failed) {
      answers.failure = told[i].error;
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    IdempotencyGate::Answer& answer = answers.asks[asked[i]];
    answer.key = std::move(told[order.renewals.size() + i]);
    answer.left = std::max(Duration::zero(), Duration(answer.key.until - now));
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
      flow_.clock(), settings_.timeout, kind,
      (kind == SeatKind::lane ? "sluice-lane-" : "sluice-work-") + std::to_string(next_number_++));
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
  const std::uint32_t seat = flow_.run(&JobFlow::enlist, worker.batch, worker.kind, worker.instance.isolated);
  bool dealt = false;
  bool stays = true;
  while (stays && !stop.stop_requested()) {
    flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& effects) {
      stays = flow.collect(seat, now, effects);
      dealt = stays && flow.deal(seat, now, effects);
    });
    if (dealt) {
      work_off(worker);
    } else if (stays && !await_work(worker, stop)) {
      break;
    }
  }
  // What the last handful brought is handed over even when the pool ends.
  flow_.run([&](JobFlow& flow, SteadyTime now, StepEffects& effects) {
    flow.collect(seat, now, effects);
    flow.leave(seat, now, effects);
  });
  worker.instance = {};
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
