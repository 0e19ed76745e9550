#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <vector>

namespace sluice {

/// The first element that is so; null: none is. It points into the range.
template <typename Range, typename Predicate>
auto* find_where(Range& range, Predicate is_so) {
  const auto found = std::find_if(std::begin(range), std::end(range), is_so);
  return found == std::end(range) ? nullptr : &*found;
}

/// Whether one of the elements is this value.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

/// What `make` makes of each element, in order: `mapped(jobs, &JobConfig::name)`.
template <typename Range, typename Make>
auto mapped(Range&& range, Make make) {
  std::vector<std::decay_t<decltype(std::invoke(make, *std::begin(range)))>> made;
  made.reserve(std::size(range));
  for (auto&& element : range) {
    made.push_back(std::invoke(make, element));
  }
  return made;
}

}  // namespace sluice
