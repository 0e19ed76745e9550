#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "dynamo/item_reading.hpp"
#include "host/queue/sender.hpp"
#include "host/queue/stored_message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// What every update leaves beside its change.
struct WriteMark {
  std::string_view nonce;
  WallTime now{};
};

// Writes of a table, whose name outlives them. Each is conditional on the version that is expected. Items are only ever
// updated, never put again, so that attributes which we do not know stay.

/// Raises the version, sets updated_at and the nonce, and applies `change`; returns the new item when `returning`.
table::RecordWrite update_of(std::string_view table, table::Expected expected, const WriteMark& mark,
                             table::RecordChange change, bool returning = false);
/// Returns the old item: the one way to tell a removal from a record that was gone already.
table::RecordWrite removal_of(std::string_view table, table::Expected expected);

/// Attributes that a record may have, so that a change which takes them away has to name them.
struct MayHave {
  bool marks = true;
  bool failure = true;
  bool checkpoint = true;
};
/// A change of a message's state as this layout's attributes.
table::RecordChange attributes_of(const core::StateChange& change, MayHave may_have = {});

/// Reads one half, from the index.
dynamo::QueryRequest query_of_half(const table::QueueTable& place, Half half);

/// Consistent reads of whole records. There is an entry for each id.
dynamo::Result<table::FoundRecords> read_records(const table::StoreParts& parts, const table::QueueTable& place,
                                                 const std::set<std::string>& ids, Deadline deadline);

/// A record that is to be put.
struct Insert {
  dynamo::Item item;             ///< with a nonce
  SendResult* result = nullptr;  ///< has its id
  /// It is a message as it was sent: whoever has claimed it since has replaced the nonce, but neither the time of its
  /// creation nor its data.
  bool is_new = false;
  bool replace = false;  ///< whatever lies under its id; otherwise nothing must
};

/// Puts them, and finds out by their nonces what became of those whose answers were lost. Sets the result of each that
/// is not there then.
void put_new(const table::StoreParts& parts, const table::QueueTable& place, std::span<const Insert> inserts,
             Deadline deadline);

}  // namespace sluice::queue::dynamomq
