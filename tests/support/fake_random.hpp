#pragma once

#include <cstdint>

#include "base/random.hpp"

namespace sluice::test {

/// Always the same bits: `unit()` gives (about) the fraction that a test asks for.
class FakeRandom final : public Random {
 public:
  explicit FakeRandom(double unit = 0) : bits_(static_cast<std::uint64_t>(unit * 0x1.0p53) << 11U) {}
  std::uint64_t next() override { return bits_; }

 private:
  const std::uint64_t bits_;
};

}  // namespace sluice::test
