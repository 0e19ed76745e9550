#include "host/runtime/empty_check.hpp"

#include <utility>

#include "base/guard.hpp"

namespace sluice::runtime {

namespace {

constexpr Duration kStatsTimeout = std::chrono::seconds(20);

}  // namespace

Result<bool> EmptyCheck::empty(const std::vector<queue::QueueAddress>& addresses) {
  // The cheap look first; it reads an index, which lags behind the table.
  for (const bool consistent : {false, SLUICE_GUARD(index_lag)}) {
    for (const queue::QueueAddress& address : addresses) {
      auto counted = empty(address, consistent);
      if (!counted) {
        return Error(counted.error().code(),
                     "cannot count what is left in queue " + address.queue + ": " + counted.error().message());
      }
      if (!*counted) {
        return false;
      }
    }
  }
  return true;
}

Result<bool> EmptyCheck::empty(const queue::QueueAddress& address, bool consistent) {
  auto& opened = operators_[address.queue];
  if (!opened) {
    SLUICE_TRY(again, queues_.open_operator(address.queue));
    opened = std::move(*again);
  }
  const auto stats =
      opened->stats({.half = address.half, .consistent = consistent}, Deadline::after(clock_, kStatsTimeout));
  SLUICE_PASS_ON(stats);
  return stats->ready == 0 && stats->in_flight == 0;
}

}  // namespace sluice::runtime
