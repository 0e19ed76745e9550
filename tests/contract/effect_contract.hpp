#pragma once

#include <cstdint>
#include <string>
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

}  // namespace sluice::test
