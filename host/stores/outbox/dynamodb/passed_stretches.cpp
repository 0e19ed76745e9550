#include "host/stores/outbox/dynamodb/passed_stretches.hpp"

#include <algorithm>
#include <iterator>

namespace sluice::queue::outbox {
namespace {

// A row that is committed so long after one of a higher id is found when the stretch is looked at again.
constexpr Duration kLate = std::chrono::minutes(1);
constexpr Duration kLookAgain = std::chrono::minutes(1);
constexpr Duration kForget = std::chrono::minutes(10);

}  // namespace

std::int64_t PassedStretches::skip(const std::string& partition, std::int64_t after, std::span<const Group> without,
                                   SteadyTime now) {
  auto& known = stretches_[partition];
  std::erase_if(known, [now](const auto& one) { return now - one.second.read > kForget; });
  for (const auto& [begin, stretch] : known) {
    if (begin <= after && after < stretch.last && now - stretch.found >= kLate && now - stretch.read < kLookAgain &&
        std::includes(without.begin(), without.end(), stretch.groups.begin(), stretch.groups.end())) {
      after = stretch.last;
    }
  }
  return after;
}

void PassedStretches::add(const std::string& partition, std::int64_t after, std::int64_t last,
                          const std::set<Group>& groups, SteadyTime now) {
  auto& known = stretches_[partition];
  while (after < last) {
    const auto next = known.upper_bound(after);
    const auto at = next == known.begin() ? known.end() : std::prev(next);
    if (at == known.end() || at->second.last <= after) {
      const std::int64_t end = next == known.end() ? last : std::min(last, next->first);
      known.insert_or_assign(after, Stretch{end, now, now, groups});
      after = end;
      continue;
    }
    if (at->first == after) {
      at->second.last = std::min(at->second.last, last);
      at->second.read = now;
      at->second.groups = groups;
    }
    after = at->second.last;
  }
}

}  // namespace sluice::queue::outbox
