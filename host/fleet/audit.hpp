#pragma once

#include <vector>

#include "host/fleet/steering.hpp"

namespace sluice::fleet {

/// What several boards tell, the newest first. A deed that was noted on each of them, because it is about hosts of all
/// of them, appears once, with all its places.
std::vector<AuditEntry> merge_audits(std::vector<AuditEntry> entries);

}  // namespace sluice::fleet
