#pragma once

#include <algorithm>
#include <cstdint>

/// Hashes by which keys are found.
namespace sluice::queue::sqlite {

/// Hashes of ids and of keys have so many bits; what is behind the last one.
inline constexpr unsigned kHashBits = 48;
inline constexpr std::int64_t kHashEnd = std::int64_t{1} << kHashBits;
/// How wide a range of hashes is that holds about `piece` of so many entries.
inline std::int64_t hash_range_width(std::int64_t entries, std::int64_t piece) {
  return std::max<std::int64_t>(1, kHashEnd / std::max<std::int64_t>(1, entries / piece));
}

struct IdEntry {
  std::int64_t hash = 0;
  std::int64_t seq = 0;
};

}  // namespace sluice::queue::sqlite
