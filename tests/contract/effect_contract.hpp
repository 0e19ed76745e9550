#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/queue/effects.hpp"
#include "tests/contract/store_contract.hpp"

namespace sluice::test {

/// What `settle` promises of effects: they are committed together with the completion, or not at all. A suite of its
/// own beside StoreContract, with the same factories.
class EffectContract : public StoreContract {
 protected:
  bool transactions() { return desk().source(standard()).traits().transactions; }
  queue::Effects opens(const std::string& name, std::int64_t balance,
                       queue::OnRefusal on_refusal = queue::OnRefusal::retry) {
    queue::Effects effects;
    effects.writes.push_back(under_test().open_account(name, balance));
    effects.writes.back().on_refusal = on_refusal;
    return effects;
  }
  queue::Effects adds(const std::string& name, std::int64_t amount) {
    queue::Effects effects;
    effects.writes.push_back(under_test().add_to_account(name, amount));
    return effects;
  }
  queue::Effects emits(const queue::EmittedMessages& messages) {
    queue::Effects effects;
    effects.messages = messages;
    return effects;
  }
  std::vector<queue::SettleResult> settle_all(const std::vector<queue::Completion>& completions) {
    return desk().settle(standard(), completions, soon());
  }
};

/// What `Source::checkpoint` promises: progress is stored with the message, and what is committed with it is so once.
class CheckpointContract : public EffectContract {
 protected:
  queue::SettleResult store(const queue::Receipt& receipt, const std::string& bytes,
                            std::optional<queue::Effects> effects = {}) {
    auto shared = effects ? std::make_shared<const queue::Effects>(*std::move(effects)) : nullptr;
    return desk().source(standard()).checkpoint(receipt, bytes, std::move(shared), soon());
  }
  /// Stores it and returns the receipt of the delivery as it goes on.
  queue::Receipt stored(queue::Receipt receipt, const std::string& bytes, std::optional<queue::Effects> effects = {}) {
    const queue::SettleResult result = store(receipt, bytes, std::move(effects));
    EXPECT_EQ(result.status, queue::SettleStatus::applied) << result.error.message();
    receipt.version = result.version;
    return receipt;
  }
  void change_one(queue::ChangeAction action) {
    const auto result = change({.id = "A-1", .action = action, .after = -1ms});
    EXPECT_EQ(result.status, queue::ChangeStatus::applied) << result.error.message();
  }
};

}  // namespace sluice::test
