#pragma once

#include <cstdint>
#include <string>

#include "base/random.hpp"
#include "config/config.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/sim_host.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/simulation/table_backend.hpp"

namespace sluice::simulation {

/// What one seed chose.
struct Plan {
  config::JobConfig job;
  Duration visibility{};
  std::uint64_t messages = 0;
  FaultMix faults;
  HandlerMix handlers;
  bool crashes = false;
  bool freezes = false;
  bool jumps = false;
  bool takes_away = false;
  bool restarts = false;
  bool outages = false;
  bool ledgers = false;
  std::uint64_t bombs = 0;
  TablePlan table;  ///< of the DynamoMQ store

  /// Nothing but a lease that has ended in the eyes of its own host lets two of them work on one message.
  bool exclusive() const {
    return !freezes && !jumps && !takes_away && faults.slow <= 0 && table.skew <= Duration::zero();
  }
};

Plan make_plan(Random& random, Store store);
/// In one line.
std::string describe(const Plan& plan);

}  // namespace sluice::simulation
