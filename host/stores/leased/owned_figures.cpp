// What an OwnedHalf tells of its shards, and how it learns what lies there aside.

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/leased/owned_half.hpp"

namespace sluice::queue::leased {

// What was read is told. A shard in which there may be more is one of those that hold at least so much.
OwnerFigures OwnedHalf::figures(SteadyTime now) const {
  const MutexLock lock(mutex_);
  OwnerFigures figures;
  figures.in_flight = book_.out();
  figures.delayed = book_.timers();
  figures.ready = book_.size() - book_.out() - book_.timers();
  figures.oldest_due = book_.oldest_due();
  figures.shards = static_cast<std::uint32_t>(shards_.size());
  figures.in_use = count_;
  for (const auto& [number, shard] : shards_) {
    if (const auto later = shard.reader.later(now); later && !book_.dropped_any(number)) {
      figures.delayed += later->records;
      figures.looked_ago = std::max(figures.looked_ago, later->seen_ago);
    } else {
      ++figures.unread;
      figures.ready += shard.reader.behind() ? 1U : 0U;
    }
  }
  dead_letters_.add_to(figures, now);
  return figures;
}

void OwnedHalf::count_dead_letters(Deadline deadline) {
  std::vector<DeadLetterCount::Look> looks;
  const SteadyTime began = machine_.steady_now();
  {
    const MutexLock lock(mutex_);
    if (counting_ || address().half != Half::standard) {
      return;
    }
    looks = dead_letters_.next(began);
    counting_ = !looks.empty();
  }
  if (looks.empty()) {
    return;
  }
  std::vector<dynamo::QueryRequest> queries;
  std::transform(looks.begin(), looks.end(), std::back_inserter(queries),
                 [](const DeadLetterCount::Look& look) { return look.query; });
  auto pages = parts_.client.query_each(queries, deadline);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    dead_letters_.done(looks[i], pages[i] ? std::optional(std::move(*pages[i])) : std::nullopt, began);
  }
  counting_ = false;
}

}  // namespace sluice::queue::leased
