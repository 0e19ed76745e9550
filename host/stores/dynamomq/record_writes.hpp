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
#include "host/queue/stored_message.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/keyed_inserter.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/store_parts.hpp"

namespace sluice::queue::dynamomq {

/// Reads one half, from the index.
dynamo::QueryRequest query_of_half(const table::QueueTable& place, Half half);

/// Puts what has neither a deduplication id nor a unique key, and finds out by the nonces of the items what became of
/// those whose answers were lost. Sets the result of each that is not there then.
using Insert = table::KeyedInserter::Draft;
void put_new(const table::RecordLayout& layout, std::span<const Insert> inserts, Deadline deadline);

}  // namespace sluice::queue::dynamomq
