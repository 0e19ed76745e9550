#pragma once

#include <memory>

#include "base/error.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::dynamomq {

/// How DynamoMQ's tables hold their messages, and what goes with them. What `parts` refer to outlives it.
std::unique_ptr<table::RecordLayout> make_dynamomq_layout(table::StoreParts parts, table::QueueTable place);

/// Why a message with a priority is not taken.
Error no_priorities(const table::QueueTable& place);

}  // namespace sluice::queue::dynamomq
