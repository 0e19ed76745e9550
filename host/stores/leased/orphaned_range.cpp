#include "host/stores/leased/orphaned_range.hpp"

#include <algorithm>

namespace sluice::queue::leased {

// What was moved to the front has come there at any time, and so takes nobody's place.
void OrphanedRange::saw(const std::string& sort) {
  if (read_ || !any() || sort <= counted_to_ || due_of(sort) < kFrontEnd) {
    return;
  }
  if (due_of(sort) > until_) {
    read_ = true;
    return;
  }
  counted_to_ = sort;
  read_ = ++counted_ == bound_;
}

bool OrphanedRange::concerns(const Candidate& candidate) const {
  if (!any() || std::max(candidate.due, candidate.not_before.value_or(WallTime{})) > until_) {
    return false;
  }
  return counted_ < bound_ || candidate.place.sort <= counted_to_;
}

}  // namespace sluice::queue::leased
