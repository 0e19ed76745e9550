#include "base/uuid.hpp"

#include <array>
#include <cstdio>

namespace sluice {

std::string make_uuid(Random& random) {
  const std::uint64_t high = (random.next() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (random.next() & ~(3ULL << 62U)) | (2ULL << 62U);
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08llx-%04llx-%04llx-%04llx-%012llx",
                static_cast<unsigned long long>(high >> 32U), static_cast<unsigned long long>((high >> 16U) & 0xFFFFU),
                static_cast<unsigned long long>(high & 0xFFFFU), static_cast<unsigned long long>(low >> 48U),
                static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFULL));
  return std::string(text.data(), 36);
}

}  // namespace sluice
