#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"
#include "host/queue/source.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/owned/priority_scheduler.hpp"

namespace sluice::queue::leased {

/// A message that was read and may be claimed.
struct DirectCandidate {
  std::uint32_t shard = 0;
  Candidate candidate;
  dynamo::Item item;

  owned::Spot spot() const { return {shard, candidate.place.sort}; }
  core::MessageState state() const { return candidate.state(Half::standard); }
};

/// Decides which of the messages that were read are claimed next: by priority, in turns by group, in order where that
/// is asked for. Remembers nothing of messages, only whose turn it was. Not thread-safe.
class DirectChoice {
 public:
  static constexpr std::size_t kGroupsRemembered = 10'000;

  struct Asked {
    const ClaimRequest& request;
    bool ordered = false;          ///< somebody wants the groups of this half in order
    std::set<std::string> held{};  ///< groups that wait for an operator
    WallTime now{};
  };
  struct Choice {
    std::vector<DirectCandidate*> chosen;  ///< a suspect comes alone
    std::optional<Duration> next_due;      ///< until the next one of those that were read comes due
  };
  Choice choose(std::vector<DirectCandidate>& found, const Asked& asked);

 private:
  struct Line {
    std::vector<DirectCandidate*> waiting;  ///< in their order, the last one first
    bool busy = false;
  };
  std::string line_of(const DirectCandidate& one, const Asked& asked) const;
  void offer(DirectCandidate& one, WallTime at);
  void offer_next(const std::string& name, Line& line, const Asked& asked);

  owned::PriorityScheduler turns_;
  std::map<std::string, WallTime> served_;
  std::deque<std::string> served_order_;
  // Of the choice that is being made.
  std::map<owned::Spot, DirectCandidate*> offered_;
  WallTime last_served_{};
};

}  // namespace sluice::queue::leased
