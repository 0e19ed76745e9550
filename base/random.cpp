#include "base/random.hpp"

namespace sluice {
namespace {

std::uint64_t entropy() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32U) | device();
}

}  // namespace

SeededRandom::SeededRandom() : SeededRandom(entropy()) {}

SeededRandom::SeededRandom(std::uint64_t seed) : engine_(seed) {}

std::uint64_t SeededRandom::next() {
  const MutexLock lock(mutex_);
  return engine_();
}

}  // namespace sluice
