#include "host/stores/dynamomq/ringers.hpp"

#include <utility>

#include "host/stores/dynamomq/dynamomq_wake_place.hpp"

namespace sluice::queue::dynamomq {

Ringers::Ringers(const StoreParts& parts, std::optional<wake::RingerOptions> options, Random& random)
    : parts_(parts), options_(std::move(options)), random_(random) {}

void Ringers::rang(const QueueTable& place, Half half) {
  if (wake::Ringer* const ringer = of(place)) {
    ringer->rang(wake::bell_name(place.table, half));
  }
}

wake::Ringer* Ringers::of(const QueueTable& place) {
  if (!options_) {
    return nullptr;
  }
  const MutexLock lock(mutex_);
  auto& ringer = by_table_[place.table];
  if (!ringer) {
    ringer =
        std::make_unique<wake::Ringer>([this, place](Deadline deadline) { return read_bells(parts_, place, deadline); },
                                       *options_, parts_.clock, random_);
  }
  return ringer.get();
}

}  // namespace sluice::queue::dynamomq
