#include "host/stores/table/ringers.hpp"

#include <utility>

namespace sluice::queue::table {

Ringers::Ringers(Layout layout, std::optional<wake::RingerOptions> options, const Clock& clock, Random& random)
    : layout_(std::move(layout)), options_(std::move(options)), clock_(clock), random_(random) {}

void Ringers::rang(const QueueTable& place, Half half) {
  if (wake::Ringer* const ringer = of(place)) {
    ringer->rang(layout_.bell(place, half));
  }
}

wake::Ringer* Ringers::of(const QueueTable& place) {
  if (!options_) {
    return nullptr;
  }
  const MutexLock lock(mutex_);
  auto& ringer = by_table_[place.table];
  if (!ringer) {
    ringer = std::make_unique<wake::Ringer>([this, place](Deadline deadline) { return layout_.read(place, deadline); },
                                            *options_, clock_, random_);
  }
  return ringer.get();
}

}  // namespace sluice::queue::table
