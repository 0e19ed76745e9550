#pragma once

#include <string>

#include "config/config.hpp"

namespace sluice::runtime {

/// What this host is called in failures and among the writers of a table: the host file's name for it, else the
/// machine's.
std::string host_name(const config::HostConfig& config);

}  // namespace sluice::runtime
