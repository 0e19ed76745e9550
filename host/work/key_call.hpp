#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "host/queue/idempotency.hpp"
#include "host/work/call_loop.hpp"
#include "host/work/idempotency_gate.hpp"
#include "host/work/message_key.hpp"

namespace sluice::work {

/// Asks for idempotency keys: the fourth kind of calls of a job, on a thread of its own where the job has keys. Reads
/// the keys of messages here, without the job's lock, as bodies may be long.
class KeyCall {
 public:
  static constexpr auto kCaller = SharedFlow::Caller::keys;
  static constexpr const char* kName = "sluice-keys";
  using Order = IdempotencyGate::Order;

  /// Keys by the part that a message's receipt is of.
  using Keys = std::vector<std::unique_ptr<queue::IdempotencyKeys>>;

  /// `keys` outlives it; at least one.
  KeyCall(const Keys& keys, MessageKey key, std::string job, const Clock& clock)
      : keys_(keys), key_(std::move(key)), job_(std::move(job)), clock_(clock) {}

  static void begin(SharedFlow&) {}
  static void end() {}
  static Order next(JobFlow& flow, SteadyTime now, StepEffects&) { return flow.next_keys(now); }
  static bool empty(const Order& order) { return order.empty(); }
  IdempotencyGate::Answers make(const Order& order);
  static void report(JobFlow& flow, const Order& order, IdempotencyGate::Answers answers, SteadyTime now,
                     StepEffects& notes) {
    flow.keys_answered(order, std::move(answers), now, notes);
  }

 private:
  std::optional<Error> release(const std::vector<KeyMark>& marks, Deadline deadline);
  std::vector<queue::KeyAnswer> claim(std::vector<KeyMark> marks, Deadline deadline);

  const Keys& keys_;
  const MessageKey key_;
  const std::string job_;
  const Clock& clock_;
};

}  // namespace sluice::work
