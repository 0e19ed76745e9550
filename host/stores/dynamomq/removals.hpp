#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>

#include "base/clock.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// What this store has removed of late: the index may show it for a while yet. A value; not thread-safe.
class Removals {
 public:
  static constexpr Duration kIndexDelay = std::chrono::seconds(3);
  static constexpr std::size_t kCapacity = 8'192;

  void add(const Candidate& record, SteadyTime now);
  /// Whether the index shows a record that is gone, and not a new message of the same id.
  bool shows_removed(const Candidate& record, SteadyTime now) const;

 private:
  struct Removal {
    SteadyTime at{};
    std::string sort_key;
    std::string nonce;
  };

  void purge(SteadyTime now);

  std::unordered_map<std::string, Removal> removals_;
  std::deque<std::string> order_;
};

}  // namespace sluice::queue::dynamomq
