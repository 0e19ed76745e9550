#include "host/fleet/audit.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/utf8.hpp"
#include "host/fleet/notice_json.hpp"
#include "host/fleet/revise_notice.hpp"

namespace sluice::fleet {
namespace {

using queue::NoticeBoard;
using queue::Topic;

constexpr std::array<std::string_view, 3> kDeedStates{"done", "begun", "stopped"};
constexpr std::string_view kCut = "…";

}  // namespace

bool read_into(JsonReader& json, DeedState& state) { return read_word(json, kDeedStates, state); }

template <Described<AuditEntry> Record, typename Visit>
void describe(Record& entry, Visit visit) {
  visit("id", entry.id);
  visit("at", entry.at);
  visit("who", entry.who);
  visit("what", entry.what);
  visit("queue", entry.queue);
  visit("to", entry.to);
  visit("filter", entry.filter);
  visit("reason", entry.reason);
  visit("state", entry.state);
  visit("ended_at", entry.ended_at);
  visit("changed", entry.changed);
  visit("skipped", entry.skipped);
  visit("failed", entry.failed);
  visit("stopped_by", entry.stopped_by);
}

namespace {

struct Chapter {
  std::int64_t number = 0;
  std::vector<AuditEntry> entries;
};

template <Described<Chapter> Record, typename Visit>
void describe(Record& chapter, Visit visit) {
  visit("chapter", chapter.number);
  visit("entries", chapter.entries);
}

Result<Chapter> read_chapter(const std::string& text) {
  return text.empty() ? Chapter() : read_described<Chapter>(text, "the audit");
}

std::string key_of(std::int64_t chapter) { return std::to_string(chapter % kChapters); }

/// Puts the newest chapter, as it stands, in the place of the oldest one. ErrorCode::conflict where somebody has put a
/// longer copy of it there, or a later one, meanwhile: it does not stand so any more.
Result<void> keep(NoticeBoard& board, const Chapter& newest, const std::string& text, Deadline deadline) {
  SLUICE_TRY(oldest, board.read(Topic::audit, key_of(newest.number), deadline));
  if (oldest->text == text) {
    return {};
  }
  const auto there = read_chapter(oldest->text);
  const auto stand = [](const Chapter& chapter) { return std::pair(chapter.number, chapter.entries.size()); };
  if (there && stand(*there) > stand(newest)) {
    return Error(ErrorCode::conflict, "the audit in " + board.traits().place + " has changed meanwhile; read it again");
  }
  oldest->text = text;
  SLUICE_PASS_ON(board.post(Topic::audit, *oldest, deadline));
  return {};
}

/// When it was last written.
WallTime noted_at(const AuditEntry& entry) { return entry.ended_at.value_or(entry.at); }

void add(const AuditEntry& deed, std::vector<AuditEntry>& entries) {
  if (auto* const same = find_where(entries, [&deed](const AuditEntry& entry) { return entry.id == deed.id; })) {
    *same = deed;
  } else {
    entries.push_back(deed);
  }
}

}  // namespace

std::string_view to_string(DeedState state) { return kDeedStates.at(static_cast<std::size_t>(state)); }

bool AuditQuery::names_it(const AuditEntry& entry) const {
  return names.empty() || std::any_of(names.begin(), names.end(), [&entry](const std::string& name) {
           return name == entry.queue || name == entry.to;
         });
}

bool AuditQuery::wants(const AuditEntry& entry) const {
  return names_it(entry) && (!since || entry.state == DeedState::begun || noted_at(entry) >= *since);
}

std::vector<AuditEntry> merge_audits(std::vector<AuditEntry> entries, const AuditQuery& query) {
  std::map<std::string, AuditEntry> by_id;
  for (AuditEntry& entry : entries) {
    const auto [known, is_new] = by_id.try_emplace(entry.id, entry);
    if (is_new) {
      continue;
    }
    AuditEntry& kept = known->second;
    const bool elsewhere = (", " + kept.place + ",").find(", " + entry.place + ",") == std::string::npos;
    std::string places = kept.place + (elsewhere ? ", " + entry.place : std::string());
    const WallTime began = std::min(kept.at, entry.at);
    if (kept.state == DeedState::begun) {
      kept = std::move(entry);
    }
    kept.at = began;
    kept.place = std::move(places);
  }
  auto merged = mapped(by_id, [](auto& one) { return std::move(one.second); });
  std::erase_if(merged, [&query](const AuditEntry& entry) { return !query.wants(entry); });
  std::stable_sort(merged.begin(), merged.end(), [](const AuditEntry& a, const AuditEntry& b) { return a.at > b.at; });
  return merged;
}

Result<void> note_deed(NoticeBoard& board, AuditEntry deed, Deadline deadline) {
  deed.at = deed.at == WallTime{} ? board.now() : deed.at;
  for (std::string* const typed : {&deed.filter, &deed.reason, &deed.stopped_by}) {
    if (typed->size() > kMostTyped) {
      *typed = std::string(cut_utf8(*typed, kMostTyped - kCut.size())).append(kCut);
    }
  }
  const auto written = [&](const std::string& text) -> Result<std::optional<std::string>> {
    const auto read = read_chapter(text);
    const Chapter newest = read ? *read : Chapter();
    Chapter chapter = newest;
    add(deed, chapter.entries);
    std::string revised = write_described(chapter);
    if (revised.size() > kChapterBytes && !text.empty()) {
      SLUICE_PASS_ON(keep(board, newest, text, deadline));
      revised = write_described(Chapter{newest.number + 1, {deed}});
    }
    return revised == text ? std::optional<std::string>() : std::optional(std::move(revised));
  };
  SLUICE_PASS_ON(revise_notice(board, Topic::audit, written, deadline));
  return {};
}

Result<AuditView> read_deeds(NoticeBoard& board, const AuditQuery& query, Deadline deadline) {
  SLUICE_TRY(newest, board.list(Topic::audit, deadline));
  if (newest->empty()) {
    return AuditView();
  }
  AuditView view;
  std::set<std::string> seen;
  std::size_t wanted = 0;
  SLUICE_TRY(chapter, read_chapter(newest->front().text));
  while (true) {
    bool all_older = query.since.has_value();
    WallTime oldest = board.now();
    for (AuditEntry& entry : chapter->entries) {
      all_older = all_older && noted_at(entry) < *query.since;
      oldest = std::min(oldest, noted_at(entry));
      entry.place = board.traits().place;
      // A deed that ended in a later chapter stands there as it ended.
      if (seen.insert(entry.id).second && query.names_it(entry)) {
        wanted += query.wants(entry) ? 1 : 0;
        view.deeds.push_back(std::move(entry));
      }
    }
    const std::int64_t before = chapter->number - 1;
    if (wanted >= query.limit || all_older || before < 0) {
      break;
    }
    SLUICE_TRY(notice, board.read(Topic::audit, key_of(before), deadline));
    SLUICE_TRY(older, read_chapter(notice->text));
    if (notice->version == 0 || older->number != before) {
      view.kept_since = oldest;
      break;
    }
    *chapter = std::move(*older);
  }
  return view;
}

}  // namespace sluice::fleet
