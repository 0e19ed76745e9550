#include "host/stores/leased/owner_figures.hpp"

#include <algorithm>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

const dynamo::Item* figures_of(const dynamo::Item& heartbeat, const std::string& half) {
  const auto* all = dynamo::find<dynamo::Map>(heartbeat, attribute::kFigures);
  return all == nullptr ? nullptr : dynamo::find<dynamo::Map>(*all, half);
}

void add(QueueStats& sum, const OwnerFigures& figures, Duration age) {
  sum.ready += figures.ready;
  sum.delayed += figures.delayed;
  sum.in_flight += figures.in_flight;
  if (figures.oldest_due) {
    sum.oldest_ready = sum.oldest_ready ? std::min(*sum.oldest_ready, *figures.oldest_due) : *figures.oldest_due;
  }
  sum.age = std::max(sum.age.value_or(Duration::zero()), age);
}

}  // namespace

std::optional<QueueStats> announced_stats(std::span<const dynamo::Item> heartbeats, const std::string& half,
                                          std::uint32_t shards, WallTime now, const std::optional<OwnWord>& own) {
  QueueStats sum;
  std::uint64_t held = 0;
  for (const dynamo::Item& heartbeat : heartbeats) {
    const dynamo::Item* figures = figures_of(heartbeat, half);
    const auto written_at = time_of(heartbeat, attribute::kUpdated);
    const bool* leaving = dynamo::find<bool>(heartbeat, attribute::kLeaving);
    if (figures == nullptr || !written_at || (leaving != nullptr && *leaving)) {
      continue;
    }
    const Duration age = std::max(now - *written_at, Duration::zero());
    const Duration lease = std::chrono::milliseconds(dynamo::whole_number(heartbeat, attribute::kLease).value_or(0));
    if (age > lease) {
      continue;
    }
    const bool mine = own && Place::of(heartbeat).sort == own->host;
    const OwnerFigures known = mine ? own->figures : decode_figures(*figures);
    if (known.unread > 0) {
      return std::nullopt;
    }
    held += known.shards;
    add(sum, known, mine ? Duration::zero() : age);
  }
  return held == shards && sum.age ? std::optional(sum) : std::nullopt;
}

std::uint32_t shards_in_use(const Shards& shards, const std::map<std::uint32_t, OwnershipRow>& rows) {
  std::uint32_t in_use = shards.count;
  for (std::uint32_t shard = shards.count; shard < shards.most_ever; ++shard) {
    const auto row = rows.find(shard);
    in_use += row != rows.end() && row->second.drained ? 0U : 1U;
  }
  return in_use;
}

}  // namespace sluice::queue::leased
