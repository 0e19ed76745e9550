#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/work/job_threads.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

/// What one host holds, kept where it outlives the host.
class SimLedger final : public isolation::JobLedger {
 public:
  struct Entry {
    queue::Receipt receipt;
    std::uint32_t attempt = 0;
    bool running = false;
    bool finished = false;
    isolation::Committing committing = isolation::Committing::no;
  };

  isolation::HeldSlot hold(const queue::Delivery& delivery) noexcept override {
    entries_[++next_] = {delivery.receipt, delivery.message.attempt};
    return next_;
  }
  void renew(isolation::HeldSlot slot, const queue::Receipt& receipt) noexcept override {
    entries_.at(slot).receipt = receipt;
  }
  void started(isolation::HeldSlot slot, std::string_view) noexcept override { entries_.at(slot).running = true; }
  void ended(isolation::HeldSlot slot, bool finished) noexcept override {
    entries_.at(slot).running = false;
    entries_.at(slot).finished = finished;
  }
  void committing(isolation::HeldSlot slot, isolation::Committing how) noexcept override {
    entries_.at(slot).committing = how;
  }
  void drop(isolation::HeldSlot slot) noexcept override { entries_.erase(slot); }

  const std::map<isolation::HeldSlot, Entry>& entries() const { return entries_; }

 private:
  isolation::HeldSlot next_ = 0;
  std::map<isolation::HeldSlot, Entry> entries_;
};

/// The way from one host to the store: what is asked reaches it, or does not, or the answer is lost. Tells the Truth
/// what really took effect. To a real store, which does all that by itself, it only takes time.
class SimPort {
 public:
  struct World {
    Backend& backend;
    Truth& truth;
    Random& random;
    const Clock& clock;
    FaultMix faults;  ///< changes while the run goes on
    Mutation mutation = Mutation::none;
    Duration real_visibility{};  ///< above zero: what a lease is really worth, whatever its host believes
    std::optional<config::IdempotencyConfig> keys{};
    /// A host was told what became of a message that it had finished with effects. May be empty.
    std::function<void(Truth::Host host, const queue::Completion& completion, const queue::SettleResult& result)>
        on_settled{};
  };

  SimPort(World& world, Truth::Host host);
  ~SimPort();
  SimPort(const SimPort&) = delete;
  SimPort& operator=(const SimPort&) = delete;

  Result<queue::Claimed> claim(queue::ClaimRequest request, SteadyTime asked_at, Deadline deadline);
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline);
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          SteadyTime asked_at, Deadline deadline);
  /// Asks for idempotency keys as the product's own call does.
  work::IdempotencyGate::Answers ask(const work::IdempotencyGate::Order& order);
  bool has_keys() const { return asker_.has_value(); }
  /// How long the next call takes to reach the store.
  Duration latency();

  SimLedger& crash_ledger() { return crash_ledger_; }

  static const queue::QueueAddress& address();
  static constexpr const char* kJob = "orders";

  /// What becomes of one call on the way to a store that makes no faults by itself.
  struct Fate {
    std::optional<Error> error;
    bool applied = false;
  };
  static Fate fate_of(const FaultMix& faults, Random& random);

 private:
  class Keys;
  bool chance(double probability) { return world_.random.unit() < probability; }
  Fate fate() { return fate_of(world_.faults, world_.random); }
  Deadline limit(Deadline deadline) const;
  std::vector<queue::SettleResult> settle_all(std::span<const queue::Completion> completions, Deadline deadline);
  std::vector<queue::SettleResult> settle_some(std::span<const queue::Completion> completions, Deadline deadline);
  void tell(std::span<const queue::Completion> completions, std::span<const queue::SettleResult> results);
  void skip_head(const queue::Completion& completion);
  Duration real_visibility(Duration believed) const;
  std::optional<std::size_t> unlucky(std::size_t count);
  void break_guard(queue::Completion& completion);

  World& world_;
  const Truth::Host host_;
  SimLedger crash_ledger_;
  const std::unique_ptr<queue::Source> source_;
  const std::unique_ptr<queue::Operator> operator_;
  work::KeyCall::Keys keys_;  ///< none: the job has none
  std::optional<work::KeyCall> asker_;
};

}  // namespace sluice::simulation
