#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/table_errors.hpp"

/// What the transactions of this layout are made of, and what its marks mean to a record.
namespace sluice::queue::leased {

/// A shard in the hands of one owner: what a transaction writes with its check holds only while it is there.
struct OwnerFence {
  Place ownership;  ///< the shard's ownership item
  std::int64_t epoch = 0;

  friend auto operator<=>(const OwnerFence&, const OwnerFence&) = default;
};
dynamo::TransactAction owner_check(const std::string& table, const OwnerFence& fence);

/// Puts the alias of an id in the place of the one that was read; nothing: of none.
dynamo::TransactAction put_alias(const table::QueueTable& table, const std::string& id, const Place& target,
                                 const std::optional<Place>& before);
/// The same whatever it is: for whoever has the message itself in the same transaction.
dynamo::TransactAction put_alias_anyway(const table::QueueTable& table, const std::string& id, const Place& target);
/// Removes a record that is still as it was read.
dynamo::TransactAction remove_record(const table::QueueTable& table, const dynamo::Item& read);
/// Lets the group of a dead letter go on that it holds back; nothing for one that holds none.
std::optional<dynamo::TransactAction> free_group(const table::QueueTable& table, const dynamo::Item& read);
/// A token for a transaction on that table, from so much chance.
std::string transaction_token(const table::QueueTable& table, std::string_view chance);
std::string transaction_token(const table::QueueTable& table, Random& random);

/// Where a mark of that id lies.
Place mark_place(std::string id);
/// What a message keeps of its unique key. By it an owner knows whether the key is free once the message was claimed.
std::string unique_token(const NewMessage& message, std::string token);
/// Whether that message, in whatever half, has the key still whose mark names it.
bool holds_key(const dynamo::Item& record, const table::Mark& mark);

}  // namespace sluice::queue::leased
