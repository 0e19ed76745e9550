#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "host/queue/effects.hpp"

namespace sluice::test {

/// The one table of its user's that the simulated store has: balances by name. A value, so that a transaction works on
/// a copy.
class SimAccounts {
 public:
  /// Opens an account; refused where there is one of that name.
  static queue::EffectWrite opening(const std::string& name, std::int64_t balance) {
    return {queue::SqlWrite{kOpen, {name, balance}}};
  }
  /// Adds to an account; refused where there is none of that name.
  static queue::EffectWrite adding(const std::string& name, std::int64_t amount) {
    return {queue::SqlWrite{kAdd, {name, amount}}};
  }

  std::optional<std::int64_t> balance(const std::string& name) const {
    const auto found = balances_.find(name);
    return found == balances_.end() ? std::nullopt : std::optional(found->second);
  }
  std::int64_t sum() const {
    std::int64_t sum = 0;
    for (const auto& [name, balance] : balances_) {
      sum += balance;
    }
    return sum;
  }

  /// Why it is refused; nothing: it is done.
  std::optional<std::string> run(const queue::EffectWrite& write, std::size_t number) {
    const auto* sql = std::get_if<queue::SqlWrite>(&write.write);
    const bool known = sql != nullptr && (sql->statement == kOpen || sql->statement == kAdd);
    const std::string refused = name_of(write, number) + " on table accounts was refused: ";
    if (!known) {
      return refused + "the simulated store knows no such write";
    }
    const auto& name = std::get<std::string>(sql->parameters.at(0));
    const auto found = balances_.find(name);
    if ((found == balances_.end()) != (sql->statement == kOpen)) {
      return refused + "the account " + name + (found == balances_.end() ? " is not there" : " is there already");
    }
    balances_[name] += std::get<std::int64_t>(sql->parameters.at(1));
    return std::nullopt;
  }

 private:
  static constexpr const char* kOpen = "open";
  static constexpr const char* kAdd = "add";

  std::map<std::string, std::int64_t> balances_;
};

}  // namespace sluice::test
