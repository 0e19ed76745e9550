#include "host/fleet/audit.hpp"

#include <algorithm>
#include <utility>

#include "host/fleet/revision.hpp"

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

Result<void> note_deeds(queue::NoticeBoard& board, const std::string& who, const std::vector<std::string>& deeds,
                        Deadline deadline) {
  if (deeds.empty()) {
    return {};
  }
  const WallTime now = board.now();
  const auto done = revise_notice(
      board, queue::Topic::audit,
      [&](const std::string& text) -> Result<std::optional<std::string>> {
        auto before = read_audit(text);
        std::vector<AuditEntry> entries = before ? std::move(*before) : std::vector<AuditEntry>();
        const bool there = std::any_of(entries.begin(), entries.end(), [&](const AuditEntry& entry) {
          return entry.at == now && entry.who == who && entry.what == deeds.front();
        });
        if (there) {
          return std::optional<std::string>();
        }
        for (const std::string& deed : deeds) {
          entries.push_back({.at = now, .who = who, .what = deed, .place = {}});
        }
        return std::optional(write_audit(entries, board.traits().most_bytes));
      },
      deadline);
  return done ? Result<void>() : Result<void>(done.error());
}

}  // namespace sluice::fleet
