#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "host/queue/source.hpp"
#include "host/work/call_loop.hpp"
#include "host/work/job_tracing.hpp"

/// The three kinds of calls that a job makes, each on a thread of its own: so that no claim or settlement, however
/// slow, lets a lease run out.
namespace sluice::work {

/// Says in one line what is wrong with a job's queue and how a person mends it.
using ExplainError = std::function<std::string(const Error& error)>;

/// Claims. Also starts and stops the source, so that one that does not return holds up nothing but this thread.
class ClaimCall {
 public:
  static constexpr auto kCaller = SharedFlow::Caller::poller;
  static constexpr const char* kName = "sluice-poller";
  using Order = JobFlow::ClaimOrder;

  /// `explain` may be empty: then a failure says what the source says. `tracing` may be null. `own_ids_of` is as
  /// ClaimRequest's.
  ClaimCall(queue::Source& source, Duration visibility, const Clock& clock, ExplainError explain,
            const queue::ClaimRules& rules = {}, JobTracing* tracing = nullptr, std::string own_ids_of = {})
      : source_(source),
        visibility_(visibility),
        clock_(clock),
        explain_(std::move(explain)),
        rules_(rules),
        tracing_(tracing),
        own_ids_of_(std::move(own_ids_of)) {}

  void begin(SharedFlow& flow) {
    source_.start(
        {.on_ready = [&flow] { flow.run([](JobFlow& job, SteadyTime, StepEffects& notes) { job.wake(notes); }); },
         .lost =
             [&flow](std::span<const queue::Receipt> receipts) {
               flow.run(
                   [&](JobFlow& job, SteadyTime now, StepEffects& notes) { job.taken_back(receipts, now, notes); });
             }});
  }
  void end() { source_.stop(); }

  static Order next(JobFlow& flow, SteadyTime now, StepEffects&) { return flow.next_claim(now); }
  static bool empty(const Order& order) { return order.count == 0; }
  Result<queue::Claimed> make(const Order& order) {
    const SteadyTime began = tracing_ != nullptr ? tracing_->now() : SteadyTime();
    auto claimed = source_.claim({.max = order.count,
                                  .bytes = kClaimBytes,
                                  .visibility = visibility_,
                                  .suspects = order.suspects,
                                  .rules = rules_,
                                  .own_ids_of = own_ids_of_},
                                 Deadline::after(clock_, kSourceTimeout));
    if (!claimed && claimed.error().code() == ErrorCode::over_limit) {
      // No failure: there is nothing to be had until somebody has settled something.
      return queue::Claimed{};
    }
    if (!claimed && explain_) {
      return Error(claimed.error().code(), explain_(claimed.error()));
    }
    if (tracing_ != nullptr && claimed) {
      tracing_->claimed(claimed->deliveries, began);
    }
    return claimed;
  }
  static void report(JobFlow& flow, const Order&, Result<queue::Claimed> answer, SteadyTime now, StepEffects& notes) {
    flow.claimed(std::move(answer), now, notes);
  }

 private:
  queue::Source& source_;
  const Duration visibility_;
  const Clock& clock_;
  const ExplainError explain_;
  const queue::ClaimRules rules_;
  JobTracing* const tracing_;
  const std::string own_ids_of_;
};

/// Settles.
class SettleCall {
 public:
  static constexpr auto kCaller = SharedFlow::Caller::settler;
  static constexpr const char* kName = "sluice-settler";
  using Order = JobFlow::SettleOrder;

  /// `tracing` may be null.
  SettleCall(queue::Source& source, const Clock& clock, JobTracing* tracing = nullptr)
      : source_(source), clock_(clock), tracing_(tracing) {}

  static void begin(SharedFlow&) {}
  static void end() {}
  Order next(JobFlow& flow, SteadyTime now, StepEffects& notes) const {
    return flow.next_settlement(now, clock_.wall_now(), notes);
  }
  static bool empty(const Order& order) { return order.tasks.empty(); }
  std::vector<queue::SettleResult> make(const Order& order) {
    if (tracing_ == nullptr) {
      return source_.settle(order.completions, Deadline::at(order.deadline));
    }
    const SteadyTime began = tracing_->now();
    auto results = source_.settle(order.completions, Deadline::at(order.deadline));
    tracing_->settled(order.tasks, order.completions, results, began);
    return results;
  }
  static void report(JobFlow& flow, Order&& order, std::vector<queue::SettleResult>&& answer, SteadyTime now,
                     StepEffects& notes) {
    flow.settled(std::move(order), std::move(answer), now, notes);
  }

 private:
  queue::Source& source_;
  const Clock& clock_;
  JobTracing* const tracing_;
};

/// Extends leases.
class ExtendCall {
 public:
  static constexpr auto kCaller = SharedFlow::Caller::keeper;
  static constexpr const char* kName = "sluice-leases";
  using Order = JobFlow::ExtendOrder;

  ExtendCall(queue::Source& source, Duration visibility) : source_(source), visibility_(visibility) {}

  static void begin(SharedFlow&) {}
  static void end() {}
  static Order next(JobFlow& flow, SteadyTime now, StepEffects& notes) { return flow.next_extension(now, notes); }
  static bool empty(const Order& order) { return order.tasks.empty(); }
  std::vector<queue::ExtendResult> make(const Order& order) {
    return source_.extend(order.receipts, visibility_, Deadline::at(order.deadline));
  }
  static void report(JobFlow& flow, Order order, std::vector<queue::ExtendResult> answer, SteadyTime now,
                     StepEffects& notes) {
    flow.extended(std::move(order), std::move(answer), now, notes);
  }

 private:
  queue::Source& source_;
  const Duration visibility_;
};

}  // namespace sluice::work
