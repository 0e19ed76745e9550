// What an OwnedHalf tells of its shards, and how it learns what lies there unread.

#include <algorithm>
#include <utility>

#include "host/queue/visibility.hpp"
#include "host/stores/leased/owned_half.hpp"

namespace sluice::queue::leased {

// What was dropped from memory lies before the cursors, where no estimate looks.
OwnerFigures OwnedHalf::figures(SteadyTime now) const {
  const MutexLock lock(mutex_);
  OwnerFigures figures;
  figures.in_flight = book_.out();
  figures.delayed = book_.timers();
  figures.ready = book_.size() - book_.out() - book_.timers();
  figures.oldest_due = book_.oldest_due();
  figures.shards = static_cast<std::uint32_t>(shards_.size());
  figures.in_use = count_;
  const table::Moment moment{.wall = parts_.clock.wall_now(), .steady = now};
  for (const auto& [number, shard] : shards_) {
    if (const auto later = shard.reader.later(now)) {
      figures.delayed += *later;
      continue;
    }
    ++figures.unread;
    const bool surveyed = survey_.add_unread(figures, number, shard.reader.cursors(), moment);
    figures.surveyed += surveyed ? 1U : 0U;
    figures.ready += !surveyed && shard.reader.behind() ? 1U : 0U;
  }
  survey_.add_dead(figures, now);
  return figures;
}

void OwnedHalf::survey(Deadline deadline) {
  std::vector<HalfSurvey::Look> looks;
  {
    const MutexLock lock(mutex_);
    if (surveying_) {
      return;
    }
    const table::Moment now = parts_.now();
    for (const auto& [number, shard] : shards_) {
      survey_.knows(number, shard.reader.later(now.steady).has_value(), shard.reader.behind(), now.steady);
    }
    looks = survey_.next(now);
    surveying_ = !looks.empty();
  }
  if (looks.empty()) {
    return;
  }
  std::vector<dynamo::QueryRequest> queries;
  for (HalfSurvey::Look& look : looks) {
    std::move(look.queries.begin(), look.queries.end(), std::back_inserter(queries));
  }
  auto pages = parts_.client.query_each(queries, deadline);
  const SteadyTime now = machine_.steady_now();
  const MutexLock lock(mutex_);
  auto page = pages.begin();
  for (const HalfSurvey::Look& look : looks) {
    std::optional<std::vector<dynamo::Page>> read(std::in_place);
    for (std::size_t i = 0; i < look.orders.size(); ++i, ++page) {
      if (!*page) {
        read.reset();
      } else if (read) {
        read->push_back(std::move(**page));
      }
    }
    survey_.done(look, read, now);
  }
  surveying_ = false;
}

}  // namespace sluice::queue::leased
