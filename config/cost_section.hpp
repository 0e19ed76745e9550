#pragma once

#include "config/config.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [cost].
void read_cost(Section cost, Reader& reader, HostConfig& config);
/// Reads what a queue's host may spend on it: max_write_units and max_read_units of [queues.NAME], which lies in a
/// store of this kind.
void read_budget(Section& section, Reader& reader, StoreKind kind, QueueConfig& queue);

}  // namespace sluice::config
