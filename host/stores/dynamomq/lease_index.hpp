#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// What this store itself knows to be invisible: what it claimed, put off or gave back. When such a record comes due it
/// can be claimed again without reading anything, because its version is known. A value; not thread-safe.
///
/// Holds at most kCapacity records; what does not fit is found by the next sweep.
class LeaseIndex {
 public:
  static constexpr std::size_t kCapacity = 20'000;

  /// `record.invisible_until` is when it comes due; none: at once. Replaces what was known of that id.
  /// False when there is no room.
  bool put(Candidate record);
  void erase(const std::string& id);
  const Candidate* find(const std::string& id) const;
  void clear();

  /// Takes out at most `count` records that are due, the longest due first.
  std::vector<Candidate> take_due(WallTime now, std::size_t count);

  /// When the first record comes due; nothing when there is none.
  std::optional<WallTime> first_due() const {
    return by_due_.empty() ? std::nullopt : std::optional(by_due_.begin()->first);
  }

  std::size_t size() const { return records_.size(); }

 private:
  struct Entry {
    Candidate record;
    std::multimap<WallTime, std::string>::iterator place;
  };
  std::unordered_map<std::string, Entry> records_;
  std::multimap<WallTime, std::string> by_due_;
};

}  // namespace sluice::queue::dynamomq
