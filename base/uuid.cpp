#include "base/uuid.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/text/hex.hpp"

namespace sluice {

namespace {

constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// By hand: a million of them are made by one bulk send.
std::string in_text(std::uint64_t bits, std::uint64_t low) {
  low = (low & ~(3ULL << 62U)) | (2ULL << 62U);
  std::string text(kShape);
  std::size_t written = 0;
  for (char& c : text) {
    if (c == 'x') {
      c = kHexDigits[bits >> 60U];
      bits = ++written == 16 ? low : bits << 4U;
    }
  }
  return text;
}

}  // namespace

std::string make_uuid(Random& random) {
  const std::uint64_t high = (random.next() & ~0xF000ULL) | 0x4000ULL;
  return in_text(high, random.next());
}

std::string make_uuid_v7(Random& random, WallTime now) {
  constexpr unsigned kRandomBits = 12;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::uint64_t time = static_cast<std::uint64_t>(std::max<std::int64_t>(0, milliseconds)) << 16U;
  const std::uint64_t high = time | 0x7000ULL | (random.next() >> (64U - kRandomBits));
  return in_text(high, random.next());
}

}  // namespace sluice
