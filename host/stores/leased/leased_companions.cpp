#include <algorithm>
#include <set>

#include "host/stores/leased/leased_writer.hpp"
#include "host/stores/leased/leased_writes.hpp"

// Where a writer's messages lie that nobody remembers, and what goes with those that are gone.
namespace sluice::queue::leased {

// Whoever has lost sight of where a message lies finds it by its id. One with another version is another's by now.
void LeasedWriter::look_up(std::span<const Receipt* const> receipts, std::span<std::optional<Held>> held,
                           std::vector<std::optional<SettleResult>>& known, Deadline deadline) {
  std::set<std::string> ids;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if (!held[i]) {
      ids.insert(receipts[i]->id);
      places.push_back(i);
    }
  }
  if (ids.empty()) {
    return;
  }
  const auto found = find_records(parts_.client, place_, ids, deadline);
  for (const std::size_t i : places) {
    if (!found) {
      known[i] = SettleResult{SettleStatus::failed, store_error(place_, found.error())};
      continue;
    }
    const auto one = found->find(receipts[i]->id);
    if (one == found->end() || !one->second.there()) {
      // An earlier try whose answer was lost may be what took it away.
      const auto doubts = state_.doubts.about(*receipts[i]);
      const bool own = std::any_of(doubts.begin(), doubts.end(),
                                   [](const auto& doubt) { return doubt.action == CompletionAction::remove; });
      known[i] = SettleResult{own ? SettleStatus::applied : SettleStatus::lost, {}};
    } else if (Held standing = Held::of(one->second);
               parse_partition(standing.place.partition).value_or(Partition{}).half != half_ ||
               !may_be_at(*receipts[i], standing.place)) {
      known[i] = SettleResult{SettleStatus::lost, {}};  // it has moved since, or was sent again under a free id
    } else {
      held[i] = std::move(standing);
      held[i]->version = receipts[i]->version;  // by which it is fenced, whatever the record has become
    }
  }
}

// An alias that leads nowhere does no harm: whoever sends with its id again overwrites it.
void LeasedWriter::drop_companions(std::span<const Completion> completions, std::span<const std::optional<Held>> held,
                                   std::span<const std::optional<SettleResult>> results, Deadline deadline) {
  std::vector<table::RecordWrite> removals;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    const bool gone = completions[i].action == CompletionAction::remove && is_plain(completions[i]) && results[i] &&
                      results[i]->status == SettleStatus::applied;
    if (gone && held[i] && held[i]->aliased) {
      removals.push_back(remove_alias(place_.table, place_.queue, completions[i].receipt.id, held[i]->place));
    }
    if (gone && held[i] && !held[i]->held_group.empty()) {
      const auto partition = parse_partition(held[i]->place.partition).value_or(Partition{});
      removals.push_back(
          remove_hold(place_.table, place_.queue, partition.shard, held[i]->held_group, completions[i].receipt.id));
    }
  }
  if (!removals.empty()) {
    parts_.runner.run(std::move(removals), table::Repetition::until_known, deadline);
  }
}

}  // namespace sluice::queue::leased
