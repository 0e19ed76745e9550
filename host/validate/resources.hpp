#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::validate {

/// What this process holds. A value.
struct Resources {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  std::size_t memory = 0;  ///< bytes that malloc has handed out and not got back
};

Resources measure_resources();

/// What it holds after so many repetitions of something, such as a call of a handler. A value.
struct Sample {
  std::size_t repetitions = 0;
  Resources held;
};

/// What grows with each repetition. A value.
struct Growth {
  std::size_t Resources::*resource = nullptr;
  double for_each = 0;  ///< so many for each repetition

  bool is_memory() const { return resource == &Resources::memory; }
  /// "1.0 threads", "16 bytes of memory".
  std::string text() const;
};

/// What grew between every two samples, and by half a thing (of memory by 16 bytes) for each repetition. What a plugin
/// takes once, or now and then, does not; nor is memory told of beside what holds it. Fewer than 3 samples, or 20
/// repetitions, tell nothing.
std::vector<Growth> leaks(const std::vector<Sample>& samples);

}  // namespace sluice::validate
