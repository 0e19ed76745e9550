#include "host/cost/top_values.hpp"

#include <algorithm>

namespace sluice::cost {
namespace {

// So many are known for each that is shown.
constexpr std::size_t kKnownPerShown = 10;
// By so much a value must be dearer than the cheapest one shown before it takes its place, lest two of a kind change
// places all the time.
constexpr double kAhead = 1.25;

}  // namespace

void TopValues::add(const std::string& value, const Usage& usage, double weight) {
  Entry& entry = entry_of(value);
  entry.rank += weight;
  if (entry.shown || takes_a_place(entry)) {
    entry.usage += usage;
  } else {
    other_ += usage;
  }
}

TopValues::Entry& TopValues::entry_of(const std::string& value) {
  if (const auto known = entries_.find(value); known != entries_.end()) {
    return known->second;
  }
  Entry fresh;
  if (entries_.size() >= shown_ * kKnownPerShown) {
    const auto cheapest = lowest(false);
    fresh.rank = cheapest->second.rank;  // it may have been as dear as this while nobody knew it
    entries_.erase(cheapest);
  }
  return entries_.emplace(value, fresh).first->second;
}

bool TopValues::takes_a_place(Entry& entry) {
  if (shown_now_ < shown_) {
    ++shown_now_;
  } else {
    Entry& cheapest = lowest(true)->second;
    if (entry.rank <= cheapest.rank * kAhead) {
      return false;
    }
    gone_ += cheapest.usage;
    cheapest.usage = {};
    cheapest.shown = false;
  }
  entry.shown = true;
  return true;
}

TopValues::Entries::iterator TopValues::lowest(bool shown) {
  auto found = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.shown == shown && (found == entries_.end() || entry->second.rank < found->second.rank)) {
      found = entry;
    }
  }
  return found;
}

TopValues::View TopValues::view() const {
  View view{{}, other_, gone_};
  std::vector<std::pair<double, Named>> shown;
  for (const auto& [value, entry] : entries_) {
    if (entry.shown) {
      shown.push_back({entry.rank, {value, entry.usage}});
    }
  }
  std::stable_sort(shown.begin(), shown.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [rank, named] : shown) {
    view.values.push_back(std::move(named));
  }
  return view;
}

}  // namespace sluice::cost
