#include "host/stores/leased/owner_figures.hpp"

#include <algorithm>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

std::uint64_t figure(const dynamo::Item& figures, std::string_view name) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(dynamo::whole_number(figures, name).value_or(0), 0));
}

const dynamo::Item* figures_of(const dynamo::Item& heartbeat, const std::string& half) {
  const auto* all = dynamo::find<dynamo::Map>(heartbeat, attribute::kFigures);
  return all == nullptr ? nullptr : dynamo::find<dynamo::Map>(*all, half);
}

void add(QueueStats& sum, const dynamo::Item& figures, Duration age) {
  sum.ready += figure(figures, attribute::kReadyKnown);
  sum.delayed += figure(figures, attribute::kDelayedKnown);
  sum.in_flight += figure(figures, attribute::kInFlight);
  if (const auto oldest = time_of(figures, attribute::kOldestDue)) {
    sum.oldest_ready = sum.oldest_ready ? std::min(*sum.oldest_ready, *oldest) : *oldest;
  }
  sum.age = std::max(sum.age.value_or(Duration::zero()), age);
}

}  // namespace

std::optional<QueueStats> announced_stats(std::span<const dynamo::Item> heartbeats, const std::string& half,
                                          std::uint32_t shards, WallTime now) {
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
    if (figure(*figures, attribute::kUnread) > 0) {
      return std::nullopt;
    }
    held += figure(*figures, attribute::kShardsHeld);
    add(sum, *figures, age);
  }
  return held == shards && sum.age ? std::optional(sum) : std::nullopt;
}

}  // namespace sluice::queue::leased
