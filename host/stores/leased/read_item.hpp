#pragma once

#include <memory>
#include <utility>

#include "host/stores/leased/leased_record.hpp"
#include "host/stores/owned/backlog.hpp"

namespace sluice::queue::leased {

/// What this layout keeps of a message in a backlog.
struct ReadItem final : owned::Record {
  explicit ReadItem(dynamo::Item read) : candidate(Candidate::of(read)), item(std::move(read)) {}

  Candidate candidate;  ///< as it was read
  dynamo::Item item;
};

inline owned::Found found_of(std::unique_ptr<ReadItem> read, Half half) {
  constexpr std::size_t kBesideItsValues = 60;  // in a table, about
  const Candidate& candidate = read->candidate;
  return {.sort = candidate.place.sort,
          .due = candidate.due,
          .state = candidate.state(half),
          .version = candidate.version,
          .group = candidate.group,
          .priority = candidate.priority,
          .bytes = kBesideItsValues + table::item_bytes(read->item),
          .record = std::move(read)};
}

inline ReadItem& read_of(const owned::Entry& entry) { return static_cast<ReadItem&>(*entry.record); }

/// As its record says now, which may have been written since it was read.
inline Candidate candidate_of(const owned::Entry& entry) {
  Candidate candidate = read_of(entry).candidate;
  candidate.version = entry.version;
  candidate.not_before = entry.state.hidden_until;
  candidate.received = entry.state.received;
  candidate.receive_count = entry.state.receives;
  candidate.marks = entry.state.marks;
  return candidate;
}

}  // namespace sluice::queue::leased
