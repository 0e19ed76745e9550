#pragma once

#include "config/config.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [log]: what stands on standard error, and who is sent the lines beside it.
void read_log(Section log, Reader& reader, HostConfig& config);

}  // namespace sluice::config
