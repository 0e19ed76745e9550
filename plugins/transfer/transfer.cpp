#include <cstdint>
#include <nlohmann/json.hpp>
#include <sluice/handler.hpp>
#include <string>

/// Moves money between two accounts and sends a receipt: all of it with the end of the message, or nothing.
struct Transfer {
  static constexpr const char* help = "Moves an amount from one account to another, and sends a receipt.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("accounts", "accounts", "The table of accounts: id, balance."),
      sluice::option<std::string>("receipts", "receipts", "The queue that receipts go to."),
  };
  Transfer(const sluice::Options& values, sluice::Host host)
      : accounts(values.get<std::string>("accounts")), receipts(values.get<std::string>("receipts")) {
    if (host.store() == sluice::Store::none) {
      throw std::invalid_argument("the queue's store has no transactions, or the host knows no effects: update it");
    }
  }

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    const auto order = nlohmann::json::parse(message.body());
    const std::string from = order.at("from");
    const std::string to = order.at("to");
    const std::int64_t amount = order.at("amount");
    if (amount <= 0 || from == to) {
      return sluice::reject("a transfer wants two accounts, and more than nothing");
    }
    if (context.store() == sluice::Store::dynamodb) {
      context.update(accounts, {{"id", from}})
          .set("balance = balance - :amount")
          .when("balance >= :amount")
          .value(":amount", amount)
          .label("debit")
          .otherwise_reject();
      context.update(accounts, {{"id", to}})
          .set("balance = balance + :amount")
          .when("attribute_exists(id)")
          .value(":amount", amount)
          .label("credit")
          .otherwise_reject();
    } else {
      context.sql("UPDATE " + accounts + " SET balance = balance - ?1 WHERE id = ?2 AND balance >= ?1", amount, from)
          .rows(1)
          .label("debit")
          .otherwise_reject();
      context.sql("UPDATE " + accounts + " SET balance = balance + ?1 WHERE id = ?2", amount, to)
          .rows(1)
          .label("credit")
          .otherwise_reject();
    }
    context.send(receipts, message.body()).content_type("application/json").attribute("transfer", message.id());
    return sluice::done().result("moved " + std::to_string(amount));
  }

  std::string accounts;
  std::string receipts;
};
SLUICE_PLUGIN("transfer", "1.0.0", Transfer)
