#pragma once

#include "base/random.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::simulation {

/// Queues in memory, the same for all hosts.
class MemoryBackend final : public Backend {
 public:
  MemoryBackend(const Clock& clock, Random& random) : queues_(clock, random) {}

  queue::Queues& queues_of(Truth::Host) override { return queues_; }
  queue::Queues& outside() override { return queues_; }
  void take_away(const queue::QueueAddress& address) override {
    queues_.lose_receipts(address, std::chrono::seconds(2));
  }
  bool is_real() const override { return false; }
  void set_faults(const FaultMix&) override {}

 private:
  test::SimQueues queues_;
};

}  // namespace sluice::simulation
