#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/truth.hpp"

namespace sluice::simulation {

/// What one host holds, kept where it outlives the host.
class SimLedger final : public isolation::JobLedger {
 public:
  struct Entry {
    queue::Receipt receipt;
    std::uint32_t attempt = 0;
    bool suspect = false;
    bool running = false;
  };

  isolation::HeldSlot hold(const queue::Delivery& delivery) noexcept override {
    entries_[++next_] = {delivery.receipt, delivery.message.attempt, delivery.suspect, false};
    return next_;
  }
  void renew(isolation::HeldSlot slot, const queue::Receipt& receipt) noexcept override {
    entries_.at(slot).receipt = receipt;
  }
  void started(isolation::HeldSlot slot) noexcept override { entries_.at(slot).running = true; }
  void ended(isolation::HeldSlot slot) noexcept override { entries_.at(slot).running = false; }
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
  /// Guards that a mutation check takes away, to see that the checker notices.
  enum class Mutation { none, no_version_condition };

  struct World {
    Backend& backend;
    Truth& truth;
    Random& random;
    const Clock& clock;
    FaultMix faults;  ///< changes while the run goes on
    Mutation mutation = Mutation::none;
    Duration real_visibility{};  ///< above zero: what a lease is really worth, whatever its host believes
  };

  SimPort(World& world, Truth::Host host);

  Result<queue::Claimed> claim(queue::ClaimRequest request, SteadyTime asked_at, Deadline deadline);
  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline);
  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          SteadyTime asked_at, Deadline deadline);
  /// How long the next call takes to reach the store.
  Duration latency();

  SimLedger& crash_ledger() { return crash_ledger_; }

  static const queue::QueueAddress& address();

 private:
  struct Fate {
    std::optional<Error> error;
    bool applied = false;
  };
  bool chance(double probability) { return world_.random.unit() < probability; }
  Fate fate();
  Duration real_visibility(Duration believed) const;
  std::optional<std::size_t> unlucky(std::size_t count);
  void break_guard(queue::Completion& completion);

  World& world_;
  const Truth::Host host_;
  SimLedger crash_ledger_;
  const std::unique_ptr<queue::Source> source_;
  const std::unique_ptr<queue::Operator> operator_;
};

}  // namespace sluice::simulation
