#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/reach.hpp"

namespace sluice::queue::leased {

/// What of one priority of a shard owners before may have had at work when they died: everything up to the key that
/// lies as far behind the head as they had announced. It is known once so much has been read. Not thread-safe.
class Inheritance {
 public:
  /// What came late lies before what was at work by no more than that,
  static constexpr Duration kLate = std::chrono::seconds(2);
  /// and is no more than so many messages, or so many of a group.
  static constexpr std::uint32_t kLateOnes = 100;
  static constexpr std::uint32_t kLateInGroup = 4;

  Inheritance() = default;
  /// It was taken at `until`: what was not due by then was at work nowhere.
  Inheritance(const Reach& reach, WallTime until) : reach_(reach), until_(until) {}

  /// A message has been read. Those of a priority are read in the order of their keys; one that is read again says
  /// nothing new.
  void saw(const std::string& sort, const std::string& group);
  /// Nothing is left of it to be read.
  void read_to_end() { read_ = true; }
  bool is_read() const { return read_; }
  /// That message may be concerned.
  bool concerns(const Candidate& candidate) const;

  bool any() const { return reach_.places > 0; }
  const Reach& reach() const { return reach_; }
  WallTime until() const { return until_; }
  /// So many at most that it may concern have not been read yet.
  std::uint32_t unread() const { return read_ || all_.counted >= reach_.places ? 0 : reach_.places - all_.counted; }

 private:
  struct Count {
    std::uint32_t counted = 0;
    std::optional<WallTime> late_until{};
    std::optional<std::string> last{};  ///< the last key that is concerned
  };
  void count(Count& of, const std::string& sort, std::uint32_t places, std::uint32_t late_ones) const;

  Reach reach_;
  WallTime until_{};
  bool read_ = false;
  std::string counted_to_;
  Count all_;
  std::map<std::string, Count> groups_;
};

}  // namespace sluice::queue::leased
