#include "host/runtime/empty_check.hpp"

#include <algorithm>
#include <utility>

namespace sluice::runtime {

namespace {

constexpr Duration kStatsTimeout = std::chrono::seconds(20);

}  // namespace

bool EmptyCheck::empty(const std::vector<queue::QueueAddress>& addresses) {
  for (const bool consistent : {false, true}) {
    const bool all = std::all_of(addresses.begin(), addresses.end(), [this, consistent](const auto& address) {
      return empty(address, consistent);
    });
    if (!all) {
      return false;
    }
  }
  return true;
}

bool EmptyCheck::empty(const queue::QueueAddress& address, bool consistent) {
  auto& opened = operators_[address.queue];
  if (!opened) {
    auto again = queues_.open_operator(address.queue);
    if (!again) {
      return false;
    }
    opened = std::move(*again);
  }
  const auto stats =
      opened->stats({.type = address.type, .consistent = consistent}, Deadline::after(clock_, kStatsTimeout));
  return stats && stats->ready == 0 && stats->in_flight == 0;
}

}  // namespace sluice::runtime
