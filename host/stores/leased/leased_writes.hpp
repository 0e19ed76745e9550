#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/table/statements.hpp"

/// The writes that make up the life of a message of this layout, each conditional on the record's version.
namespace sluice::queue::leased {

using table::RecordChange;
using table::RecordWrite;

/// A record that is to be as it was, for a write to take effect.
struct Fenced {
  Place place;
  std::int64_t version = 1;
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

/// A change of a message's state as this layout's attributes, where the message lies. Its half and its place in time
/// are its key, so that a change of those moves it (`change_item`). `marked`: the record may say that it is a suspect.
RecordChange attributes_of(const core::StateChange& change, bool marked);
/// The same in a whole item. The version stays.
void change_item(dynamo::Item& item, const core::StateChange& change);

}  // namespace sluice::queue::leased
