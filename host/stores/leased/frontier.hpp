#pragma once

#include <cstdint>
#include <string>

namespace sluice::queue::leased {

/// How far a shard that goes in order has been read, as the parts of sort keys behind their priority. A value.
struct Frontier {
  std::string settled;     ///< what lies up to there was read when nothing could come to lie there any more
  std::string passed;      ///< what lies up to there was read since the last pass began
  std::uint64_t pass = 0;  ///< the number of that pass

  /// Empty for no key.
  static std::string part_of(const std::string& sort) { return sort.empty() ? sort : sort.substr(1); }
};

}  // namespace sluice::queue::leased
