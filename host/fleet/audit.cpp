#include "host/fleet/audit.hpp"

#include <algorithm>
#include <utility>

namespace sluice::fleet {
namespace {

// One deed is written to one board after the other, each by the clock of its store.
constexpr Duration kOneDeed = std::chrono::seconds(10);

bool names(const std::string& places, const std::string& place) {
  return (", " + places + ",").find(", " + place + ",") != std::string::npos;
}

}  // namespace

std::vector<AuditEntry> merge_audits(std::vector<AuditEntry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const AuditEntry& a, const AuditEntry& b) { return a.at > b.at; });
  std::vector<AuditEntry> merged;
  for (AuditEntry& entry : entries) {
    const auto same = [&entry](const AuditEntry& later) {
      return later.who == entry.who && later.what == entry.what && later.at - entry.at < kOneDeed &&
             !names(later.place, entry.place);
    };
    // The earliest of those that can be it, so that two of a kind keep their own.
    const auto twin = std::find_if(merged.rbegin(), merged.rend(), same);
    if (twin == merged.rend()) {
      merged.push_back(std::move(entry));
    } else {
      twin->at = entry.at;
      twin->place += ", " + entry.place;
    }
  }
  return merged;
}

}  // namespace sluice::fleet
