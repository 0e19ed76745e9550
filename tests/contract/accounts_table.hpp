#pragma once

#include <optional>
#include <string>

#include "dynamo/client.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::test {

/// A table of the user's beside the queues: balances by name. It is made when it is first asked for.
class AccountsTable {
 public:
  AccountsTable(dynamo::Client& client, const Clock& clock) : client_(client), clock_(clock) {}

  queue::EffectWrite open(const std::string& name, std::int64_t balance) {
    return {queue::ItemWrite{
        .table = table(),
        .item = R"({"id":{"S":")" + name + R"("},"balance":{"N":")" + std::to_string(balance) + R"("}})",
        .condition = "attribute_not_exists(id)"}};
  }
  queue::EffectWrite add(const std::string& name, std::int64_t amount) {
    return {queue::ItemWrite{.action = queue::ItemAction::update,
                             .table = table(),
                             .item = R"({"id":{"S":")" + name + R"("}})",
                             .update = "ADD #b :a",
                             .condition = "attribute_exists(id)",
                             .names = {{"#b", "balance"}},
                             .values = R"({":a":{"N":")" + std::to_string(amount) + R"("}})"}};
  }
  std::optional<std::int64_t> balance(const std::string& name) {
    const auto found = client_.get_item({.table = table(), .key = {{"id", name}}}, Deadline::after(clock_, 60s));
    if (!found || found->item.empty()) {
      return std::nullopt;
    }
    const auto* number = dynamo::find<dynamo::Number>(found->item, "balance");
    return number == nullptr ? std::nullopt : std::optional<std::int64_t>(std::stoll(number->text));
  }

 private:
  const std::string& table() {
    if (table_.empty()) {
      table_ = fresh_table_name("accounts");
      dynamo::CreateTableRequest request;
      request.name = table_;
      request.attribute_types = {{"id", "S"}};
      request.hash_key = "id";
      const auto made = client_.create_table(request, Deadline::after(clock_, 60s));
      EXPECT_TRUE(made) << made.error().message;
    }
    return table_;
  }

  dynamo::Client& client_;
  const Clock& clock_;
  std::string table_;
};

}  // namespace sluice::test
