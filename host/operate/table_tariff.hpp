#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "host/cost/prices.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::operate {

/// By what a queue's writes are paid: DynamoDB's published rules for the layout of its table. A value.
///
/// DynamoMQ's: a write unit for each begun KiB of the item in the table and again in its index, and a second one in the
/// index where an index key changes, because that is a deletion and an insertion. Leased: one for each begun KiB in
/// place; a record that comes to lie elsewhere is deleted, put and its alias put in one transaction, at twice the
/// price; what was stored under an id of its own has an alias that goes with it. Writes there look at the record first.
class TableTariff {
 public:
  /// Nothing is billed: a file, a database.
  TableTariff() = default;
  TableTariff(config::Layout layout, std::string queue) : layout_(layout), queue_(std::move(queue)) {}

  bool billed() const { return layout_.has_value(); }

  // Of one message that was listed with its content.

  cost::Spent change(const queue::StoredMessage& message, queue::ChangeAction action) const;
  /// Its content, which is read first.
  cost::Spent edit(const queue::StoredMessage& message) const;
  /// A move takes it away: hidden, then removed.
  cost::Spent carry_out(const queue::StoredMessage& message) const;
  /// That it is hidden only while its shard is the mover's costs so much more.
  cost::Spent hold(const queue::StoredMessage& message) const;
  /// A move brings it: put hidden, then shown.
  cost::Spent carry_in(const queue::StoredMessage& message) const;

 private:
  std::size_t bytes(const queue::StoredMessage& message) const;
  cost::Spent leased_change(const queue::StoredMessage& message, queue::ChangeAction action) const;
  static cost::Spent leased_look(const queue::StoredMessage& message, std::size_t size);

  std::optional<config::Layout> layout_;
  std::string queue_;
};

}  // namespace sluice::operate
