#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "host/queue/stored_message.hpp"

namespace sluice::queue {

/// Groups failures by their fingerprints as it is told of them, for a store's overview. A value; not thread-safe.
class ErrorGroups {
 public:
  /// Most causes that are told apart; what fails for yet other reasons is counted, and left out of the groups.
  static constexpr std::size_t kMost = 10'000;

  /// `now` is what the hours of a group count back from.
  explicit ErrorGroups(WallTime now) : now_(now) {}

  void add(const std::string& id, const Failure& failure);
  /// The most frequent `limit` groups first; among equals the one that failed last. What stands in no group of the list
  /// is counted in `unlisted`.
  std::vector<ErrorGroup> finish(std::size_t limit, std::uint64_t& unlisted) &&;

 private:
  WallTime now_;
  std::unordered_map<std::string, ErrorGroup> groups_;  ///< by folded text
  std::uint64_t beyond_ = 0;                            ///< failures of causes beyond the limit
};

}  // namespace sluice::queue
