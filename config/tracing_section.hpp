#pragma once

#include "config/config.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [tracing], where it is there.
void read_tracing(Section tracing, Reader& reader, HostConfig& config);

}  // namespace sluice::config
