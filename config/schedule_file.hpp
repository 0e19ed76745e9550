#pragma once

#include "config/config.hpp"
#include "config/document.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads every [schedule.NAME] of a job file. `tree` is the file's top level.
void read_schedules(Section root, Reader& reader, const Table& tree, JobConfig& config);

}  // namespace sluice::config
