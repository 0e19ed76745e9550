#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Counts what is in flight, where a queue has a limit of it. Works inside a transaction of its connection.
class InFlight {
 public:
  explicit InFlight(Connection& connection);

  /// How many more may be claimed at `now`; reads as many entries of an index as are in flight, `limit` at most.
  std::uint64_t room(std::int64_t half, std::uint64_t limit, WallTime now);

 private:
  Statement count_;
};

}  // namespace sluice::queue::sqlite
