#include "host/queue/operator.hpp"

#include <cstddef>
#include <utility>

namespace sluice::queue {

namespace {

// A handler that extends its lease changes a message every few seconds; nobody wins that race five times in a row.
constexpr int kTries = 5;

std::string_view other_half(Half half) {
  return half == Half::dlq ? "moved to the standard half meanwhile" : "moved to the dead-letter half meanwhile";
}

/// Brings the change up to the record as it is now; otherwise the reason not to remove it.
std::optional<ChangeResult> look_again(Operator& queue, Half half, Change& removal, Deadline deadline) {
  const auto found = queue.get(removal.id, deadline);
  if (!found) {
    const bool gone = found.error().code() == ErrorCode::not_found;
    return ChangeResult{gone ? ChangeStatus::not_found : ChangeStatus::failed, 0, found.error()};
  }
  if (found->half != half) {
    return ChangeResult{ChangeStatus::conflict, found->version,
                        Error(ErrorCode::conflict, std::string(other_half(half)))};
  }
  removal.version = found->version;
  return std::nullopt;
}

}  // namespace

std::vector<ChangeResult> remove_from_half(Operator& queue, Half half, std::vector<Change> removals,
                                           Deadline deadline) {
  std::vector<ChangeResult> results = queue.change(removals, deadline);
  for (int tries = 1; tries < kTries; ++tries) {
    std::vector<Change> again;
    std::vector<std::size_t> places;
    for (std::size_t index = 0; index < results.size(); ++index) {
      if (results[index].status != ChangeStatus::conflict || !removals[index].version) {
        continue;
      }
      if (auto reason = look_again(queue, half, removals[index], deadline)) {
        results[index] = std::move(*reason);
        removals[index].version.reset();  // settled
      } else {
        again.push_back(removals[index]);
        places.push_back(index);
      }
    }
    if (again.empty()) {
      break;
    }
    auto changed = queue.change(again, deadline);
    for (std::size_t index = 0; index < changed.size(); ++index) {
      results[places[index]] = std::move(changed[index]);
    }
  }
  return results;
}

}  // namespace sluice::queue
