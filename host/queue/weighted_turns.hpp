#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sluice::queue {

/// Whose turn is next among those that wait, so that each has as many as its weight says and none starves: each one
/// that waits gains its weight, who has most credit is next and pays what all of them gained. Nothing when none waits.
/// `weight` and `waits` are asked by index.
template <typename Weight, typename Waits>
std::optional<std::size_t> next_turn(std::span<std::int64_t> credits, Weight weight, Waits waits) {
  std::int64_t gained = 0;
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < credits.size(); ++i) {
    if (!waits(i)) {
      continue;
    }
    credits[i] += weight(i);
    gained += weight(i);
    if (!next || credits[i] > credits[*next]) {
      next = i;
    }
  }
  if (next) {
    credits[*next] -= gained;
  }
  return next;
}

}  // namespace sluice::queue
