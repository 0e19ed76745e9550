#pragma once

#include "config/config.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [job.idempotency], where it is there.
void read_idempotency(Section idempotency, JobConfig& config);

}  // namespace sluice::config
