// How deliveries of an OwnedHalf come to their end.

#include <algorithm>
#include <utility>

#include "host/stores/leased/owned_half.hpp"

namespace sluice::queue::leased {
namespace {

// Whatever has become of the shard since: who has done a message may take it away, as long as it is as it was.
bool is_plain_ack(const Completion& completion) {
  return completion.action == CompletionAction::remove && !completion.effects;
}

}  // namespace

bool OwnedHalf::knows(const Receipt& receipt) const {
  const MutexLock lock(mutex_);
  return outs_.contains(receipt.locator);
}

std::vector<SettleResult> OwnedHalf::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size(), {SettleStatus::lost, {}});
  std::vector<Completion> wanted;
  std::vector<std::optional<Held>> held;
  std::vector<std::size_t> places;
  const bool holds = coordinator_.holds();
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const auto out = outs_.find(completions[i].receipt.locator);
      if (out == outs_.end() || out->second.id != completions[i].receipt.id) {
        continue;
      }
      if ((holds && !out->second.lost) || is_plain_ack(completions[i])) {
        wanted.push_back(completions[i]);
        held.emplace_back(out->second.held);
        places.push_back(i);
      }
    }
  }
  if (wanted.empty()) {
    return results;
  }
  auto made = writer_.settle(wanted, held, deadline);
  const table::Moment now = parts_.now();
  bool handed_over = false;
  {
    const MutexLock lock(mutex_);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ended(wanted[k].receipt.locator, wanted[k], made[k], now);
      results[places[k]] = std::move(made[k]);
    }
    handed_over = std::any_of(shards_.begin(), shards_.end(), [this](const auto& shard) SLUICE_REQUIRES(mutex_) {
      return shard.second.closing && book_.out_of(shard.first) == 0;
    });
  }
  if (handed_over) {
    coordinator_.nudge();
  }
  return results;
}

void OwnedHalf::ended(std::int64_t locator, const Completion& completion, const SettleResult& result,
                      table::Moment now) {
  const auto found = outs_.find(locator);
  if (found == outs_.end()) {
    return;
  }
  const bool holds_group =
      completion.action == CompletionAction::dead_letter && completion.hold_group && !found->second.group.empty();
  if (result.status == SettleStatus::failed || result.status == SettleStatus::refused) {
    found->second.may_be_held = found->second.may_be_held || holds_group;
    return;
  }
  const Out out = std::move(found->second);
  outs_.erase(found);
  if (result.status == SettleStatus::lost) {
    if (!out.lost) {
      book_.returned(out.spot, {.kind = Return::Kind::unknown, .version = out.held.version}, now.wall, now.steady);
    }
    // It may be a dead letter by now, for which its group waits.
    if (const auto shard = shards_.find(out.spot.first); shard != shards_.end()) {
      shard->second.holds_read = false;
    }
    return;
  }
  const Return what = return_of(out, completion, now);
  if (completion.action == CompletionAction::dead_letter) {
    dead_letters_.dead_letter(out.spot.first, now.steady);
  }
  if (const auto shard = shards_.find(out.spot.first); shard != shards_.end()) {
    if (holds_group) {
      shard->second.holds.insert(out.group);
      book_.hold(out.spot.first, shard->second.holds, now.wall);
    } else if (out.may_be_held) {
      shard->second.holds_read = false;
      book_.doubt_holds(out.spot.first);
    }
  }
  if (!out.lost || what.kind == Return::Kind::gone) {
    book_.returned(out.spot, what, now.wall, now.steady);
  }
}

Return OwnedHalf::return_of(const Out& out, const Completion& completion, table::Moment now) const {
  const bool back = completion.action == CompletionAction::retry || completion.action == CompletionAction::release;
  if (!back) {
    // In the DLQ a dead letter stays, under a key that has to be read.
    const bool stays = completion.action == CompletionAction::dead_letter && address().half == Half::dlq;
    return {.kind = stays ? Return::Kind::unknown : Return::Kind::gone, .version = out.held.version};
  }
  core::StateChange change = end_of(completion, out.held, now.wall);
  if (change.failure && out.failure) {
    change.failure = core::with_earlier(std::move(*change.failure), *out.failure);
  }
  return {.kind = Return::Kind::back,
          .version = out.held.version + 1,
          .not_before = change.hidden_until.value_or(std::nullopt),
          .receive_count = change.receives.value_or(out.held.receive_count),
          .suspect = change.suspect.value_or(false),
          .failure = change.failure ? std::optional(table::encode_failure(*change.failure)) : std::nullopt};
}

std::vector<ExtendResult> OwnedHalf::extend(std::span<const Receipt> receipts) {
  std::vector<ExtendResult> results(receipts.size());
  const bool holds = coordinator_.holds();
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const auto out = outs_.find(receipts[i].locator);
    const bool mine = holds && out != outs_.end() && !out->second.lost;
    results[i].status = mine ? SettleStatus::applied : SettleStatus::lost;
    results[i].receipt = receipts[i];
    results[i].leased_until = SteadyTime::max();
  }
  return results;
}

}  // namespace sluice::queue::leased
