#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

/// The FNV-1a hash of 64 bits: the same on every machine and in every version. What it gives is stored. Its high bits
/// mix poorly on short texts.
constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325U) {
  for (const char c : text) {
    seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return seed;
}

}  // namespace sluice
