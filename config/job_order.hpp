#pragma once

#include "config/reader.hpp"

/// Which queues a job draws from, and in which order.
namespace sluice::config {

/// `queue` or `queues`: one of them.
void read_queues(Section job, Reader& reader, JobConfig& config);
/// `order`, `fair` and `on_dead_letter`. After the dead-letter policy.
void read_order(Section job, Reader& reader, JobConfig& config);
/// [job.priorities]. After the order.
void read_priorities(Section priorities, Reader& reader, JobConfig& config);

}  // namespace sluice::config
