#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "host/work/dispatcher.hpp"
#include "host/work/job_flow.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::work {

/// A crash ledger that a test can look into: what is held, by id, and with which receipt.
class BookedLedger final : public isolation::JobLedger {
 public:
  isolation::HeldSlot hold(const queue::Delivery& delivery) noexcept override {
    held[++next_] = delivery.receipt;
    return next_;
  }
  void renew(isolation::HeldSlot slot, const queue::Receipt& receipt) noexcept override { held.at(slot) = receipt; }
  void started(isolation::HeldSlot slot, std::string_view) noexcept override { running.insert(slot); }
  void ended(isolation::HeldSlot slot, bool /*finished*/) noexcept override { running.erase(slot); }
  void committing(isolation::HeldSlot slot, isolation::Committing how) noexcept override {
    committed[held.at(slot).id] = how;
  }
  void given_back(isolation::HeldSlot slot) noexcept override { settled_running += running.erase(slot); }
  void drop(isolation::HeldSlot slot) noexcept override {
    if (const auto found = held.find(slot); found != held.end()) {
      committed.erase(found->second.id);
    }
    held.erase(slot);
    running.erase(slot);
  }

  std::map<isolation::HeldSlot, queue::Receipt> held;
  std::set<isolation::HeldSlot> running;
  std::size_t settled_running = 0;  ///< how many were given back before their handlers had come back
  std::map<std::string, isolation::Committing> committed;  ///< by id

 private:
  isolation::HeldSlot next_ = 0;
};

/// The batch of a worker that has one message at work at a time.
struct OneByOne : WorkerBatch {
  using WorkerBatch::finish;
  using WorkerBatch::WorkerBatch;

  Task* next(SteadyTime now) {
    Running* const started = WorkerBatch::next(now);
    run = started != nullptr ? started : run;
    return started != nullptr ? started->task : nullptr;
  }
  void finish(plugin::Outcome outcome, SteadyTime now) { WorkerBatch::finish(*run, std::move(outcome), now); }
  plugin::Attempt& attempt() { return run->attempt; }
  bool stop_requested() { return run->attempt.stop_requested(); }
  /// Of the first that is at work; else empty.
  View view() const {
    std::vector<View> views;
    look(views);
    return views.empty() ? View() : views.front();
  }

  Running* run = nullptr;  ///< the one that was started last
};

/// A flow with its hands on a clock that stands still; the test plays the store and the threads.
struct FlowRig {
  static config::JobConfig job() {
    config::JobConfig config;
    config.name = config.queue = "orders";
    config.handler = "greeter";
    config.retry.max_attempts = 3;
    return config;
  }
  static JobFlow::Settings settings() { return {.host = "worker-a"}; }
  static config::JobConfig with_workers(std::size_t workers, config::JobConfig config) {
    config.concurrency = workers > 0 ? static_cast<std::uint32_t>(workers) : config.concurrency;
    return config;
  }

  explicit FlowRig(std::size_t workers = 2, const JobFlow::Settings& wanted = settings(),
                   const config::JobConfig& config = job(), Duration attempt_timeout = std::chrono::seconds(60))
      : visibility(wanted.leases.front().visibility),
        timeout(attempt_timeout),
        flow(with_workers(workers, config), wanted, random, crash_ledger, clock.steady_now()) {
    for (std::size_t i = 0; i < workers; ++i) {
      enlist();
    }
  }

  std::uint32_t enlist(SeatKind kind = SeatKind::worker, bool isolated = false) {
    batches.emplace_back(clock, timeout);
    return flow.enlist(batches.back(), kind, isolated, now(), effects);
  }

  SteadyTime now() const { return clock.steady_now(); }
  void pass(Duration span) { clock.advance(span); }

  queue::Claimed messages(std::size_t count, std::uint32_t attempt = 1) {
    queue::Claimed claimed;
    claimed.deliveries.resize(count);
    for (queue::Delivery& delivery : claimed.deliveries) {
      delivery.message.id = "m-" + std::to_string(next_id++);
      delivery.message.attempt = attempt;
      delivery.receipt = {delivery.message.id, 1, 0};
      delivery.leased_until = now() + visibility;
    }
    return claimed;
  }

  /// One poll that finds `found` messages; how many were asked for.
  std::size_t poll(std::size_t found, std::uint32_t attempt = 1) {
    const auto order = flow.next_claim(now());
    if (order.count > 0) {
      flow.claimed(messages(found, attempt), now(), effects);
    }
    return order.count;
  }

  /// Deals to a worker and starts its first message.
  Task* start(std::uint32_t worker) {
    if (!flow.deal(worker, now(), effects)) {
      return nullptr;
    }
    Task* task = batches[worker].next(now());
    if (task != nullptr) {
      crash_ledger.started(task->slot, task->message.id);
    }
    return task;
  }
  void finish(std::uint32_t worker, plugin::OutcomeStatus status = plugin::OutcomeStatus::done) {
    batches[worker].finish({status, {}, {}}, now());
    flow.collect(worker, now(), effects);
  }

  JobActivity activity() const { return flow.activity(now()); }
  std::size_t stuck() const { return activity().stuck().size(); }
  LedgerSnapshot account() const { return flow.in_flight().account(); }

  /// One settle call; the number of settlements.
  std::size_t settle(queue::SettleStatus status = queue::SettleStatus::applied,
                     ErrorCode code = ErrorCode::unavailable) {
    auto order = flow.next_settlement(now(), clock.wall_now(), effects);
    const std::size_t count = order.tasks.size();
    last = order.completions;
    if (count > 0) {
      std::vector<queue::SettleResult> results(count, {status, Error(code, "the store fails")});
      flow.settled(std::move(order), std::move(results), now(), effects);
    }
    return count;
  }

  /// One extend call; the number of extensions.
  std::size_t extend(queue::SettleStatus status = queue::SettleStatus::applied) {
    auto order = flow.next_extension(now(), effects);
    const std::size_t count = order.tasks.size();
    if (count > 0) {
      flow.extended(order, extensions(order, status), now(), effects);
    }
    return count;
  }
  std::vector<queue::ExtendResult> extensions(const JobFlow::ExtendOrder& order, queue::SettleStatus status) const {
    std::vector<queue::ExtendResult> results;
    for (queue::Receipt receipt : order.receipts) {
      ++receipt.version;
      results.push_back({status, receipt, now() + visibility, Error(ErrorCode::unavailable, "the store fails")});
    }
    return results;
  }

  const Duration visibility;
  const Duration timeout;
  test::FakeClock clock;
  SeededRandom random{1};
  std::deque<OneByOne> batches;
  StepEffects effects;
  BookedLedger crash_ledger;
  std::vector<queue::Completion> last;
  int next_id = 0;
  JobFlow flow;
};

}  // namespace sluice::work
