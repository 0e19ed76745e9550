#pragma once

#include <vector>

#include "host/queue/operator.hpp"

namespace sluice::queue {

/// Removes messages that were listed in the half `half`, whatever has become of them since, as long as they lie in that
/// half: one that somebody moved to the other half meanwhile stays there, and its result is a conflict that says so.
///
/// Each of `removals` names the version that was listed. They go out as one call of the operator; only those that
/// somebody has changed in between are looked at again, one by one, and tried anew a few times.
std::vector<ChangeResult> remove_from_half(Operator& queue, Half half, std::vector<Change> removals, Deadline deadline);

}  // namespace sluice::queue
