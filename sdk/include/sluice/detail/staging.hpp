#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/abi.h"
#include "sluice/checkpoint.h"
#include "sluice/detail/effect_limits.hpp"
#include "sluice/effects.h"
#include "sluice/message.hpp"

/// What an attempt stages and stores, for the host and for the test kit.
namespace sluice::detail {

inline constexpr const char* kNoMemory = "there is no memory for it";
inline constexpr const char* kLostCheckpoint =
    "the checkpoint is not stored: the message is no longer ours, and others may have it; return soon";

/// "sluice.effects/1" for one attempt: gathers what a handler stages. Of the worker's thread.
///
/// `Keeper` knows what is kept of it:
///
///     store, keeps_key                    where the job's queue lies, and whether an idempotency record is written
///     Effects                             what is staged: its `messages` and `writes`, and whether it is `empty`
///     void keep(effect, Effects&) const   of each kind of effect, and of the result (a sluice_string)
///     auto& result_of(Effects&)           what that has made of the result, which is committed with `done` alone
///     std::string words(std::string)      a refusal, as the plugin is told it
template <typename Keeper>
class EffectStage {
 public:
  using Effects = typename Keeper::Effects;

  /// `keeper` outlives it. `first_result`: of the duplicate that the message is; null where it is none.
  EffectStage(const Keeper& keeper, std::shared_ptr<const std::string> first_result)
      : keeper_(keeper), first_result_(std::move(first_result)) {}
  EffectStage(const EffectStage&) = delete;
  EffectStage& operator=(const EffectStage&) = delete;

  /// What the plugin is given.
  const sluice_effects* table() const { return &table_; }

  /// Why nothing may be committed: something was refused, or nobody knows what a checkpoint has committed. Empty: it
  /// may.
  std::string obstacle() const {
    if (!doubt_.empty()) {
      return doubt_;
    }
    if (!broken_ && (!staging_ || staging_->refusal.empty())) {
      return {};
    }
    return "nothing can be committed, because an effect was refused: " + (broken_ ? kNoMemory : staging_->refusal);
  }
  /// Messages and writes.
  std::size_t count() const {
    return staging_ ? staging_->effects.messages.size() + staging_->effects.writes.size() : 0;
  }
  /// A copy of what is committed with a checkpoint: all but the result. Null: nothing was staged.
  std::shared_ptr<const Effects> for_checkpoint() const {
    if (count() == 0) {
      return nullptr;
    }
    auto effects = std::make_shared<Effects>(staging_->effects);
    keeper_.result_of(*effects) = {};
    return effects;
  }
  /// That has been committed: staging goes on with the result alone.
  void committed() {
    const auto before = std::exchange(staging_, nullptr);  // first, for there may be no memory for another one
    staging_ = std::make_shared<Staging>(keeper_);
    keeper_.result_of(staging_->effects) = std::move(keeper_.result_of(before->effects));
  }
  /// Nobody knows whether it has been: from now on nothing may be committed, for that reason.
  void doubt(std::string why) { doubt_ = std::move(why); }
  /// That reason; empty: there is none. What is stored tells the next attempt, so that nothing may take its place.
  const std::string& doubt() const { return doubt_; }
  void discard() {
    staging_.reset();
    broken_ = false;
  }
  /// All of it; null: nothing was staged.
  std::shared_ptr<const Effects> take() {
    if (!staging_ || staging_->effects.empty()) {
      return nullptr;
    }
    const Effects* const effects = &staging_->effects;
    return {std::move(staging_), effects};
  }

 private:
  struct Staging {
    explicit Staging(const Keeper& keeper) : limits(keeper.store, keeper.keeps_key) {}

    EffectLimits limits;
    Effects effects;
    std::string refusal;  ///< the first one
    std::string last;     ///< what the plugin holds
  };

  static EffectStage& of(const sluice_effects* effects) { return *static_cast<EffectStage*>(effects->host); }
  /// Keeps what the limits admit, and the first refusal of what they do not.
  template <typename Effect>
  static const char* stage(const sluice_effects* effects, const Effect* effect) noexcept {
    EffectStage& self = of(effects);
    try {
      if (!self.staging_) {
        self.staging_ = std::make_shared<Staging>(self.keeper_);
      }
      Staging& staging = *self.staging_;
      if (std::string why = staging.limits.admit(*effect); !why.empty()) {
        staging.last = self.keeper_.words(std::move(why));
        if (staging.refusal.empty()) {
          staging.refusal = staging.last;
        }
        return staging.last.c_str();
      }
      self.keeper_.keep(*effect, staging.effects);
      return nullptr;
    } catch (const std::exception&) {
      self.broken_ = true;  // What is left of it must not be committed.
      return kNoMemory;
    }
  }

  // Fixed after construction.
  const Keeper& keeper_;
  const std::shared_ptr<const std::string> first_result_;
  const sluice_effects table_{
      sizeof(sluice_effects),
      keeper_.store,
      this,
      &stage<sluice_effect_message>,
      &stage<sluice_effect_item>,
      &stage<sluice_effect_sql>,
      [](const sluice_effects* effects, sluice_string result) noexcept { return stage(effects, &result); },
      [](const sluice_effects* effects, sluice_string* result) noexcept -> std::int32_t {
        const auto& first = of(effects).first_result_;
        if (first != nullptr) {
          *result = borrow(*first);
        }
        return first != nullptr ? 1 : 0;
      },
      [](const sluice_effects* effects) noexcept { of(effects).discard(); }};
  std::shared_ptr<Staging> staging_;  ///< apart: most messages stage nothing
  bool broken_ = false;               ///< there was no memory for something
  std::string doubt_;
};

/// What became of a checkpoint. A value.
struct CheckpointAnswer {
  std::string why{};     ///< it is not stored; empty: it is
  bool rejects = false;  ///< an effect was refused whose message is to be rejected then
  bool unknown = false;  ///< the store did not say whether effects are committed
};

/// "sluice.checkpoint/1" for one attempt. Of the worker's thread.
template <typename Keeper>
class AttemptCheckpoints {
 public:
  /// Asks the store; null: no effects.
  using Store =
      std::function<CheckpointAnswer(std::string_view bytes, std::shared_ptr<const typename Keeper::Effects> effects)>;

  /// `effects` outlives it, and `first`, what an attempt before has stored, the first call of `store`.
  AttemptCheckpoints(Store store, const std::string& first, EffectStage<Keeper>& effects)
      : store_(std::move(store)), last_(&first), effects_(effects) {}
  AttemptCheckpoints(const AttemptCheckpoints&) = delete;
  AttemptCheckpoints& operator=(const AttemptCheckpoints&) = delete;

  const sluice_checkpoint* table() const { return &table_; }
  /// Empty: there is none.
  const std::string& last() const { return *last_; }
  /// An effect was refused whose message is to be rejected then.
  bool rejects() const { return rejects_; }

 private:
  static AttemptCheckpoints& of(const sluice_checkpoint* table) {
    return *static_cast<AttemptCheckpoints*>(table->host);
  }
  static std::int32_t read(const sluice_checkpoint* table, sluice_string* bytes) noexcept {
    const std::string& last = of(table).last();
    *bytes = borrow(last);
    return last.empty() ? 0 : 1;
  }
  static const char* store(const sluice_checkpoint* table, sluice_string bytes, std::int32_t with_effects) noexcept {
    AttemptCheckpoints& self = of(table);
    try {
      self.why_ = self.put(view(bytes), with_effects != 0);
      return self.why_.empty() ? nullptr : self.why_.c_str();
    } catch (const std::exception&) {
      return kNoMemory;
    }
  }
  /// Why it was not stored; empty: it was.
  std::string put(std::string_view bytes, bool with_effects) {
    if (bytes.size() > SLUICE_CHECKPOINT_LIMIT) {
      return "a checkpoint has at most " + std::to_string(SLUICE_CHECKPOINT_LIMIT) + " bytes, this one has " +
             std::to_string(bytes.size()) + "; store where the work stands, and keep the data elsewhere";
    }
    if (std::string obstacle = with_effects ? effects_.obstacle() : effects_.doubt(); !obstacle.empty()) {
      return obstacle;
    }
    auto effects = with_effects ? effects_.for_checkpoint() : nullptr;
    const bool commits = effects != nullptr;
    std::string stored(bytes);
    CheckpointAnswer answer = store_(bytes, std::move(effects));
    rejects_ = rejects_ || answer.rejects;
    if (answer.why.empty()) {
      stored_ = std::move(stored);
      last_ = &stored_;
      if (commits) {
        effects_.committed();
      }
    } else if (commits && answer.unknown) {
      effects_.doubt(answer.why + "; whether its effects hold is seen by the next attempt");
    }
    return std::move(answer.why);
  }

  // Fixed after construction.
  const Store store_;
  const std::string* last_;
  EffectStage<Keeper>& effects_;
  const sluice_checkpoint table_{sizeof(sluice_checkpoint), 0, this, &read, &store};
  std::string stored_;
  std::string why_;  ///< what the plugin holds
  bool rejects_ = false;
};

}  // namespace sluice::detail
