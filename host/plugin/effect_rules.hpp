#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "sluice/effects.h"

namespace sluice::plugin {

/// What the handlers of a job may have committed together with a message. A value.
struct EffectRules {
  sluice_store store = SLUICE_STORE_NONE;  ///< of the job's queue; none: it has no transactions
  bool keeps_key = false;                  ///< an idempotency record is written besides
  // For the ids of messages without one; both outlive whoever has the rules. Null: no effects.
  Random* random = nullptr;
  const Clock* clock = nullptr;
};

/// The rules for a job whose queue lies in such a store. `random` and `clock` outlive whoever has them.
inline EffectRules effect_rules(const config::JobConfig& job, config::StoreKind store, Random& random,
                                const Clock& clock) {
  return {store == config::StoreKind::dynamodb ? SLUICE_STORE_DYNAMODB : SLUICE_STORE_SQLITE,
          job.idempotency.has_value(), &random, &clock};
}

}  // namespace sluice::plugin
