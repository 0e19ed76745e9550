#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <random>

#include "base/mutex.hpp"

namespace sluice {

/// A source of random bits. One of the four seams: the simulation runs a whole host from one seed.
///
/// Thread-safe. Not for keys or secrets.
class Random : boost::noncopyable {
 public:
  virtual ~Random() = default;

  /// 64 uniform bits.
  virtual std::uint64_t next() = 0;

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11U) * 0x1.0p-53; }
  /// Uniform in [0, bound); 0 for a bound of 0.
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
};

/// The product's source, seeded from the operating system; given a seed it repeats itself, for tests and simulation.
class SeededRandom final : public Random {
 public:
  SeededRandom();
  explicit SeededRandom(std::uint64_t seed);
  std::uint64_t next() override;

 private:
  Mutex mutex_;
  std::mt19937_64 engine_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice
