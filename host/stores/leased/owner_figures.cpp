#include "host/stores/leased/owner_figures.hpp"

#include <algorithm>

#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

/// What one host says of a half, and how old that is.
struct Word {
  OwnerFigures figures;
  Duration age{};
};

std::optional<Word> word_of(const dynamo::Item& heartbeat, const std::string& half, WallTime now, const OwnWord* own) {
  const auto* all = dynamo::find<dynamo::Map>(heartbeat, attribute::kFigures);
  const auto* figures = all == nullptr ? nullptr : dynamo::find<dynamo::Map>(*all, half);
  const auto written_at = time_of(heartbeat, attribute::kUpdated);
  const bool* leaving = dynamo::find<bool>(heartbeat, attribute::kLeaving);
  const auto* moves = dynamo::find<dynamo::StringSet>(heartbeat, attribute::kMoves);
  if (figures == nullptr || !written_at || (leaving != nullptr && *leaving) ||
      (moves != nullptr && std::find(moves->values.begin(), moves->values.end(), half) != moves->values.end())) {
    return std::nullopt;
  }
  if (own != nullptr && Place::of(heartbeat).sort == own->host) {
    return Word{own->figures, Duration::zero()};
  }
  // One of a clock that is farther ahead than that would be young for ever, also once its host is dead.
  const Duration ago = now - *written_at;
  const Duration lease = std::chrono::milliseconds(dynamo::whole_number(heartbeat, attribute::kLease).value_or(0));
  if (ago > lease || ago < -lease) {
    return std::nullopt;
  }
  const Duration age = std::max(ago, Duration::zero());
  return Word{decode_figures(*figures), age};
}

std::vector<Word> words_of(std::span<const dynamo::Item> heartbeats, const QueueAddress& address, WallTime now,
                           const OwnWords& own) {
  const std::string half = half_name(address.queue, address.half);
  const auto mine = own.find(address.half);
  std::vector<Word> words;
  for (const dynamo::Item& heartbeat : heartbeats) {
    auto word = word_of(heartbeat, half, now, mine == own.end() ? nullptr : &mine->second);
    if (word && word->figures.shards > 0) {
      words.push_back(*word);
    }
  }
  return words;
}

void add_age(QueueStats& sum, Duration age) { sum.age = std::max(sum.age.value_or(Duration::zero()), age); }

void add(Announced& sum, const Word& word) {
  const OwnerFigures& figures = word.figures;
  QueueStats& stats = sum.stats;
  stats.ready += figures.ready;
  stats.delayed += figures.delayed;
  stats.in_flight += figures.in_flight;
  if (figures.oldest_due) {
    stats.oldest_ready = std::min(stats.oldest_ready.value_or(*figures.oldest_due), *figures.oldest_due);
  }
  stats.at_least = stats.at_least || figures.unread > 0;
  sum.held += figures.shards;
  add_age(stats, word.age + figures.looked_ago);
}

void add_dead(Announced& sum, const Word& word) {
  const DeadFigures& dead = word.figures.dead;
  sum.stats.ready += dead.records;
  sum.stats.at_least = sum.stats.at_least || dead.more > 0;
  sum.held += dead.shards;
  add_age(sum.stats, word.age + dead.looked_ago);
}

}  // namespace

std::optional<Announced> announced_stats(std::span<const dynamo::Item> heartbeats, const QueueAddress& address,
                                         WallTime now, const OwnWords& own) {
  auto words = words_of(heartbeats, address, now, own);
  const bool by_standard = words.empty() && address.half == Half::dlq;
  if (by_standard) {
    words = words_of(heartbeats, {address.queue, Half::standard}, now, own);
  }
  Announced sum;
  for (const Word& word : words) {
    by_standard ? add_dead(sum, word) : add(sum, word);
    sum.in_use = std::max(sum.in_use, word.figures.in_use);
  }
  // Hosts of an older version say nothing of dead letters.
  const bool any = by_standard ? sum.in_use > 0 : !words.empty();
  return any ? std::optional(sum) : std::nullopt;
}

}  // namespace sluice::queue::leased
