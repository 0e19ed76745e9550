#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/fleet/steering.hpp"
#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// What several boards tell, the newest first. A deed that was noted on each of them, because it is about hosts of all
/// of them, appears once, with all its places.
std::vector<AuditEntry> merge_audits(std::vector<AuditEntry> entries);

/// Notes on the board what somebody did, each deed by itself; none: nothing is written. What is repeated at the very
/// same time, because an answer was lost, is noted once.
Result<void> note_deeds(queue::NoticeBoard& board, const std::string& who, const std::vector<std::string>& deeds,
                        Deadline deadline);

}  // namespace sluice::fleet
