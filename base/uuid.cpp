#include "base/uuid.hpp"

#include <string_view>

namespace sluice {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

}  // namespace

std::string make_uuid(Random& random) {
  // By hand: a million of them are made by one bulk send.
  std::uint64_t bits = (random.next() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (random.next() & ~(3ULL << 62U)) | (2ULL << 62U);
  std::string text(kShape);
  std::size_t written = 0;
  for (char& c : text) {
    if (c == 'x') {
      c = kDigits[bits >> 60U];
      bits = ++written == 16 ? low : bits << 4U;
    }
  }
  return text;
}

}  // namespace sluice
