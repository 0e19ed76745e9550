#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/random.hpp"
#include "config/config.hpp"
#include "tests/simulation/backend.hpp"
#include "tests/simulation/sim_host.hpp"
#include "tests/simulation/simulation.hpp"
#include "tests/simulation/table_backend.hpp"

namespace sluice::simulation {

/// What a seed chose of promises beyond delivery: groups, keys, effects, duplicates.
struct TradePlan {
  std::uint64_t groups = 0;  ///< that messages are of; one in four is of none
  std::uint64_t keys = 0;    ///< that messages share; one in six has none
  Duration dedup_window{};   ///< zero: nobody deduplicates
  double copies = 0;         ///< of the messages with a deduplication id, so many are sent again
  double refused = 0;        ///< of the messages, so many have an effect that is refused the first time
  bool rejects_refused = false;
  bool shared = false;  ///< all of them write one account
  Duration span{};      ///< how long a transaction keeps others from its items
};

/// What one seed chose.
struct Plan {
  config::JobConfig job;
  Duration visibility{};
  std::uint64_t messages = 0;
  FaultMix faults;
  HandlerMix handlers;
  work::WorkStyle style;
  bool crashes = false;
  bool freezes = false;
  bool jumps = false;
  bool takes_away = false;
  bool restarts = false;
  bool outages = false;
  bool ledgers = false;
  std::uint64_t bombs = 0;
  TablePlan table;  ///< of the DynamoMQ store
  std::optional<TradePlan> trade;

  /// Nothing but a lease that has ended in the eyes of its own host lets two of them work on one message.
  bool exclusive() const {
    return !freezes && !jumps && !takes_away && faults.slow <= 0 && table.skew <= Duration::zero();
  }
};

Plan make_plan(Random& random, Store store, Work work);
/// In one line.
std::string describe(const Plan& plan);

}  // namespace sluice::simulation
