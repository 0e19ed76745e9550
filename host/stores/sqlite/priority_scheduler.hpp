#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "host/queue/source.hpp"

namespace sluice::queue::sqlite {

/// Which priority is next in each half, by weight: none starves. Not thread-safe.
class PriorityScheduler {
 public:
  /// Of those that wait; nothing when none does.
  std::optional<std::size_t> next(std::int64_t half, const ClaimRules& rules,
                                  const std::array<bool, kPriorities>& waits);

 private:
  std::map<std::int64_t, std::array<std::int64_t, kPriorities>> credits_;  ///< by half
};

}  // namespace sluice::queue::sqlite
