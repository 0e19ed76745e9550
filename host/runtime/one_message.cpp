#include "host/runtime/one_message.hpp"

#include <poll.h>

#include "base/bell.hpp"
#include "base/ranges.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/arrivals.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

using queue::Delivery;

/// What a handler may take to be ended with its process, and a settlement to be written.
constexpr Duration kEndTime = std::chrono::seconds(10);
constexpr Duration kStopTime = std::chrono::seconds(2);
/// Until a message that was brought to the front is handed out: an index may lag behind.
constexpr Duration kClaimTime = std::chrono::seconds(5);
/// So many others may be handed out first.
constexpr std::size_t kMostOthers = 200;
constexpr std::size_t kClaimAtOnce = 10;
/// A constructor may be stepped through, too.
constexpr Duration kStartTime = std::chrono::hours(24);

constexpr queue::SourceTraits kNoStore{.transactions = true, .checkpoints = true};

/// Hands out one message, once. What becomes of it goes to the store that it is from, or nowhere.
class OneMessageSource final : public queue::Source {
 public:
  /// `store` outlives it; null: there is none.
  OneMessageSource(Delivery delivery, queue::Source* store) : store_(store) {
    claimed_.deliveries.push_back(std::move(delivery));
  }

  const queue::SourceTraits& traits() const override { return store_ == nullptr ? kNoStore : store_->traits(); }
  void start(queue::SourceEvents) override {}
  void stop() override {}
  Result<queue::Claimed> claim(const queue::ClaimRequest&, Deadline) override { return std::exchange(claimed_, {}); }
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline) override {
    return store_ == nullptr ? std::vector<queue::SettleResult>(completions.size())
                             : store_->settle(completions, deadline);
  }
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    if (store_ != nullptr) {
      return store_->extend(receipts, visibility, deadline);
    }
    return mapped(receipts, [](const queue::Receipt& receipt) {
      return queue::ExtendResult{.receipt = receipt, .leased_until = SteadyTime::max(), .error = {}};
    });
  }
  bool holds(std::uint32_t part) override { return store_ == nullptr || store_->holds(part); }

 private:
  queue::Source* const store_;
  queue::Claimed claimed_;
};

/// Where the end of the message arrives, which the main thread waits for.
class Arrival {
 public:
  void put(const work::AttemptEnd& end) {
    {
      const MutexLock lock(mutex_);
      if (!end_) {
        end_ = end;
      }
    }
    bell_.ring();
  }
  /// Nothing when `stop` becomes readable first; -1: it never does.
  std::optional<work::AttemptEnd> wait(int stop) {
    std::array<pollfd, 2> waits{pollfd{bell_.descriptor(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    while (waits[0].revents == 0 && waits[1].revents == 0) {
      ::poll(waits.data(), waits.size(), -1);
    }
    const MutexLock lock(mutex_);
    return end_;
  }

 private:
  Bell bell_;
  Mutex mutex_;
  std::optional<work::AttemptEnd> end_ SLUICE_GUARDED_BY(mutex_);
};

work::JobSpec spec_of(const OneRun& run, bool has_keys) {
  work::JobSpec spec;
  spec.config = run.plan.config;
  spec.config.concurrency = 1;
  spec.config.timeout = Duration::zero();
  spec.config.rate_limit = 0;
  spec.config.max_wait = Duration::zero();  // no others come
  spec.config.queues.clear();
  if (!has_keys) {
    spec.config.idempotency.reset();
  }
  spec.handler = run.plan.handler;
  spec.options = run.plan.options;
  spec.leases = {run.lease};
  spec.host = run.host;
  spec.isolated = true;
  return spec;
}

/// The handler, as this run wants it: its lines go to whoever looks on.
plugin::InstanceFactory factory_of(const OneRun& run, const OneRunSeams& seams, isolation::RunnerSpawner& spawner) {
  return [&run, &seams, &spawner](
             std::shared_ptr<plugin::HealthSeat> health,
             std::shared_ptr<plugin::MetricBoard> metrics) -> Result<std::unique_ptr<plugin::HandlerInstance>> {
    const config::JobConfig& job = run.plan.config;
    if (run.file == nullptr) {
      return plugin::make_within({seams.log, run.effects, std::move(health), std::move(metrics)}, *run.plan.handler,
                                 job.name, run.plan.options, run.plan.arounds);
    }
    isolation::RunnerSpec spec{{job.name, run.plan.plugin_file, job.handler},
                               run.plan.options,
                               {.memory = job.limits.memory, .start = kStartTime},
                               run.file,
                               run.effects,
                               std::move(health),
                               std::move(metrics),
                               run.arounds};
    return isolation::RunnerInstance::create(std::move(spec), spawner, seams.log);
  };
}

Error not_handed_out(const NamedMessage& message, const std::string& why) {
  return {ErrorCode::conflict,
          "message " + visible(message.record.message.id) + " of queue " + message.queue + " " + why};
}

Error at_work(const NamedMessage& message, const queue::StoredMessage& record) {
  return not_handed_out(
      message, "is at work, by another host or by who received it" +
                   (record.invisible_until ? ", until " + format_timestamp(*record.invisible_until) + " at least"
                                           : std::string()) +
                   "; wait for its end, or run it without --settle");
}

/// Brings it where the next claim finds it.
Result<void> bring_to_front(const NamedMessage& message, queue::Operator& oper, Deadline deadline) {
  const queue::Change change{
      .id = message.record.message.id, .action = queue::ChangeAction::move_to_front, .version = message.record.version};
  const auto results = oper.change({&change, 1}, deadline);
  switch (results.front().status) {
    case queue::ChangeStatus::applied:
      return {};
    case queue::ChangeStatus::not_found:
      return queue::no_message(message.queue, message.record.message.id);
    default:
      return results.front().error;
  }
}

/// Claims until the message is handed out, and keeps what else comes in `others`. Nothing: it did not come in time.
Result<std::optional<Delivery>> claim_until(const std::string& id, queue::Source& source, const work::QueueLease& lease,
                                            const Clock& clock, std::vector<queue::Completion>& others) {
  const SteadyTime end = clock.steady_now() + kClaimTime;
  queue::LookPace pace;
  Mutex mutex;
  Condition pause;
  std::optional<Delivery> found;
  while (!found && others.size() < kMostOthers) {
    SLUICE_TRY(claimed, source.claim({.max = others.empty() ? 1 : kClaimAtOnce, .visibility = lease.visibility},
                                     Deadline::after(clock, kClaimTime)));
    for (Delivery& delivery : claimed->deliveries) {
      if (delivery.message.id == id) {
        found = std::move(delivery);
      } else {
        others.push_back(work::completion_of(std::move(delivery.receipt), work::put_back(), clock.wall_now()));
      }
    }
    const SteadyTime now = clock.steady_now();
    if (claimed->deliveries.empty() && now >= end) {
      break;
    }
    if (claimed->deliveries.empty()) {
      const MutexLock lock(mutex);
      pause.wait_until(mutex, pace.next(now, end, claimed->next_due), [] { return false; });
    }
  }
  return found;
}

}  // namespace

Delivery handed_out(queue::Message message, std::uint32_t attempt) {
  message.attempt = attempt;
  Delivery delivery;
  delivery.receipt.id = message.id;
  delivery.leased_until = SteadyTime::max();
  delivery.message = std::move(message);
  return delivery;
}

Result<work::AttemptEnd> run_one_message(const OneRun& run, Delivery delivery, const OneRunSeams& seams) {
  Arrival arrival;
  observe::Metrics metrics;
  isolation::RunnerSpawner spawner;
  SLUICE_PASS_ON(spawner.start());
  const work::JobSeams job_seams{.clock = seams.clock,
                                 .random = seams.random,
                                 .log = seams.host_log,
                                 .metrics = metrics.job(run.plan.config.name, work::queue_text(run.plan.config)),
                                 .crash_ledger = nullptr,
                                 .isolated = factory_of(run, seams, spawner),
                                 .explain = {},
                                 .keys = seams.keys,
                                 .watch = [&arrival](const work::AttemptEnd& end) { arrival.put(end); }};
  SLUICE_TRY(job, work::Job::create(spec_of(run, static_cast<bool>(seams.keys)),
                                    std::make_unique<OneMessageSource>(std::move(delivery), seams.source), job_seams));
  SLUICE_PASS_ON((*job)->start());
  auto end = arrival.wait(seams.stop);
  if (!end) {
    // Whatever its handler does: it gets a moment to stop, then its process is ended, and the message goes back.
    (*job)->drain(Deadline::after(seams.clock, kStopTime));
    spawner.kill_all();
    return Error(ErrorCode::cancelled, "interrupted while the handler ran");
  }
  (*job)->drain(Deadline::after(seams.clock, kEndTime));
  return *std::move(end);
}

Result<Delivery> claim_named(const NamedMessage& message, queue::Operator& oper, queue::Source& source,
                             const work::QueueLease& lease, const Clock& clock) {
  const Deadline deadline = Deadline::after(clock, kEndTime);
  if (queue::is_moving(message.record)) {
    return not_handed_out(message, "is being moved to another queue; let `sluice move` end first");
  }
  if (message.record.state(clock.wall_now()) == queue::MessageState::in_flight) {
    return at_work(message, message.record);
  }
  SLUICE_PASS_ON(bring_to_front(message, oper, deadline));
  std::vector<queue::Completion> others;
  auto found = claim_until(message.record.message.id, source, lease, clock, others);
  if (!others.empty()) {
    static_cast<void>(source.settle(others, Deadline::after(clock, kEndTime)));
  }
  SLUICE_PASS_ON(found);
  if (*found) {
    return **std::move(found);
  }
  SLUICE_TRY(now, oper.get(message.record.message.id, Deadline::after(clock, kEndTime)));
  if (now->state(clock.wall_now()) == queue::MessageState::in_flight) {
    return at_work(message, *now);
  }
  return not_handed_out(message,
                        "is not handed out: others of its group come first, or the hosts that run own its part of the "
                        "queue; pause the job, or run it without --settle");
}

}  // namespace sluice::runtime
