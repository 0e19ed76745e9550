#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "dynamo/transaction.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_errors.hpp"

/// The writes that make up the life of a message of this layout, each conditional on the record's version, and what its
/// transactions are made of.
namespace sluice::queue::leased {

using table::RecordChange;
using table::RecordWrite;

/// A record that is to be as it was, for a write to take effect.
struct Fenced {
  Fenced(Place at, table::VersionMark as) : place(std::move(at)), version(std::move(as)) {}
  Fenced(Place at, std::int64_t as) : Fenced(std::move(at), version_mark(as)) {}

  Place place;
  table::VersionMark version;
};

/// Takes the message away; returns the old item, which is how one that was gone is told.
RecordWrite remove_message(std::string_view table, const Fenced& fenced);
/// Raises the version, leaves nonce and time, and applies `change`; returns the new item when `returning`.
RecordWrite update_message(std::string_view table, const Fenced& fenced, std::string_view nonce, WallTime now,
                           RecordChange change, bool returning = false);
/// Takes the alias of an id away, if it still leads to that place.
RecordWrite remove_alias(std::string_view table, const std::string& queue, const std::string& id, const Place& target);

/// The sort key of a half's mark that a job wants its groups in order, beside its ownership items.
inline constexpr std::string_view kOrderedKey = "ordered";
/// Takes away what holds a group back, if that message is why.
RecordWrite remove_hold(std::string_view table, const std::string& queue, std::uint32_t shard, const std::string& group,
                        const std::string& id);

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

/// A change of a message's state as this layout's attributes, where the message lies. Its half and its place in time
/// are its key, so that a change of those moves it (`change_item`). `marked`: the record may say that it is a suspect.
RecordChange attributes_of(const core::StateChange& change, bool marked);
/// The same in a whole item. The version stays.
void change_item(dynamo::Item& item, const core::StateChange& change);

}  // namespace sluice::queue::leased
