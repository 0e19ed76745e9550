#include "host/validate/resources.hpp"

#include <malloc.h>

#include <array>
#include <filesystem>

#include "base/ranges.hpp"
#include "base/text/decimal.hpp"

namespace sluice::validate {
namespace {

constexpr std::size_t kLeastSamples = 3;
constexpr std::size_t kLeastRepetitions = 20;

struct Kind {
  const char* name;
  std::size_t Resources::*amount;
  double least;  ///< for each repetition
};
constexpr std::array kKinds{Kind{"threads", &Resources::threads, 0.5},
                            Kind{"file descriptors", &Resources::descriptors, 0.5},
                            Kind{"bytes of memory", &Resources::memory, 16}};

double gain(const Sample& from, const Sample& to, std::size_t Resources::*amount) {
  return static_cast<double>(to.held.*amount) - static_cast<double>(from.held.*amount);
}

std::size_t entries_of(const char* folder) {
  std::error_code code;
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder, code), {}));
}

}  // namespace

Resources measure_resources() {
  const struct mallinfo2 memory = ::mallinfo2();
  // The look into the folder of descriptors has one open itself, each time.
  return {entries_of("/proc/self/task"), entries_of("/proc/self/fd"), memory.uordblks + memory.hblkhd};
}

std::string Growth::text() const {
  const auto* const kind = find_where(kKinds, [this](const Kind& one) { return one.amount == resource; });
  return fixed_decimal(for_each, for_each < 10 ? 1 : 0) + " " + kind->name;
}

std::vector<Growth> leaks(const std::vector<Sample>& samples) {
  std::vector<Growth> found;
  const std::size_t repetitions = samples.empty() ? 0 : samples.back().repetitions - samples.front().repetitions;
  if (samples.size() < kLeastSamples || repetitions < kLeastRepetitions) {
    return found;
  }
  for (const Kind& kind : kKinds) {
    // What is not ended holds memory.
    bool grows = kind.amount != &Resources::memory || found.empty();
    for (std::size_t i = 1; i < samples.size(); ++i) {
      const auto between = static_cast<double>(samples[i].repetitions - samples[i - 1].repetitions);
      grows = grows && gain(samples[i - 1], samples[i], kind.amount) >= kind.least * between;
    }
    if (grows) {
      found.push_back(
          {kind.amount, gain(samples.front(), samples.back(), kind.amount) / static_cast<double>(repetitions)});
    }
  }
  return found;
}

}  // namespace sluice::validate
