#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/stores/leased/in_flight_bound.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {

/// What of one priority of a shard owners before may have had at work when they died: everything up to the key that
/// lies as far behind the head as they had announced. It is known once so much has been read. Not thread-safe.
class OrphanedRange {
 public:
  OrphanedRange() = default;
  /// It was taken at `until`: what was not due by then was at work nowhere.
  OrphanedRange(InFlightBound bound, WallTime until) : bound_(bound), until_(until) {}

  /// A message has been read. Those of a priority are read in the order of their keys; one that is read again says
  /// nothing new.
  void saw(const std::string& sort);
  /// Nothing is left of it to be read.
  void read_to_end() { read_ = true; }
  bool is_read() const { return read_; }
  /// That message may be concerned.
  bool concerns(const Candidate& candidate) const;

  bool any() const { return bound_ > 0; }
  WallTime until() const { return until_; }
  /// So many at most that it may concern have not been read yet.
  InFlightBound unread() const { return read_ ? 0 : bound_ - counted_; }

 private:
  InFlightBound bound_ = 0;
  WallTime until_{};
  bool read_ = false;
  InFlightBound counted_ = 0;
  std::string counted_to_;  ///< once it is read: the last key that is concerned, unless what follows was not due
};

}  // namespace sluice::queue::leased
