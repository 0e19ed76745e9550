#pragma once

#include "base/random.hpp"
#include "config/config.hpp"
#include "sluice/effects.h"

namespace sluice::plugin {

/// What the handlers of a job may have committed together with a message. A value.
struct EffectRules {
  sluice_store store = SLUICE_STORE_NONE;  ///< of the job's queue; none: it has no transactions
  bool keeps_key = false;                  ///< an idempotency record is written besides
  Random* ids = nullptr;  ///< for messages without an id; outlives whoever has the rules. Null: no effects
};

/// The rules for a job whose queue lies in such a store. `ids` outlives whoever has them.
inline EffectRules effect_rules(const config::JobConfig& job, config::StoreKind store, Random& ids) {
  return {store == config::StoreKind::dynamodb ? SLUICE_STORE_DYNAMODB : SLUICE_STORE_SQLITE,
          job.idempotency.has_value(), &ids};
}

}  // namespace sluice::plugin
