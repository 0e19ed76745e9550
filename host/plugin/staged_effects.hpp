#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/queue/effects.hpp"
#include "sluice/detail/effect_limits.hpp"
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

/// "sluice.effects/1" for one attempt: gathers what a handler stages. Costs nothing until something is staged. Of the
/// worker's thread.
class StagedEffects {
 public:
  /// `rules` outlives it. `first_result`: of the duplicate that the message is; null where it is none.
  StagedEffects(const EffectRules& rules, std::shared_ptr<const std::string> first_result)
      : rules_(rules),
        first_result_(std::move(first_result)),
        table_{sizeof(sluice_effects),       rules.store, this, &send, &write_item, &run_sql, &set_result,
               &StagedEffects::first_result, &clear} {}
  ~StagedEffects() = default;
  StagedEffects(const StagedEffects&) = delete;
  StagedEffects& operator=(const StagedEffects&) = delete;

  /// What the plugin is given; null where the rules know no effects.
  const sluice_effects* table() const { return rules_.random != nullptr ? &table_ : nullptr; }

  /// Why nothing may be committed: something was refused. Empty: it may.
  std::string refusal() const {
    return broken_ ? std::string(kNoMemory) : staging_ ? staging_->refusal : std::string();
  }
  /// Messages and writes.
  std::size_t count() const {
    return staging_ ? staging_->effects->messages.size() + staging_->effects->writes.size() : 0;
  }
  /// All of it; null: nothing was staged.
  std::shared_ptr<const queue::Effects> take() {
    if (!staging_ || staging_->effects->empty()) {
      return nullptr;
    }
    auto effects = std::move(staging_->effects);
    staging_.reset();
    return effects;
  }

 private:
  static constexpr const char* kNoMemory = "there is no memory for it";

  struct Staging {
    explicit Staging(const EffectRules& rules) : limits(rules.store, rules.keeps_key) {}

    detail::EffectLimits limits;
    std::shared_ptr<queue::Effects> effects = std::make_shared<queue::Effects>();
    std::string refusal;  ///< the first one
    std::string last;     ///< what the plugin holds
  };

  static StagedEffects& of(const sluice_effects* effects) { return *static_cast<StagedEffects*>(effects->host); }
  static const char* send(const sluice_effects* effects, const sluice_effect_message* message) noexcept;
  static const char* write_item(const sluice_effects* effects, const sluice_effect_item* item) noexcept;
  static const char* run_sql(const sluice_effects* effects, const sluice_effect_sql* sql) noexcept;
  static const char* set_result(const sluice_effects* effects, sluice_string result) noexcept;
  static std::int32_t first_result(const sluice_effects* effects, sluice_string* result) noexcept {
    const auto& first = of(effects).first_result_;
    if (first == nullptr) {
      return 0;
    }
    *result = {first->data(), first->size()};
    return 1;
  }
  static void clear(const sluice_effects* effects) noexcept {
    of(effects).staging_.reset();
    of(effects).broken_ = false;
  }

  /// Makes the staging where there is none, and keeps what `stage` answers as the refusal.
  template <typename Stage>
  const char* stage(Stage stage) noexcept;

  // Fixed after construction.
  const EffectRules& rules_;
  const std::shared_ptr<const std::string> first_result_;
  sluice_effects table_;
  std::optional<Staging> staging_;
  bool broken_ = false;  ///< there was no memory for something
};

}  // namespace sluice::plugin
