#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

/// The keys of a host file that say something else in `after` than in `before`, as they stand in the file:
/// "host.drain_timeout", "store.path", "queues.orders.table".
std::vector<std::string> changed_keys(const HostConfig& before, const HostConfig& after);

}  // namespace sluice::config
