#include "host/stores/leased/inheritance.hpp"

#include <algorithm>

namespace sluice::queue::leased {

// What came late while nobody looked may lie before what was at work, and so has driven it back.
void Inheritance::count(Count& of, const std::string& sort, std::uint32_t places, std::uint32_t late_ones) const {
  if (of.last) {
    return;
  }
  if (of.late_until && due_of(sort) > *of.late_until) {
    of.last = last_sort_key(priority_of(sort), *of.late_until);
    return;
  }
  ++of.counted;
  if (of.counted >= places && reach_.fresh && !of.late_until) {
    of.late_until = due_of(sort) + kLate;
  }
  if (of.counted >= places + (reach_.fresh ? late_ones : 0)) {
    of.last = sort;
  }
}

// What was moved to the front has come there at any time, and so takes nobody's place.
void Inheritance::saw(const std::string& sort, const std::string& group) {
  if (!any() || sort <= counted_to_ || due_of(sort) < kFrontEnd) {
    return;
  }
  counted_to_ = sort;
  if (due_of(sort) <= until_) {
    count(all_, sort, reach_.places, kLateOnes);
  }
  if (due_of(sort) > until_ || (all_.last && sort > *all_.last)) {
    read_ = true;
  } else if (!group.empty()) {
    count(groups_[group], sort, reach_.in_group, kLateInGroup);
  }
}

bool Inheritance::concerns(const Candidate& candidate) const {
  const std::string& sort = candidate.place.sort;
  if (!any() || std::max(candidate.due, candidate.not_before.value_or(WallTime{})) > until_) {
    return false;
  }
  if (all_.last && sort > *all_.last) {
    return false;
  }
  const auto group = groups_.find(candidate.group);
  return group == groups_.end() || !group->second.last || sort <= *group->second.last;
}

}  // namespace sluice::queue::leased
