#pragma once

#include <memory>

#include "base/error.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/stores/table/effect_layout.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "host/stores/table/store_parts.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {

/// How DynamoMQ's tables hold what a transaction brings to them.
std::unique_ptr<table::EffectLayout> make_dynamomq_layout(table::StoreParts parts, table::QueueTable place);

/// Whether a message holds the unique key whose mark names it; null: it is not there.
bool holds_key(const dynamo::Item* message, const table::Mark& mark);

/// Why a message with a priority is not taken.
Error no_priorities(const table::QueueTable& place);

}  // namespace sluice::queue::dynamomq
