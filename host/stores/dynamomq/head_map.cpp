#include "host/stores/dynamomq/head_map.hpp"

#include <algorithm>

namespace sluice::queue::dynamomq {
namespace {

constexpr double kUnreadUnits = 25;  // a guess at what nobody has read

void sooner(std::optional<WallTime>& due, std::optional<WallTime> other) {
  if (other) {
    due = due ? std::min(*due, *other) : other;
  }
}

}  // namespace

void HeadMap::clear() {
  stretches_.clear();
  units_ = 0;
}

void HeadMap::append(const Stretch& stretch, bool again) {
  if (!stretches_.empty() && stretch.to <= stretches_.rbegin()->first) {
    Known& known = stretches_.lower_bound(stretch.to)->second;
    sooner(known.due, stretch.due);
    known.units += again ? 0 : stretch.units;
    units_ += again ? 0 : stretch.units;
    return;
  }
  units_ += stretch.units;
  // Where nothing is held, nothing is to be looked for: one stretch says so as well as many.
  if (!stretches_.empty() && stretch.units == 0 && !stretch.due) {
    if (const auto last = std::prev(stretches_.end()); last->second.units == 0 && !last->second.due) {
      stretches_.erase(last);
    }
  }
  stretches_.emplace_hint(stretches_.end(), stretch.to, Known{stretch.units, stretch.due, {}});
}

void HeadMap::append_unread(const std::string& to) { append({to, kUnreadUnits, WallTime{}}, false); }

void HeadMap::replace(const Place& place, const std::vector<Stretch>& found, const dynamo::Item& rest, WallTime now) {
  const auto read = stretches_.find(place.to);
  if (read == stretches_.end()) {
    return;  // the map was made anew meanwhile
  }
  const Known before = read->second;
  units_ -= before.units;
  stretches_.erase(read);
  for (const Stretch& stretch : found) {
    const bool last = rest.empty() && &stretch == &found.back();
    // To the last one belongs all that is left of the place, so that there is no gap.
    units_ += stretch.units;
    Known& known = stretches_[last ? place.to : stretch.to];
    known.units += stretch.units;
    sooner(known.due, stretch.due);
  }
  if (!rest.empty()) {
    Known& left = stretches_[place.to];
    units_ += before.units;
    left.units += before.units;
    left.after = rest;
    sooner(left.due, now - std::chrono::seconds(1));
  }
}

void HeadMap::expect(std::string_view sort_key, WallTime due) {
  if (const auto stretch = stretches_.lower_bound(sort_key); stretch != stretches_.end()) {
    sooner(stretch->second.due, due);
  }
}

void HeadMap::expect_anywhere(WallTime due) {
  for (auto& [to, known] : stretches_) {
    sooner(known.due, due);
  }
}

HeadMap::Place HeadMap::place_of(Stretches::const_iterator stretch) const {
  return {stretch == stretches_.begin() ? std::string() : std::prev(stretch)->first, stretch->first,
          stretch->second.after};
}

std::optional<WallTime> HeadMap::first_due() const {
  std::optional<WallTime> first;
  for (const auto& [to, known] : stretches_) {
    sooner(first, known.due);
  }
  return first;
}

std::optional<HeadMap::Place> HeadMap::due(WallTime now) const {
  auto longest = stretches_.end();
  for (auto stretch = stretches_.begin(); stretch != stretches_.end(); ++stretch) {
    const auto& due = stretch->second.due;
    if (due && *due < now && (longest == stretches_.end() || *due < *longest->second.due)) {
      longest = stretch;
    }
  }
  return longest == stretches_.end() ? std::nullopt : std::optional(place_of(longest));
}

std::optional<HeadMap::Place> HeadMap::behind(const std::string& key) const {
  if (stretches_.empty()) {
    return std::nullopt;
  }
  const auto next = stretches_.upper_bound(key);
  return place_of(next == stretches_.end() ? stretches_.begin() : next);
}

double ReadPurse::held(SteadyTime now) const {
  if (at_ == SteadyTime::min()) {
    return units_;
  }
  return std::min(most_, units_ + per_second_ * std::chrono::duration<double>(now - at_).count());
}

Duration ReadPurse::wait(SteadyTime now) const {
  const double missing = -held(now);
  return missing < 0 ? Duration::zero()
                     : std::chrono::duration_cast<Duration>(std::chrono::duration<double>(missing / per_second_)) +
                           std::chrono::milliseconds(1);
}

void ReadPurse::spend(double units, SteadyTime now) {
  units_ = held(now) - units;
  at_ = now;
}

}  // namespace sluice::queue::dynamomq
