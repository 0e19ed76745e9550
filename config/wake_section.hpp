#pragma once

#include "config/config.hpp"
#include "config/reader.hpp"

namespace sluice::config {

/// Reads [wake], where it is there.
void read_wake(Section wake, Reader& reader, HostConfig& config);

}  // namespace sluice::config
